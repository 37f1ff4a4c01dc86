"""Reading a session record by record."""

import tracemalloc
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import DamagedSession, Footer, Journal, MessageRecord, NotASession, Unknown, export, read


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    with Journal.open(path, fsync="never") as journal:
        journal.append(said("one"))
        journal.append(said("two"), said("three"))
    return path


def test_each_record_comes_with_its_line_and_offset(path: Path) -> None:
    data = path.read_bytes()
    entries = list(read(path))
    assert [number for number, _, _ in entries] == [1, 2, 3, 4]
    assert [data[offset:].partition(b"\n")[0] for _, offset, _ in entries] == data.splitlines()


def test_a_reading_can_be_gone_through_again(path: Path) -> None:
    reading = read(path)
    assert list(reading) == list(reading)


def test_a_torn_end_is_told_and_not_read_and_the_file_stays_as_it_is(path: Path) -> None:
    torn = path.read_bytes()[:-5]
    path.write_bytes(torn)
    reading = read(path)
    assert reading.torn is not None
    assert "only 1 of the 2 records" in str(reading.torn) or "not written to its end" in str(reading.torn)
    assert len(list(reading)) == 2
    assert path.read_bytes() == torn


@pytest.mark.parametrize("line", [1, 2])
def test_what_is_broken_in_the_middle_is_an_error_with_its_line(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"kind"', b'"kind', 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(DamagedSession) as caught:
        list(read(path))
    assert caught.value.line == line + 1
    assert f"line {line + 1}" in str(caught.value)


def test_nothing_stands_after_a_footer(path: Path, tmp_path: Path) -> None:
    sealed = export(path, tmp_path / "sealed.jsonl")
    assert isinstance(list(read(sealed).records())[-1], Footer)
    sealed.write_bytes(sealed.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(DamagedSession, match="after the footer"):
        list(read(sealed))


@pytest.mark.parametrize("content", [b"", b"hello", b"hello\n", b'{"kind":"header"}\n', b"\0" * 100])
def test_another_file_is_not_a_session(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(NotASession):
        read(tmp_path / "other")


def test_records_of_the_future_are_read_over(path: Path) -> None:
    data = path.read_bytes().replace(b'"kind":"message"', b'"kind":"greeting"', 1)
    path.write_bytes(data)
    kinds = [type(record) for record in read(path).records()]
    assert kinds.count(Unknown) == 1


def test_reading_holds_one_record_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with Journal.open(path, fsync="never") as journal:
        for _ in range(40):
            journal.append(*[said("x" * 1000) for _ in range(100)])
    tracemalloc.start()
    count = sum(1 for _ in read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 4001
    assert peak < 1_000_000 < path.stat().st_size


def test_backwards_a_line_of_a_kind_that_is_not_known_is_followed_like_any_other(path: Path) -> None:
    with Journal.open(path, fsync="never") as journal:
        journal.append(Unknown("weather", b'{"kind":"weather","sun":true}'))
        journal.append(said("four"))
    kinds = [type(record).__name__ for record in read(path).backwards()]
    assert kinds == ["MessageRecord", "Unknown", *["MessageRecord"] * 3, "Header"]
