"""A stream cut at any place gives the same answer as one in one piece."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.providers.openai.asking import Heard, Pieces, chatting, chunk, end, hear, hear_bytes
from servers.wire import sse


def call(index: int, text: str, **fields: str) -> dict[str, object]:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return {"index": index, **fields, "function": {**name, "arguments": text}}


BODY = (
    b": keep-alive\r\n\r\n"
    + sse(
        chunk(role="assistant", reasoning_content="Hm, 北京…"),
        chunk(content="déjà 🙂\u2028"),
        r'{"choices":[{"index":0,"delta":{"content":"\ud83d\ude42 \\n"}}]}',
        chunk(tool_calls=[call(0, '{"a":"', id="A", name="f"), call(1, "{", id="B", name="g")]),
        chunk(tool_calls=[call(1, "}"), call(0, 'é 123456789012345678901"}')], novel={"n": 1.10}),
        end("tool_calls"),
    ).replace(b"\n\n", b"\r\n\r\n", 2)
    + sse('{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}', "[DONE]")
)


async def heard_of(*answers: Sequence[bytes]) -> list[Heard]:
    """What one model hears of the answers, one after the other; each comes in these pieces."""
    transport = Pieces([])
    async with chatting("http://localhost/v1", transport=transport) as model:
        return [await hear(model) for transport.pieces in answers]


def cut(places: Sequence[int]) -> list[bytes]:
    ends = [0, *sorted(set(places)), len(BODY)]
    return [BODY[start:stop] for start, stop in pairwise(ends) if stop > start]


async def test_a_cut_at_every_byte_changes_nothing() -> None:
    whole, *others = await heard_of([BODY], *[cut([place]) for place in range(1, len(BODY))])
    assert whole.answer.message.tool_calls[0].arguments == '{"a":"é 123456789012345678901"}'
    assert len(others) == len(BODY) - 1
    assert [place for place, heard in enumerate(others, 1) if heard != whole] == []


async def test_a_byte_at_a_time_over_a_socket_changes_nothing() -> None:
    assert await hear_bytes(*cut(range(1, len(BODY)))) == await hear_bytes(BODY)


@pytest.mark.parametrize("socket", [True, False])
async def test_one_piece_is_the_same_with_and_without_a_socket(socket: bool) -> None:
    whole, of_three = await heard_of([BODY], cut([200, 201]))
    assert (await hear_bytes(BODY) if socket else whole) == of_three


@settings(max_examples=30)
@given(st.lists(st.integers(1, len(BODY) - 1), max_size=40))
async def test_any_cuts_over_a_socket_change_nothing(places: list[int]) -> None:
    assert [await hear_bytes(*cut(places))] == await heard_of([BODY])
