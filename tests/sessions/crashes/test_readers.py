"""Reading while others write, replace or cut the file, after a power cut, and with a clock that goes backwards."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from handrail.agent import Agent, ScriptedModel
from handrail.filters import Clock, user
from handrail.sessions import DamagedSession, Journal, MessageRecord, open_store, read, verify
from sessions.crashes.jobs import batch_of
from sessions.crashes.killing import SEED


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def written(path: Path, *texts: str) -> Path:
    with Journal.open(path, fsync="never") as journal:
        journal.append(*[said(text) for text in texts])
    return path


def words(path: Path, *, ids: bool = False) -> list[str]:
    said = [record.message for record in read(path).records() if isinstance(record, MessageRecord)]
    return [message.id if ids else message.text for message in said]


CHANGES: dict[str, Callable[[Path], object]] = {
    "replaced": lambda path: written(path.with_name("other"), "another", *"cdefgh").replace(path),
    "written anew": lambda path: path.write_bytes(written(path.with_name("other"), "x", "y").read_bytes()),
    "cut at a line": lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1])),
    "cut in a line": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "emptied": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_under_its_reader_is_never_read_as_if_it_were_whole(tmp_path: Path, change: str) -> None:
    path = written(tmp_path / "s.jsonl", "one", "two", "three")
    reading = read(path)
    CHANGES[change](path)
    with pytest.raises(DamagedSession):
        list(reading)


def test_what_is_appended_while_a_session_is_read_does_not_disturb_its_reader(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", "one", "two")
    reading = read(path)
    written(path, "three")
    assert [type(record).__name__ for record in reading.records()] == ["Header", "MessageRecord", "MessageRecord"]
    assert words(path) == ["one", "two", "three"]


def test_a_reader_beside_a_writer_sees_whole_batches_and_waits_for_nobody(tmp_path: Path) -> None:
    path, dice = written(tmp_path / "s.jsonl", "first/1/1"), Random(SEED)
    batches = [batch_of(str(number), dice) for number in range(150)]

    def write() -> None:
        with Journal.open(path, fsync="never") as journal:
            for batch in batches:
                journal.append(*batch)

    writer = Thread(target=write)
    writer.start()
    seen = [words(path, ids=True)]
    while writer.is_alive():
        seen.append(words(path, ids=True))
    assert len(seen) > 2
    assert len(seen[-1]) <= len(words(path)) == 1 + sum(map(len, batches))
    for ids in seen:
        _, place, many = ids[-1].split("/")
        assert place == many


@pytest.mark.parametrize("zeros", [1, 4096, 200_000])
@pytest.mark.parametrize("after", ["a record", "a line", "half a record"])
def test_zero_bytes_that_a_power_cut_left_are_told_and_cut_and_cost_no_whole_record(
    tmp_path: Path, after: str, zeros: int
) -> None:
    path = written(tmp_path / "s.jsonl", "one")
    written(path, "two")
    end = {"a record": -1, "a line": None, "half a record": -30}[after]
    path.write_bytes(path.read_bytes()[:end] + b"\0" * zeros)
    kept = ["one"] if after == "half a record" else ["one", "two"]
    assert words(path) == kept
    assert verify(path).state == "torn"
    written(path, "three")
    assert words(path) == [*kept, "three"]
    assert verify(path).state == "intact"


class Backwards(Clock):
    """A clock that somebody sets back all the time."""

    def __init__(self) -> None:
        self._times: Iterator[int] = count(1_800_000_000_000, -3_600_000)

    def __call__(self) -> int:
        return next(self._times)


@pytest.mark.parametrize("where", ["folder/", "store.db", "memory:"])
async def test_a_clock_that_goes_backwards_changes_no_order(tmp_path: Path, where: str) -> None:
    with open_store(where if where == "memory:" else f"{tmp_path}/{where}") as store:
        for number in range(3):
            agent = Agent("Desk", model=ScriptedModel(f"answer {number}"))
            await agent.run(f"question {number}", session=store.open("desk", clock=Backwards()))
        texts = [message.text for message in store.open("desk").log]
        assert texts == [f"{what} {number}" for number in range(3) for what in ("question", "answer")]
        assert verify(store.place("desk")).state == "intact"
