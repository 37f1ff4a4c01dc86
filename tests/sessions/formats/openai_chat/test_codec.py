"""Chat Completions messages, there and back."""

import json
from collections import Counter
from typing import Any

import pytest

from handrail.filters import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    call,
    tool_result,
    user,
)
from handrail.sessions import FormatError
from handrail.sessions.formats.openai_chat import PROVIDER, decode_message, encode_message, losses


def exactly(text: str | bytes) -> Any:
    """JSON with the digits of its numbers as they stand."""
    return json.loads(text, parse_int=str, parse_float=str)


KEPT = [
    '{"role":"system","content":"You help."}',
    '{"role":"developer","content":"You help."}',
    '{"role":"user","content":"Hi","name":"ann"}',
    '{"role":"user","content":""}',
    '{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}',
    '{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral","ttl":1.0}}]}',
    '{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png","detail":"low"}}]}',
    '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0=","w":1e3},"n":2}]}',
    '{"role":"user","content":[{"type":"image_url","image_url":"http://x/y.png"}]}',
    '{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}}]}',
    '{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}',
    '{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBE"}}]}',
    '{"role":"user","content":[{"type":"hologram","depth":3.50}]}',
    '{"role":"assistant","content":"Hello","annotations":[{"type":"url_citation"}]}',
    '{"role":"assistant","content":null,"refusal":"I cannot."}',
    '{"role":"assistant","content":[{"type":"text","text":"Well,"},{"type":"refusal","refusal":"no."}]}',
    '{"role":"assistant","content":"Hello","reasoning_content":"She greets."}',
    '{"role":"assistant","content":"Hello","reasoning":"She greets.","reasoning_details":[{"type":"x","text":"a"}]}',
    '{"role":"assistant","content":"Hello","thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"c2ln"}]}',
    '{"role":"assistant","content":"Hello","provider_specific_fields":{"score":0.10,"big":2512292042121000001}}',
    '{"role":"assistant","content":null,"audio":{"id":"audio_1"}}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":'
    '{"name":"f","arguments":"{\\"a\\": 1.0}"}}]}',
    '{"role":"assistant","content":"Let me see.","tool_calls":[{"index":0,"id":"c1","type":"function","extra_content":'
    '{"google":{"thought_signature":"c2ln"}},"function":{"name":"f","arguments":"{}","strict":true}}]}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sh","input":"ls"}}]}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"teleport","to":"Mars"}]}',
    '{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":'
    '{"name":"f","arguments":"{broken"}}]}',
    '{"role":"tool","tool_call_id":"c1","content":"ok","name":"f"}',
    '{"role":"tool","tool_call_id":"c1","content":""}',
    '{"role":"tool","content":"no id"}',
    '{"role":"function","name":"f","content":"ok"}',
]


@pytest.mark.parametrize("text", KEPT)
def test_a_message_goes_in_and_out_unchanged_and_without_a_word(text: str) -> None:
    told: list[str] = []
    message = decode_message(text, told.append)
    assert exactly(encode_message(message)) == exactly(text)
    assert (told, list(losses(message))) == ([], [])


CHANGED = {
    '{"role":"user","content":[{"type":"text","text":"a"}]}': "one-text list written as a string",
    '{"role":"user","content":null}': "null content written as an empty text",
    '{"role":"user","content":[]}': "empty content list written as an empty text",
    '{"role":"user","content":["a","b"]}': "text in a content list written as a text part",
    '{"role":"tool","content":{"a":1}}': "content that is neither a text nor a list written as a text",
    '{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}': (
        "left-out content written as null"
    ),
    '{"role":"assistant","content":"a","function_call":null}': "null field function_call left out",
    '{"role":"assistant","content":"a","annotations":[]}': "empty field annotations left out",
    '{"role":"assistant","content":"a","tool_calls":[]}': "empty field tool_calls left out",
    '{"role":"assistant","content":"a","refusal":"b"}': "refusal beside content written as a part",
    '{"role":"assistant","content":[{"type":"refusal","refusal":"b"}]}': "refusal part written as the field refusal",
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}': (
        "tool call without a type written as a function call"
    ),
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f"}}]}': (
        "empty arguments written as {}"
    ),
    '{"role":"user","content":"ok \\ud83d"}': "half of a surrogate pair written as U+FFFD",
}


@pytest.mark.parametrize("text", CHANGED)
def test_what_is_not_written_back_as_it_was_is_told(text: str) -> None:
    told: Counter[str] = Counter()
    message = decode_message(text, lambda what: told.update([what]))
    assert set(told) == {CHANGED[text]}
    again: list[str] = []
    assert encode_message(decode_message(encode_message(message), again.append)) == encode_message(message)
    assert again == []


def test_arguments_given_as_an_object_are_its_text_with_every_digit() -> None:
    raw = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
    function = f'{{"name":"f","arguments":{raw}}}'
    calls = f'[{{"id":"c","type":"function","function":{function}}}]'
    message = decode_message(f'{{"role":"assistant","content":null,"tool_calls":{calls}}}')
    assert message.tool_calls[0].arguments == raw.replace(" ", "")
    assert message.tool_calls[0].parse()["big"] == 123456789012345678901234567890
    written = json.loads(encode_message(message))
    assert written["tool_calls"][0]["function"]["arguments"] == raw.replace(" ", "")


def test_parts_are_what_they_are() -> None:
    message = decode_message(
        '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0="}},'
        '{"type":"input_audio","input_audio":{"data":"UklG","format":"wav"}},{"type":"file","file":{"file_id":"f"}}]}'
    )
    assert message.content == (
        Image(data="iVBORw0=", media_type="image/png"),
        Audio(data="UklG", media_type="audio/wav"),
        File(url="openai-file:f"),
    )


def test_reasoning_and_what_is_not_known_stay_with_their_agent() -> None:
    message = decode_message(
        '{"role":"assistant","content":"a","reasoning_content":"hm","mood":{"x":1.0},"audio":{"id":"b"}}'
    )
    assert message.content == (
        Reasoning("hm", PROVIDER),
        Text("a"),
        Opaque(PROVIDER, "message.mood", '{"x":1.0}', "reasoning"),
        Opaque(PROVIDER, "message.audio", '{"id":"b"}', "other"),
    )


def test_a_refusal_is_a_part() -> None:
    assert decode_message('{"role":"assistant","content":null,"refusal":"No."}') == Message(
        "assistant", (Refusal("No."),)
    )


def test_an_old_function_call_and_its_result_belong_together() -> None:
    called = decode_message('{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}')
    answer = decode_message('{"role":"function","name":"f","content":"ok"}')
    assert called.tool_calls[0].id == answer.call_id


@pytest.mark.parametrize("text", ["[]", "7", "{", '{"role":"wizard"}', '{"content":"a"}', '{"role":7}'])
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="not an OpenAI chat message"):
        decode_message(text)


def test_empty_arguments_are_an_empty_object() -> None:
    assert b'"arguments":"{}"' in encode_message(assistant(ToolCall("c1", "f")))


def test_a_transfer_mark_is_never_sent() -> None:
    assert b'transfer":' not in encode_message(assistant(ToolCall("c1", "transfer_to_b", transfer=True)))


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        (user("a", pinned=True), "pinned mark"),
        (user("a", sensitivity="secret"), "sensitivity label"),
        (user(Text("a", "secret")), "sensitivity label"),
        (user("a", created_at=1), "time"),
        (tool_result("c", "no", is_error=True), "error mark of a tool result"),
        (tool_result("c", "no", synthetic=True), "mark of a result that no tool gave"),
        (assistant(Reasoning("hm", "anthropic")), "reasoning of anthropic"),
        (assistant(Opaque("anthropic", "server_tool_use", "{}", "tool")), "part server_tool_use of anthropic"),
        (assistant(ToolCall("c", "f", transfer=True)), "mark of a handoff call"),
        (assistant(call("f"), "and so"), "place of what was said after a tool call"),
        (user(Audio(url="http://x/y.wav")), "sound by address"),
        (user(File(url="http://x/y.pdf")), "file by address"),
        (user(Image(url="http://x", name="y.png")), "file name of an image or a sound"),
        (user(Text("a", extra="{broken")), "extra that is no JSON object"),
    ],
)
def test_what_has_no_place_in_the_format_is_listed(message: Message, lost: str) -> None:
    assert list(losses(message)) == [lost]
    assert json.loads(encode_message(message))["role"] == message.role
