"""The journal: what is acknowledged is there, whatever happens next."""

import os
import signal
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.filters import FixedClock, FixedIds, user
from handrail.filters.errors import HandrailError
from handrail.sessions import (
    AgentRecord,
    DamagedSession,
    Header,
    HeaderTooLong,
    Journal,
    JournalClosed,
    JournalFailed,
    MessageRecord,
    NotASession,
    Passphrase,
    SealedSession,
    SessionConflict,
    SessionExists,
    TurnRecord,
    Unknown,
    UnsupportedVersion,
    export,
    read,
    verify,
)
from handrail.sessions.writer import Fsync
from sessions.conversations import full_disk, put


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def words(path: Path, passphrase: Passphrase | None = None) -> list[str]:
    return [
        record.message.text
        for record in read(path, passphrase=passphrase).records()
        if isinstance(record, MessageRecord)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_a_new_journal_holds_a_draft_header_and_nothing_else(path: Path) -> None:
    Journal.open(path, clock=FixedClock(5), ids=FixedIds("s")).close()
    (header,) = read(path).records()
    assert isinstance(header, Header)
    assert (header.format, header.version, header.draft, header.created_at) == ("handrail-session", 1, True, 5)
    assert header.id.startswith("s")


def test_what_was_appended_is_in_the_file_at_once(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(said("one"))
        journal.append(said("two"), said("three"))
        journal.append()
        assert words(path) == ["one", "two", "three"]
    assert verify(path).state == "intact"


def test_records_of_any_size_are_written_one_after_the_other(path: Path) -> None:
    texts = ["a", "b" * 200_000, "c", "", "d" * 70_000, "é" * 40, "e"]
    with Journal.open(path) as journal:
        for text in texts:
            journal.append(MessageRecord(path="desk", message=user(text, id="m")))
        journal.append(*[MessageRecord(path="desk", message=user(text, id="m")) for text in texts])
    assert words(path) == texts * 2
    assert verify(path, integrity_only=True).state == "intact"


def test_half_a_surrogate_pair_in_an_error_is_mended_and_the_records_beside_it_stay(path: Path) -> None:
    failed = TurnRecord(path="desk", run="r", event="end", status="failed", error="no \ud800 such file")
    with Journal.create(path, fsync="never") as journal:
        journal.append(said("before"), failed, said("after"))
        journal.append(said("later"))
    found = [record for record in read(path).records() if isinstance(record, TurnRecord)]
    assert [record.error for record in found] == ["no \ufffd such file"]
    assert words(path) == ["before", "after", "later"]
    assert verify(path).ok


def test_a_session_is_its_owners_alone(path: Path) -> None:
    Journal.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
def test_every_policy_writes_the_same_lines(path: Path, fsync: Fsync) -> None:
    with Journal.open(path, fsync=fsync) as journal:
        journal.append(said("one"))
        journal.before_effect()
        journal.append(said("two"))
        journal.turn_end()
        journal.sync()
    assert words(path) == ["one", "two"]


def test_a_second_writer_is_refused_in_the_same_process_too(path: Path) -> None:
    with Journal.open(path) as journal:
        with pytest.raises(SessionConflict) as caught:
            Journal.open(path, lock_timeout=0.05)
        assert (caught.value.path, caught.value.waited) == (path, 0.05)
        journal.append(said("one"))
    with Journal.open(path) as journal:
        journal.append(said("two"))
    assert words(path) == ["one", "two"]


def test_reading_is_never_held_up_by_a_writer(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(said("one"))
        assert words(path) == ["one"]
        assert verify(path).state == "intact"


def test_a_closed_journal_takes_nothing_more(path: Path) -> None:
    journal = Journal.open(path)
    journal.close()
    journal.close()
    assert journal.closed
    with pytest.raises(JournalClosed):
        journal.append(said("late"))


def test_torn_at_every_byte_the_conversation_goes_on(path: Path, tmp_path: Path) -> None:
    with Journal.open(path, fsync="never") as journal:
        journal.append(said("before"))
        kept = path.stat().st_size
        journal.append(said("torn"), said("batch"))
    data = path.read_bytes()
    for cut in range(kept, len(data)):
        torn = tmp_path / "torn.jsonl"
        put(torn, data[:cut])
        with Journal.open(torn, fsync="never") as journal:
            assert (journal.recovered is None) == (cut == kept)
            journal.append(said("after"))
        whole = ["before", "torn", "batch", "after"] if cut == len(data) - 1 else ["before", "after"]
        assert words(torn) == whole
        assert verify(torn).state == "intact"


@pytest.mark.parametrize(
    ("tail", "left"),
    [
        (b'{"seq":2,"role":"assist', ["before"]),
        (b'{"seq":2,"content":"caf' + b"\xc3", ["before"]),
        (b"\0" * 64, ["before"]),
    ],
    ids=["half_json", "half_character", "nul_padding"],
)
def test_a_torn_tail_costs_at_most_the_torn_record(path: Path, tail: bytes, left: list[str]) -> None:
    with Journal.open(path) as journal:
        journal.append(said("before"))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(tail)
    assert words(path) == left
    assert path.stat().st_size == size + len(tail)
    with Journal.open(path) as journal:
        assert journal.recovered is not None
        assert (journal.recovered.offset, journal.recovered.length) == (size, len(tail))
        journal.append(said("after"))
    assert words(path) == [*left, "after"]


def test_a_whole_last_record_without_its_newline_is_kept(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(said("before"))
        journal.append(said("kept"))
    path.write_bytes(path.read_bytes()[:-1])
    with Journal.open(path) as journal:
        assert journal.recovered is not None
        journal.append(said("after"))
    assert words(path) == ["before", "kept", "after"]
    assert verify(path).state == "intact"


def test_a_header_torn_by_a_crash_is_written_again(path: Path) -> None:
    Journal.open(path).close()
    data = path.read_bytes()
    for cut in (1, 40, 80, len(data) - 2):
        path.write_bytes(data[:cut])
        with Journal.open(path) as journal:
            journal.append(said("one"))
        assert words(path) == ["one"]


@pytest.mark.parametrize("content", [b"my notes", b"my notes\nof today", b'{"role":"user"}', b"[1]\n", b"\xff\xfe\n"])
def test_a_file_that_is_no_session_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(NotASession) as caught:
        Journal.open(path)
    assert "handrail import" in str(caught.value)
    assert path.read_bytes() == content


def test_a_newer_version_is_refused_with_both_versions_named(path: Path) -> None:
    Journal.open(path).close()
    newer = path.read_bytes().replace(b'"version":1', b'"version":9,"new":true')
    path.write_bytes(newer)
    with pytest.raises(UnsupportedVersion, match="version 9; this Handrail reads version 1") as caught:
        Journal.open(path)
    assert (caught.value.found, caught.value.supported) == (9, (1,))
    assert path.read_bytes() == newer


def test_a_broken_last_line_that_no_crash_can_leave_is_an_error(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(said("one"))
    broken = path.read_bytes() + b"{broken}\n"
    path.write_bytes(broken)
    with pytest.raises(DamagedSession) as caught:
        Journal.open(path)
    assert caught.value.line == 3
    assert path.read_bytes() == broken


def test_a_sealed_copy_is_not_written_to(path: Path, tmp_path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(said("one"))
    sealed = export(path, tmp_path / "sealed.jsonl")
    with pytest.raises(SealedSession, match="continue_from") as caught:
        Journal.open(sealed)
    with Journal.create(tmp_path / "next.jsonl", continues=caught.value.head):
        pass
    assert read(tmp_path / "next.jsonl").header.continues == read(sealed).head


def test_a_new_journal_overwrites_nothing(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(SessionExists):
        Journal.create(path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("place", ["missing/session.jsonl", "."])
def test_a_place_that_cannot_be_written_to_is_a_typed_error(tmp_path: Path, place: str) -> None:
    with pytest.raises(JournalFailed, match="cannot be written to") as caught:
        Journal.open(tmp_path / place)
    assert caught.value.size is None
    assert isinstance(caught.value, HandrailError)


def test_a_full_disk_loses_nothing_that_was_acknowledged(path: Path) -> None:
    journal = Journal.open(path, fsync="never")
    journal.append(said("one"))
    size = path.stat().st_size
    with full_disk(size + 300), pytest.raises(JournalFailed) as caught:
        journal.append(said("two"), said("x" * 5000))
    assert caught.value.size == path.stat().st_size == size
    journal.close()
    with Journal.open(path) as journal:
        journal.append(said("three"))
    assert words(path) == ["one", "three"]
    assert verify(path).state == "intact"


@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
def test_nothing_is_written_past_a_record_that_the_disk_refused(path: Path, fsync: Fsync) -> None:
    journal = Journal.open(path, fsync=fsync)
    with full_disk(path.stat().st_size + 300), pytest.raises(JournalFailed):
        journal.append(said("x" * 5000))
    assert journal.failure is not None
    writes: tuple[Callable[[], None], ...] = (
        lambda: journal.append(said("after")),
        journal.before_effect,
        journal.sync,
    )
    for write in writes:
        with pytest.raises(JournalFailed):
            write()
    journal.turn_end()
    journal.close()
    assert words(path) == []
    assert verify(path).state == "intact"


def test_a_header_that_could_not_be_read_again_is_not_written(path: Path) -> None:
    with pytest.raises(HeaderTooLong) as caught:
        Journal.create(path, continues="a" * (1 << 20))
    assert caught.value.length > caught.value.longest
    assert not path.exists()
    Journal.create(path, continues="a" * (caught.value.longest - 500)).close()
    assert len(read(path).header.continues or "") == caught.value.longest - 500


@pytest.mark.parametrize("place", ["pipe", "/dev/full", "/dev/null"])
def test_what_is_no_regular_file_is_not_written_to(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotASession, match="a session is a regular file"):
        Journal.open(tmp_path / place)


def test_a_record_of_another_session_is_chained_anew(path: Path, tmp_path: Path) -> None:
    line = b'{"prev":"%b","batch":-4,"kind":"decision","n":1.0}' % (b"a" * 64)
    with Journal.open(path) as journal:
        journal.append(said("one"))
    with Journal.open(tmp_path / "copy.jsonl") as journal:
        journal.append(*[record for record in read(path).records() if not isinstance(record, Header)])
        journal.append(Unknown("decision", line))
    assert verify(tmp_path / "copy.jsonl").counts == {"header": 1, "message": 1, "decision": 1}
    assert b'"kind":"decision","n":1.0}' in (tmp_path / "copy.jsonl").read_bytes()


WRITER = """
import sys
import tracemalloc
from handrail.filters import user
from handrail.sessions import Cost, Journal, MessageRecord, Passphrase
secret = Passphrase(sys.argv[3], cost=Cost(n=1 << 10, p=1)) if sys.argv[3] else None
with Journal.open(sys.argv[1], fsync=sys.argv[2], passphrase=secret) as journal:
    number = 0
    while True:
        number += 1
        batch = [MessageRecord(path="desk", message=user(f"{number}.{part}")) for part in range(number % 4 + 1)]
        journal.append(*batch)
        print(number, flush=True)
"""


@pytest.mark.parametrize(
    ("fsync", "passphrase"), [("always", ""), ("turn", ""), ("never", ""), ("turn", "nobody knows")]
)
def test_a_killed_writer_loses_nothing_that_was_acknowledged(path: Path, fsync: Fsync, passphrase: str) -> None:
    secret = Passphrase(passphrase) if passphrase else None
    for acknowledged in (1, 7, 40):
        path.unlink(missing_ok=True)
        command = [sys.executable, "-c", WRITER, str(path), fsync, passphrase]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                if int(line) == acknowledged:
                    os.kill(writer.pid, signal.SIGKILL)
                    break
        with Journal.open(path, lock_timeout=10, passphrase=secret):
            pass
        numbers = [int(word.partition(".")[0]) for word in words(path, secret)]
        whole = [number for number in range(1, max(numbers) + 1) for _ in range(number % 4 + 1)]
        assert numbers == whole
        assert max(numbers) >= acknowledged
        assert verify(path, passphrase=secret).state == "intact"


def synced(act: Callable[[], object]) -> int:
    """How many times the disk was waited for."""
    waits: list[object] = []

    def look(frame: object, event: str, called: object) -> None:
        if event == "c_call" and called in (os.fsync, getattr(os, "fdatasync", None)):
            waits.append(called)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(before)
    return len(waits)


@pytest.mark.parametrize(
    ("fsync", "waits"), [("always", (1, 0, 0, 0)), ("turn", (0, 1, 1, 1)), ("never", (0, 0, 0, 0))]
)
def test_the_disk_is_waited_for_when_the_policy_says(path: Path, fsync: Fsync, waits: tuple[int, ...]) -> None:
    journal = Journal.open(path, fsync=fsync)
    written = synced(lambda: journal.append(said("one"), said("two")))
    turn = synced(journal.turn_end)
    journal.append(said("three"))
    effect = synced(journal.before_effect)
    journal.append(said("four"))
    assert (written, turn, effect, synced(journal.close)) == waits


def test_a_new_session_and_its_name_are_on_the_disk_before_anything_is_said(path: Path) -> None:
    assert synced(lambda: Journal.open(path).close()) == 2
    assert synced(lambda: Journal.open(path.with_name("other"), fsync="never").close()) == 0


def test_told_to_wait_for_the_disk_a_journal_does_so_whatever_its_policy(path: Path) -> None:
    with Journal.open(path, fsync="never") as journal:
        journal.append(said("one"))
        assert (synced(journal.sync), synced(journal.sync)) == (1, 0)


def test_a_record_that_cannot_be_encoded_leaves_neither_words_nor_memory_behind(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "s", fsync="never") as journal:
        end, settings = journal.end, {"long": "x" * 20_000_000, "odd": object()}
        tracemalloc.start()
        with pytest.raises(TypeError):
            journal.append(AgentRecord(name="A", settings=settings))
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert (journal.end, kept < 1_000_000) == (end, True)
        journal.append(TurnRecord(path="A", run="r", event="start"))
    assert (verify(tmp_path / "s").state, verify(tmp_path / "s").counts) == ("intact", {"header": 1, "turn": 1})
