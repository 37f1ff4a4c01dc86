"""A streamed answer is put together whatever its chunks look like, and an answer that is not there is an error."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from agent.providers.openai.asking import Heard, as_json, chatting, chunk, end, hear, hear_bytes
from handrail.agent.errors import InvalidResponse, ModelError, StreamBroken
from handrail.agent.models import ArgumentsDelta, TextDelta
from handrail.filters import Opaque, Reasoning, Refusal, ToolCall
from handrail.sessions import Usage
from servers.wire import sse, wire

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
HELLO = [chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"), end()]


def counted(**fields: object) -> str:
    return as_json({"id": "x1", **fields, "usage": USAGE})


def calling(*pieces: dict[str, object]) -> str:
    return chunk(tool_calls=list(pieces))


def part(index: int, arguments: str | None = None, **fields: object) -> dict[str, object]:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    text = {} if arguments is None else {"arguments": arguments}
    return {"index": index, **fields, "function": {**name, **text}}


async def failure(*events: str, tail: bytes = b"") -> ModelError:
    with pytest.raises(ModelError) as caught:
        await hear_bytes(sse(*events) + tail)
    return caught.value


@pytest.mark.parametrize(
    "events",
    [
        [*HELLO, counted(choices=[])],
        [as_json({"id": "x1", "choices": [], "prompt_filter_results": []}), *HELLO, counted(choices=[])],
        [*HELLO, counted()],
        [*HELLO, counted(choices=None)],
        [counted(), *HELLO],
    ],
)
async def test_chunks_without_choices_are_taken_for_what_they_carry(events: list[str]) -> None:
    heard = await hear_bytes(sse(*events, "[DONE]"))
    assert heard.text == heard.answer.message.text == "Hello"
    assert (heard.answer.finish_reason, heard.answer.usage) == ("stop", Usage(10, 2))


async def test_a_usage_chunk_brings_cached_and_reasoning_tokens_and_no_request() -> None:
    usage = {
        **USAGE,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    heard = await hear_bytes(sse(*HELLO, as_json({"choices": [], "usage": usage}), "[DONE]"))
    assert heard.answer.usage == Usage(10, 2, 4, 1, requests=0)


CUT = [chunk(content="北京 d"), chunk(content="éjà 🙂 fin"), end()]


@pytest.mark.parametrize("cuts", [(), (116, 269, 276), "all"])
async def test_characters_cut_by_the_network_are_whole(cuts: tuple[int, ...] | str) -> None:
    body = sse(*CUT, "[DONE]")
    places = [0, *(range(1, len(body)) if cuts == "all" else [int(cut) for cut in cuts]), len(body)]
    heard = await hear_bytes(*[body[start:stop] for start, stop in pairwise(places)])
    assert heard.text == heard.answer.message.text == "北京 déjà 🙂 fin"


MIXED = [
    calling(part(0, "", id="call_A", name="tool_a")),
    calling(part(1, "", id="call_B", name="tool_b")),
    calling(part(0, '{"target":')),
    calling(part(1, '{"target":"B_')),
    calling(part(0, '"A_ONLY"}')),
    calling(part(1, 'ONLY"}')),
]
TWO_A_CHUNK = [
    calling(part(0, '{"target":"A_', id="call_A", name="tool_a"), part(1, '{"target":', id="call_B", name="tool_b")),
    calling(part(1, '"B_ONLY"}'), part(0, 'ONLY"}')),
]


@pytest.mark.parametrize("events", [MIXED, TWO_A_CHUNK])
async def test_pieces_of_calls_are_joined_by_index(events: list[str]) -> None:
    heard = await hear_bytes(sse(*events, end("tool_calls"), "[DONE]"))
    calls = [(call.id, call.name, call.parse()) for call in heard.answer.message.tool_calls]
    assert calls == [("call_A", "tool_a", {"target": "A_ONLY"}), ("call_B", "tool_b", {"target": "B_ONLY"})]
    assert heard.answer.finish_reason == "tool_calls"


async def test_pieces_of_arguments_reach_the_stream_with_their_call() -> None:
    heard = await hear_bytes(sse(*TWO_A_CHUNK, end("tool_calls"), "[DONE]"))
    assert heard.deltas[0] == ArgumentsDelta(0, "call_A", "tool_a", '{"target":"A_')
    assert [delta.index for delta in heard.deltas if isinstance(delta, ArgumentsDelta)] == [0, 1, 1, 0]


@pytest.mark.parametrize("arguments", ["", None])
async def test_a_call_without_arguments_has_an_empty_object(arguments: str | None) -> None:
    events = [calling(part(0, arguments, id="call_1", name="health")), end("tool_calls"), "[DONE]"]
    heard = await hear_bytes(sse(*events))
    assert heard.answer.message.tool_calls == (ToolCall("call_1", "health"),)
    assert heard.answer.message.tool_calls[0].parse() == {}


async def test_whole_numbers_in_arguments_come_through_digit_for_digit() -> None:
    raw = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
    pieces = [calling(part(0, raw[place : place + 3], id="c", name="find")) for place in range(0, len(raw), 3)]
    heard = await hear_bytes(sse(*pieces, end("tool_calls"), "[DONE]"))
    assert heard.answer.message.tool_calls[0].arguments == raw


async def test_lone_halves_of_surrogate_pairs_are_replaced_on_the_way_in() -> None:
    events = [r'{"choices":[{"delta":{"content":"ok \ud83d end \ud83c\udf78 \udcb0 é 北"}}]}', end(), "[DONE]"]
    heard = await hear_bytes(sse(*events))
    assert heard.answer.message.text == heard.text == "ok \ufffd end 🍸 \ufffd é 北"


@pytest.mark.parametrize(
    ("event", "kind", "code", "retryable"),
    [
        (
            b'data: {"error": {"message": "upstream broke", "type": "server_error", "code": 502}}',
            "server_error",
            502,
            True,
        ),
        (b"event: error\ndata: upstream broke", None, None, True),
        (b'event: error\ndata: {"error": {"message": "upstream broke", "type": "t"}}', "t", None, True),
        (b'data: {"object": "error", "message": "upstream broke", "type": "t", "code": 400}', "t", 400, False),
        (b'data: {"choices": [{"delta": {}, "error": {"message": "upstream broke"}}]}', None, None, True),
    ],
)
async def test_an_error_inside_a_stream_ends_it_with_what_was_told(
    event: bytes, kind: str | None, code: int | None, retryable: bool
) -> None:
    error = await failure(chunk(content="Partial"), tail=event + b"\n\n")
    assert isinstance(error, StreamBroken)
    assert "upstream broke" in str(error)
    assert (error.partial, error.kind, error.code, error.retryable) == ("Partial", kind, code, retryable)
    assert error.status is None


async def test_an_error_after_the_last_word_is_still_an_error() -> None:
    error = await failure(*HELLO, tail=b"event: error\ndata: late\n\n")
    assert (type(error), error.partial) == (StreamBroken, "Hello")


async def test_comments_blank_lines_and_other_fields_are_passed_over() -> None:
    keeping = b": keep-alive\n\n:\n\n: OPENROUTER PROCESSING\n\n" + sse(chunk(content="Hi"))
    other = b": x\nid: 7\nretry: 1000\nevent: message\n" + sse(chunk(content="!")) + b"\n\n" + sse(end()) + b": bye\n\n"
    heard = await hear_bytes(keeping + other + sse("[DONE]"))
    assert (heard.text, heard.answer.finish_reason) == ("Hi!", "stop")


async def test_a_stream_that_closes_without_an_end_is_broken_and_keeps_its_text() -> None:
    error = await failure(counted(), chunk(content="Part"), chunk(content="ial"))
    assert (type(error), error.partial, error.retryable) == (StreamBroken, "Partial", True)
    assert error.spent == Usage(10, 2)


async def test_a_connection_that_breaks_is_a_broken_stream_and_keeps_its_text() -> None:
    async with wire(sse(chunk(content="Part")), after="cut") as server, chatting(server.base_url) as model:
        with pytest.raises(StreamBroken, match="connection to the model 'any' at http://127") as caught:
            await hear(model)
    assert caught.value.partial == "Part"


@pytest.mark.parametrize("after", ["end", "cut"])
async def test_an_answer_that_said_why_it_ends_is_whole_whatever_follows(after: str) -> None:
    heard = await hear_bytes(sse(*HELLO), after=after)
    assert heard.answer.message.text == "Hello"


async def test_an_answer_is_whole_when_the_service_does_not_hang_up_after_its_last_event() -> None:
    heard = await hear_bytes(sse(*HELLO, "[DONE]"), after="hang")
    assert heard.answer.message.text == "Hello"


async def test_an_answer_without_a_reason_ends_with_the_last_event() -> None:
    heard = await hear_bytes(sse(chunk(content="Hi"), "[DONE]"))
    assert (heard.answer.message.text, heard.answer.finish_reason) == ("Hi", "other")


@pytest.mark.parametrize(
    "events",
    [
        ["{broken"],
        ["[]"],
        [as_json({"choices": {}})],
        [as_json({"choices": ["x"]})],
        [as_json({"choices": [{"delta": "x"}]})],
        [as_json({"choices": [{"delta": {"content": 1}}]})],
        [as_json({"choices": [{"delta": {"tool_calls": {}}}]})],
        ["[DONE]"],
        [as_json({"choices": []}), "[DONE]"],
    ],
)
async def test_a_chunk_that_cannot_be_read_is_an_invalid_response(events: list[str]) -> None:
    error = await failure(*events, end(), "[DONE]")
    assert isinstance(error, InvalidResponse)
    assert not error.retryable


async def test_an_invalid_chunk_keeps_the_text_before_it() -> None:
    assert (await failure(chunk(content="Part"), "{broken")).partial == "Part"


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filtered"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("eos", "other"),
    ],
)
async def test_each_reason_to_end_has_its_name(told: str, reason: str) -> None:
    assert (await hear_bytes(sse(chunk(content="Hi"), end(told), "[DONE]"))).answer.finish_reason == reason


@pytest.mark.parametrize(("told", "reason"), [("stop", "tool_calls"), ("eos", "tool_calls"), ("length", "length")])
async def test_an_answer_with_calls_ended_because_of_them_unless_it_was_cut(told: str, reason: str) -> None:
    events = [calling(part(0, "{}", id="c", name="f")), end(told), "[DONE]"]
    assert (await hear_bytes(sse(*events))).answer.finish_reason == reason


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_what_a_model_thinks_is_streamed_and_kept_apart_from_what_it_says(field: str) -> None:
    heard = await hear_bytes(sse(chunk(**{field: "Hm"}), chunk(**{field: "m"}), *HELLO, "[DONE]"))
    thought = [part for part in heard.answer.message.content if isinstance(part, Reasoning)]
    assert (heard.thought, heard.text) == ("Hmm", "Hello")
    assert [(part.text, part.provider) for part in thought] == [("Hmm", "openai-chat")]


async def test_thoughts_that_come_under_both_names_are_streamed_once() -> None:
    heard = await hear_bytes(sse(chunk(reasoning="Hm", reasoning_content="Hm"), *HELLO, "[DONE]"))
    assert heard.thought == "Hm"


async def test_a_refusal_is_joined_and_is_no_text() -> None:
    heard = await hear_bytes(sse(chunk(refusal="I can"), chunk(refusal="not."), end(), "[DONE]"))
    assert heard.answer.message.content == (Refusal("I cannot."),)
    assert heard.text == ""


async def test_fields_that_nobody_knows_are_joined_and_kept() -> None:
    first = chunk(reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}], novel={"n": 1})
    second = chunk(reasoning_details=[{"type": "reasoning.text", "text": "b", "signature": "s", "index": 0}])
    heard = await hear_bytes(sse(first, second, *HELLO, "[DONE]"))
    message = heard.answer.message
    kept = {part.type: part.data for part in message.content if isinstance(part, Opaque)}
    assert kept["message.novel"] == '{"n":1}'
    assert '"text":"ab"' in str(message)


async def test_content_in_parts_is_text_and_what_is_no_text_is_kept() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "lo"}]
    heard = await hear_bytes(sse(chunk(content=parts), end(), "[DONE]"))
    assert heard.text == heard.answer.message.text == "Hello"
    assert "hm" in str(heard.answer.message)


NESTED: dict[str, Callable[[Any], str]] = {
    "a field": lambda value: chunk(novel=value),
    "a list": lambda value: chunk(novel=[value]),
    "a part": lambda value: chunk(content=[{"type": "novel", "novel": value}]),
    "a call": lambda value: calling({**part(0, "{}", id="A", name="f"), "novel": value}),
    "a function": lambda value: calling({"index": 0, "id": "A", "function": {"name": "f", "novel": value}}),
    "arguments": lambda value: calling({"index": 0, "id": "A", "function": {"name": "f", "arguments": value}}),
    "an id": lambda value: calling({"index": 0, "id": value, "function": {"name": "f"}}),
    "usage": lambda value: as_json({"id": "x1", "choices": [], "usage": {"prompt_tokens": value}}),
    "an error": lambda value: as_json({"error": {"message": value, "code": value}}),
    "an error of a choice": lambda value: as_json({"choices": [{"index": 0, "error": value}]}),
}


@pytest.mark.parametrize("depth", [100, 300, 470, 600, 900, 990, 3_000])
@pytest.mark.parametrize("where", NESTED)
async def test_what_is_nested_too_deep_is_an_invalid_response_and_else_an_answer(where: str, depth: int) -> None:
    opened, closed = ('{"a":', "}") if depth % 20 else ("[", "]")
    value = msgspec.Raw(f"{opened * depth}7{closed * depth}".encode())
    found = await outcome(chunk(content="Hel"), NESTED[where](value), chunk(content="lo"), end(), "[DONE]")
    if isinstance(found, Heard):
        assert (found.text, "error" in where) == ("Hello", False)
    else:
        assert isinstance(found, InvalidResponse) or ("error" in where and isinstance(found, StreamBroken))
        assert found.partial.startswith("Hel")
        assert found.__cause__ is found.__context__ is None


async def outcome(*events: str) -> Heard | ModelError:
    try:
        return await hear_bytes(sse(*events))
    except ModelError as error:
        return error


async def test_an_unknown_field_in_very_many_pieces_is_joined_at_once() -> None:
    chunks = [
        chunk(reasoning_details=[{"type": "t", "index": 0, "text": "word " * 20}, {"index": number + 1}])
        for number in range(20_000)
    ]
    heard = await hear_bytes(sse(*chunks, end(), "[DONE]"))
    (kept,) = heard.answer.message.content
    assert isinstance(kept, Reasoning)
    assert (kept.data or "").count("word ") == 400_000


async def test_half_a_pair_in_the_name_of_a_field_is_replaced() -> None:
    lone = r'{"choices":[{"index":0,"delta":{"content":"Hi","\ud83d":1,"\ude42":"x"}}]}'
    assert (await hear_bytes(sse(lone, end(), "[DONE]"))).text == "Hi"


async def test_another_choice_than_the_first_is_passed_over() -> None:
    other = as_json({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]})
    assert (await hear_bytes(sse(other, *HELLO, other, "[DONE]"))).text == "Hello"


async def test_an_empty_answer_is_an_answer() -> None:
    heard = await hear_bytes(sse(chunk(role="assistant", content=""), end(), "[DONE]"))
    assert (heard.answer.message.content, heard.deltas) == ((), [])


async def test_a_whole_answer_in_place_of_a_stream_is_heard_as_one_piece() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    body = as_json({"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}).encode()
    heard = await hear_bytes(body, content_type="application/json")
    assert heard.deltas == [TextDelta("Hi"), ArgumentsDelta(0, "c", "f", "{}")]
    assert (heard.answer.message.text, heard.answer.usage) == ("Hi", Usage(10, 2))
