"""Sealed copies."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import (
    DamagedSession,
    Footer,
    Journal,
    JournalFailed,
    MessageRecord,
    Session,
    SessionExists,
    Tally,
    export,
    read,
    verify,
)
from handrail.sessions.forking import fork


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    with Journal.open(path) as journal:
        journal.append(MessageRecord(path="desk", message=user("one")))
    return path


def test_a_sealed_copy_has_the_same_lines_and_a_footer(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl")
    lines = sealed.read_bytes().splitlines()
    assert lines[:-1] == path.read_bytes().splitlines()
    *records, footer = read(sealed).records()
    assert isinstance(footer, Footer)
    assert footer.counts == Tally.of(records).counts == {"header": 1, "message": 1}
    assert footer.head == read(path).head
    verdict = verify(sealed)
    assert (verdict.state, verdict.sealed) == ("intact", True)


def test_a_session_is_exported_while_it_is_written(path: Path, tmp_path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(MessageRecord(path="desk", message=user("two")))
        sealed = export(path, tmp_path / "sealed.jsonl")
        journal.append(MessageRecord(path="desk", message=user("three")))
    assert verify(sealed).counts["message"] == 2
    assert verify(path).counts["message"] == 3


def test_a_sealed_copy_is_copied_as_it_is(path: Path, tmp_path: Path) -> None:
    once = export(path, tmp_path / "once.jsonl")
    assert export(once, tmp_path / "twice.jsonl").read_bytes() == once.read_bytes()


def test_what_is_torn_is_left_out(path: Path, tmp_path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"torn')
    assert verify(export(path, tmp_path / "sealed.jsonl")).state == "intact"


def test_nothing_is_overwritten_and_nothing_half_written_stays(path: Path, tmp_path: Path) -> None:
    with pytest.raises(SessionExists):
        export(path, path)
    with pytest.raises(JournalFailed):
        export(path, tmp_path / "missing" / "sealed.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"one"', b'"won"') + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(DamagedSession, match="does not follow"):
        export(path, tmp_path / "sealed.jsonl")
    assert [each.name for each in tmp_path.iterdir()] == ["session.jsonl"]


@pytest.mark.parametrize("act", [export, Session.continue_from, fork], ids=["export", "continue", "fork"])
def test_what_came_to_a_place_meanwhile_is_not_overwritten(
    path: Path, tmp_path: Path, act: Callable[[Path, Path], object]
) -> None:
    with Journal.open(path, fsync="never") as journal:
        journal.append(*[MessageRecord(path="desk", message=user(str(number))) for number in range(2000)])
    outcomes: list[type[BaseException] | None] = []

    def copy() -> None:
        try:
            act(path, tmp_path / "copy.jsonl")
            outcomes.append(None)
        except SessionExists as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=copy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == sorted(map(str, [None, *[SessionExists] * 3]))
    assert verify(tmp_path / "copy.jsonl").state == "intact"
    assert {each.name for each in tmp_path.iterdir()} == {"session.jsonl", "copy.jsonl"}


def test_a_link_to_nowhere_is_no_free_place(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.jsonl").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SessionExists):
        export(path, tmp_path / "copy.jsonl")
    assert not (tmp_path / "nowhere").exists()
