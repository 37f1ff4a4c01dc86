"""A request holds what the model needs, as it was written, and nothing of anybody else's."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agent.providers.openai.asking import asking
from handrail.agent.errors import BuildError
from handrail.agent.models import OutputSchema, Settings, ToolSpec
from handrail.agent.providers.openai.requests import encode_request
from handrail.filters import Message, Opaque, Reasoning, Text, ToolCall, assistant, call, tool_result, user

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ADD = ToolSpec("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "number"}}})


def raw(
    *messages: Message,
    own: Settings | None = None,
    stream: bool = False,
    public: bool = False,
    strict: bool = False,
    **more: Any,
) -> bytes:
    request = asking(messages or (user("hello"),), **more)
    return encode_request("any", request, own or Settings(), stream=stream, public=public, strict_tools=strict)


def body(*messages: Message, **options: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(raw(*messages, **options))
    return decoded


def test_a_plain_request_is_a_model_and_messages() -> None:
    assert body() == {"model": "any", "messages": [{"role": "user", "content": "hello"}]}


def test_instructions_are_the_first_system_message_joined_by_blank_lines() -> None:
    sent = body(instructions={"role": "You are Triage.", "none": "", "style": "Be brief \ud83d."})["messages"]
    assert sent[0] == {"role": "system", "content": "You are Triage.\n\nBe brief \ufffd."}
    assert len(sent) == 2


def test_a_message_is_encoded_once_and_its_copy_anew() -> None:
    asked = user("hello")
    raw(asked)
    kept = {name: value for name, value in vars(asked).items() if isinstance(value, bytes)}
    assert list(kept.values()) == [b'{"role":"user","content":"hello"}']
    assert body(asked.replace(content=(Text("bye"),)))["messages"][0]["content"] == "bye"
    raw(asked)
    assert all([vars(asked)[name] is value for name, value in kept.items()])


def test_arguments_go_as_they_were_written_digit_for_digit() -> None:
    text = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
    said = assistant(ToolCall("c1", "find", text))
    assert body(said, tool_result("c1", "ok"))["messages"][0]["tool_calls"][0]["function"]["arguments"] == text


@pytest.mark.parametrize("text", [f'{{"n": {"9" * 5000}}}', '{"q":"\\udc97"}', '{"broken', "[" * 5000])
def test_arguments_that_some_parser_cannot_read_go_as_they_are(text: str) -> None:
    said = assistant(ToolCall("c1", "find", text))
    assert body(said)["messages"][0]["tool_calls"][0]["function"]["arguments"] == text


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_arguments_go_as_an_empty_object(text: str) -> None:
    said = assistant(ToolCall("c1", "health", text))
    assert body(said)["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_nothing_of_a_handoff_a_label_or_an_id_is_sent() -> None:
    handing = ToolCall("h1", "transfer_to_billing", "{}", transfer=True, sensitivity="secret")
    said = assistant(handing, id="m1", agent="Triage", created_at=1, pinned=True, sensitivity="secret")
    sent = body(said)["messages"][0]
    assert set(sent) <= {"role", "content", "tool_calls"}
    assert set(sent["tool_calls"][0]) == {"id", "type", "function"}


def test_a_result_with_lone_halves_of_surrogate_pairs_is_sent_as_utf8() -> None:
    said = assistant(call("scrape", call_id="c1"))
    result = tool_result("c1", "ok \ud83d end \ud83c\udf78 \udcb0 é 北")
    assert raw(user("go"), said, result).decode()
    assert body(user("go"), said, result)["messages"][2]["content"] == "ok \ufffd end 🍸 \ufffd é 北"


def test_thoughts_go_back_to_the_service_they_came_from_and_to_no_other() -> None:
    own = Reasoning("Own thought.", provider="openai-chat", data='{"reasoning_content":"Own thought."}')
    other = Reasoning("Foreign thought.", provider="anthropic", data='{"signature":"c2ln"}')
    alone = Reasoning("Nobody's thought.")
    sent = raw(user("go"), assistant(own, other, alone, "Let me see."))
    assert b"Own thought." in sent
    assert b"thought" not in sent.replace(b"Own thought.", b"")
    assert b"c2ln" not in sent


def test_parts_that_only_another_service_understands_stay_behind() -> None:
    hosted = Opaque("anthropic", "server_tool_use", '{"id":"w1"}', family="tool")
    sent = body(user("go"), assistant(hosted), assistant(hosted, "Done."))["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [("user", "go"), ("assistant", "Done.")]


def test_tools_are_sent_as_functions() -> None:
    function = {"name": "add", "description": "Adds two numbers.", "parameters": dict(ADD.parameters)}
    assert body(tools=(ADD,))["tools"] == [{"type": "function", "function": function}]


def test_a_stream_asks_for_its_usage_unless_told_otherwise() -> None:
    assert body(stream=True)["stream_options"] == {"include_usage": True}
    without = Settings(extra={"stream_options": {"include_usage": False}})
    assert body(stream=True, settings=without)["stream_options"] == {"include_usage": False}
    assert "stream" not in body()


def test_every_setting_has_its_field() -> None:
    settings = Settings(0.0, 0.5, 100, ("END",), "required", False, 7, {"logit_bias": {"1": -100}})
    sent = body(settings=settings, tools=(ADD,))
    assert {name: sent[name] for name in sent if name not in ("model", "messages", "tools")} == {
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 100,
        "stop": ["END"],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "seed": 7,
        "logit_bias": {"1": -100},
    }


def test_the_public_service_has_a_name_of_its_own_for_the_limit() -> None:
    assert body(settings=Settings(max_tokens=9), public=True)["max_completion_tokens"] == 9


def test_a_choice_of_tools_is_sent_only_with_tools() -> None:
    chosen = Settings(tool_choice="add", parallel_tool_calls=True)
    assert body(settings=chosen, tools=(ADD,))["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert set(body(settings=chosen)) == {"model", "messages"}


def test_the_settings_of_a_request_override_those_of_the_model() -> None:
    own = Settings(temperature=1.0, seed=1, extra={"user": "a", "tier": "x"})
    sent = body(own=own, settings=Settings(temperature=0.0, extra={"user": "b"}))
    assert (sent["temperature"], sent["seed"], sent["user"], sent["tier"]) == (0.0, 1, "b", "x")


@pytest.mark.parametrize("name", ["messages", "model", "stream", "tools"])
def test_an_extra_setting_cannot_replace_what_a_request_says_itself(name: str) -> None:
    with pytest.raises(BuildError, match=f"may not hold {name}"):
        raw(settings=Settings(extra={name: 1}))


def test_settings_and_schemas_that_are_no_json_are_refused() -> None:
    with pytest.raises(BuildError, match="cannot be written as JSON"):
        raw(settings=Settings(extra={"x": object()}))


@pytest.mark.parametrize("value", ["\ud83d", 2**70])
def test_schemas_with_odd_values_are_sent(value: object) -> None:
    schema: Mapping[str, Any] = {"type": "object", "description": value}
    sent = body(tools=(ToolSpec("f", "", schema),))["tools"][0]["function"]["parameters"]["description"]
    assert sent == ("\ufffd" if isinstance(value, str) else value)


def test_a_tool_is_strict_where_its_schema_can_be_and_is_sent_as_it_is_where_not() -> None:
    loose = ToolSpec("put", "Puts.", {"type": "object", "additionalProperties": {"type": "integer"}})
    strict, other = [tool["function"] for tool in body(tools=[ADD, loose], strict=True)["tools"]]
    assert strict["strict"] is True
    assert strict["parameters"]["additionalProperties"] is False
    assert strict["parameters"]["required"] == ["a"]
    assert other == {"name": "put", "description": "Puts.", "parameters": loose.parameters}
    assert "required" not in ADD.parameters
    assert body(tools=[ADD])["tools"][0]["function"]["parameters"] == ADD.parameters


def test_a_tool_without_parameters_is_sent_with_the_schema_of_an_object() -> None:
    nothing = ToolSpec("ping", "Pings.", {})
    for strict in (True, False):
        sent = body(tools=[nothing], strict=strict)["tools"][0]["function"]["parameters"]
        assert (sent["type"], sent["properties"]) == ("object", {})


def test_an_output_schema_is_the_format_of_the_response() -> None:
    sent = body(output=OutputSchema("place", PLACE))["response_format"]
    assert sent == {
        "type": "json_schema",
        "json_schema": {"name": "place", "schema": {**PLACE, "additionalProperties": False}, "strict": True},
    }


@pytest.mark.parametrize(
    "output",
    [OutputSchema("place", PLACE, strict=False), OutputSchema("map", {"type": "object", "additionalProperties": True})],
)
def test_a_schema_that_is_not_strict_is_never_called_so(output: OutputSchema) -> None:
    sent = body(output=output)["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, output.schema)


def test_a_format_in_the_settings_beside_an_output_schema_is_refused() -> None:
    own = Settings(extra={"response_format": {"type": "json_object"}})
    assert body(own=own)["response_format"] == {"type": "json_object"}
    with pytest.raises(BuildError, match="response_format"):
        body(own=own, output=OutputSchema("place", PLACE))
