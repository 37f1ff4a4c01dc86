"""A session means the same as itself, and what differs between two of them gives both back."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from handrail.filters import Message
from handrail.sessions import MessageRecord, Session, StateRecord, ToolResultRecord, TurnRecord, Usage, diff
from handrail.sessions.differences import Difference
from handrail.sessions.records import ToolCallRecord, Writable
from laws.strategies import messages, texts

inner = "desk/research@c1"
paths = st.sampled_from(["desk", "billing", inner, "desk/research@c2", f"{inner}/deep@c1", "/", "desk/x@c1@y", "a@/"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.dictionaries(texts.filter(str.isascii), numbers, max_size=2)
records: st.SearchStrategy[Writable] = st.one_of(
    st.builds(MessageRecord, path=paths, message=messages, aside=st.booleans()),
    st.builds(ToolResultRecord, path=paths, message=messages),
    st.builds(ToolCallRecord, path=paths, call_id=st.sampled_from(["c1", "c2"]), name=st.just("f")),
    st.builds(TurnRecord, path=paths, run=st.just("r"), event=st.sampled_from(["start", "end"])),
    st.builds(StateRecord, path=paths, values=values.map(lambda each: msgspec.Raw(json.dumps(each).encode()))),
)


def between(first: list[Writable], second: list[Writable]) -> Difference:
    with TemporaryDirectory() as folder:
        paths = Path(folder) / "a.jsonl", Path(folder) / "b.jsonl"
        for path, given in zip(paths, (first, second), strict=True):
            with Session(path, fsync="never") as session:
                session.append(TurnRecord(path="desk", run="0", event="start", usage=Usage()), *given)
        return diff(*paths)


def said(given: list[Writable]) -> dict[str, list[Message]]:
    by_path: dict[str, list[Message]] = {}
    for record in given:
        if isinstance(record, MessageRecord | ToolResultRecord):
            by_path.setdefault(record.path, []).append(record.message)
    return by_path


def unordered(messages: list[Message]) -> list[str]:
    return sorted(map(repr, messages))


@given(st.lists(records, max_size=12))
def test_a_session_means_the_same_as_itself(given: list[Writable]) -> None:
    difference = between(given, given)
    assert difference.same
    assert difference.only_differing().lanes == ()


@given(st.lists(records, max_size=10), st.lists(records, max_size=10), st.lists(records, max_size=5))
def test_the_rows_of_a_difference_give_both_back(
    first: list[Writable], second: list[Writable], both: list[Writable]
) -> None:
    difference = between([*first, *both], [*second, *both])
    for side, wrote in (("a", [*first, *both]), ("b", [*second, *both])):
        lanes = [(getattr(lane, side), lane.rows) for lane in difference.lanes if getattr(lane, side) is not None]
        back = {path: [held.message for row in rows if (held := getattr(row, side))] for path, rows in lanes}
        assert len(back) == len(lanes)
        assert {path: unordered(found) for path, found in back.items() if found} == {
            path: unordered(found) for path, found in said(wrote).items()
        }


@given(st.lists(records, max_size=8), st.lists(records, max_size=8))
def test_a_difference_says_the_same_from_either_side_and_goes_into_json(
    first: list[Writable], second: list[Writable]
) -> None:
    there, back = between(first, second), between(second, first)
    assert there.same == back.same
    assert msgspec.json.decode(msgspec.json.encode(there))["a"] == there.a
    assert all("\n" not in line for line in there.lines())
