"""Messages kept as offsets into a file."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.filters import History, Message, user
from handrail.sessions import Journal, MessageRecord, read
from handrail.sessions.offsets import Offsets, Store

COUNT = 40_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offsets") / "s.jsonl"
    with Journal.open(path, fsync="never") as journal:
        for start in range(0, COUNT, 500):
            said = [user(f"word {n}", id=f"m{n}") for n in range(start, start + 500)]
            journal.append(*[MessageRecord(path="desk", message=message) for message in said])
    return path


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    """All messages of the file, none of them in memory."""
    with path.open("rb") as file:
        store = Store(file)
        items = Offsets(store)
        for _, offset, record in read(path):
            if isinstance(record, MessageRecord):
                store.see(offset, record.message)
                items.append(record.message)
        yield History.over(items)


def test_it_reads_like_the_messages_themselves(history: History) -> None:
    whole = [user(f"word {n}", id=f"m{n}") for n in range(COUNT)]
    assert list(history) == whole
    assert history[-1] == whole[-1]
    assert list(history[100:200]) == whole[100:200]
    assert [message.id for message in list(reversed(history))[:2]] == ["m39999", "m39998"]


def test_ids_are_found_near_and_far_and_not_where_they_are_not(history: History) -> None:
    assert [history.position(f"m{n}") for n in (0, 12_345, COUNT - 1)] == [0, 12_345, COUNT - 1]
    assert history.position("nobody") is None
    assert history.prefix(10).position("m11") is None


def test_ids_are_found_among_any_number_of_messages() -> None:
    items = Offsets(Store(io.BytesIO()))
    for count in (1_000, 31_768, 32_768, 65_536, 40_000, 100):
        start = len(items)
        items.extend([user("word", id=f"m{n}") for n in range(start, start + count)])
        history = History.over(items)
        asked = {0, start - 1, start, start + count // 2, start + count - 1, start + count, 2 * start} - {-1}
        assert {n: history.position(f"m{n}") for n in asked} == {n: n if n < start + count else None for n in asked}


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=6), max_size=6), st.integers(0, 40_000))
@settings(max_examples=30)
def test_of_an_id_that_comes_again_the_last_place_is_found_wherever_it_is_kept(
    parts: list[list[str]], far: int
) -> None:
    items = Offsets(Store(io.BytesIO()))
    between = [user("word", id=f"m{n}") for n in range(far)]
    messages: list[Message] = []
    in_memory = History()
    for part in parts:
        added = [user("word", id=id) for id in part] + between
        items.extend(added)
        messages += added
        in_memory = in_memory.extend(added)
        last = {message.id: place for place, message in enumerate(messages)}
        for history in (History.over(items), in_memory, History(messages)):
            assert [history.position(id) for id in "abcdef"] == [last.get(id) for id in "abcdef"]


def test_a_history_that_goes_its_own_way_keeps_its_own_messages(history: History) -> None:
    left = history.prefix(5).append(user("left", id="left"))
    right = history.prefix(5).append(user("right", id="right"))
    assert [message.text for message in left[4:]] == ["word 4", "left"]
    assert (right.position("right"), right.position("left"), history.position("right")) == (5, None, None)


def test_a_message_that_no_line_holds_is_kept_itself(history: History) -> None:
    made = Message("user", id="f1")
    grown = history.append(made).append(made.replace(id="f2"))
    assert grown[COUNT] is made
    assert grown.position("f2") == COUNT + 1


def test_its_digest_is_that_of_the_messages(history: History) -> None:
    assert history.digest == History([user(f"word {n}", id=f"m{n}") for n in range(COUNT)]).digest


def test_messages_beyond_two_gigabytes_are_found_beside_those_before(tmp_path: Path, path: Path) -> None:
    near, far = path.read_bytes(), 1 << 32
    line = near.splitlines()[-1]
    with (tmp_path / "long.jsonl").open("w+b") as file:
        file.write(near)
        file.seek(far)
        file.write(line)
        store = Store(file)
        ends, beyond, joined = Offsets(store), Offsets(store), Offsets(store)
        store.see(far, user("word 39999", id="m39999"))
        beyond.append(store.message(far))
        for _, offset, record in read(path):
            if isinstance(record, MessageRecord):
                store.see(offset, record.message)
                ends.append(record.message)
        for items in (ends[:2], beyond, ends[-2:]):
            joined.extend(items)
        assert [message.id for message in joined] == ["m0", "m1", "m39999", "m39998", "m39999"]
