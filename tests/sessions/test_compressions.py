"""Compressed exports: the same session in fewer bytes, and nothing that fills memory or a disk."""

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.filters import last_n, user
from handrail.sessions import (
    CompressedSession,
    DamagedSession,
    Journal,
    LineTooLong,
    MessageRecord,
    NotASession,
    Session,
    crossings,
    export,
    read,
    verify,
)
from handrail.sessions.compressions import FREE, LONGEST_LINE, MOST_TIMES, compressing
from handrail.sessions.opening import Compression
from sessions.conversations import Conversation, put, secret

KINDS: list[Compression] = ["gzip", "zstd"]
SUFFIX = {"gzip": ".gz", "zstd": ".zst"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    with Conversation(path) as conversation:
        conversation.say("triage", user("I was charged twice."))
        conversation.hand_over("triage", "billing", last_n(1))
        conversation.say("billing", user("Well?"))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_copy_is_the_sealed_copy_whatever_it_is_called(path: Path, tmp_path: Path, kind: str) -> None:
    plain = export(path, tmp_path / "plain.jsonl")
    packed = export(path, tmp_path / f"sealed.jsonl{SUFFIX[kind]}")
    renamed = packed.rename(tmp_path / "renamed.jsonl")
    assert renamed.read_bytes() != plain.read_bytes()
    assert [line for _, _, line, _ in read(renamed).lines()] == plain.read_bytes().splitlines()
    verdict = verify(renamed)
    assert (verdict.state, verdict.sealed, verdict.run_again) == ("intact", True, 1)
    assert verdict.head == verify(plain).head
    assert Session(renamed).history("billing")[-1].text == "Well?"
    assert Session(renamed).tail(2) == Session(plain).tail(2) == Session(plain).log[-2:]
    assert len(list(crossings(renamed))) == 1


def test_the_argument_counts_before_the_name(path: Path, tmp_path: Path) -> None:
    made = export(path, tmp_path / "copy.jsonl.gz", compression="zstd")
    assert made.read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    assert export(path, tmp_path / "again.gz").read_bytes() == export(path, tmp_path / "other.gz").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_copy_is_not_written_to_and_can_be_gone_on_from(
    path: Path, tmp_path: Path, kind: Compression
) -> None:
    packed = export(path, tmp_path / "sealed", compression=kind)
    for write in (Journal.open, lambda where: Session(where).append(MessageRecord(path="desk", message=user("more")))):
        with pytest.raises(CompressedSession) as caught:
            write(packed)
        assert caught.value.compression == kind
    with Session.continue_from(packed, tmp_path / "next.jsonl") as session:
        session.append(MessageRecord(path="billing", message=user("more")))
    assert read(tmp_path / "next.jsonl").header.continues == read(packed).head
    plain = export(packed, tmp_path / "unpacked.jsonl")
    assert verify(plain).ok


@pytest.mark.parametrize("kind", KINDS)
def test_cut_off_anywhere_a_compressed_copy_is_damaged_or_no_session(
    path: Path, tmp_path: Path, kind: Compression
) -> None:
    whole = export(path, tmp_path / "sealed", compression=kind).read_bytes()
    cut = tmp_path / "cut"
    for length in range(4, len(whole), 37):
        put(cut, whole[:length])
        verdict = verify(cut)
        assert (verdict.state, verdict.ok) == ("damaged", False)
        assert verdict.line is not None
        assert "ends too early" in verdict.problem or "broken" in verdict.problem
    cut.write_bytes(whole[:3])
    with pytest.raises((NotASession, DamagedSession)):
        read(cut)


@pytest.mark.parametrize("kind", KINDS)
def test_one_changed_byte_of_the_compressed_data_is_never_intact(path: Path, tmp_path: Path, kind: Compression) -> None:
    whole = export(path, tmp_path / "sealed", compression=kind).read_bytes()
    lines = [line for _, _, line, _ in read(tmp_path / "sealed").lines()]
    changed = tmp_path / "changed"
    for place in range(10, len(whole), 11):
        put(changed, whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        verdict = verify(changed)
        # What a decoder does not look at, such as padding, may change: then every line is the same.
        assert verdict.state == "damaged" or [line for _, _, line, _ in read(changed).lines()] == lines


def test_an_encrypted_session_can_be_compressed_too(path: Path, tmp_path: Path) -> None:
    packed = export(path, tmp_path / "sealed.zst", passphrase=secret())
    assert verify(packed).state == "not decrypted"
    assert verify(packed, passphrase=secret()).run_again == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_copy_is_verified_in_little_memory(tmp_path: Path, kind: Compression) -> None:
    with Journal.create(tmp_path / "long.jsonl", fsync="never") as journal:
        for number in range(400):
            journal.append(MessageRecord(path="desk", message=user(f"{number} " * 10_000, id=f"m{number}")))
    packed = export(tmp_path / "long.jsonl", tmp_path / "long", compression=kind)
    tracemalloc.start()
    try:
        assert verify(packed, integrity_only=True).ok
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "long.jsonl").stat().st_size > 14_000_000
    assert peak < 3_000_000


def one_line(write: Callable[[bytes], object]) -> None:
    for _ in range(3 * LONGEST_LINE // (1 << 20) // 2):
        write(b"a" * (1 << 20))


def many_lines(write: Callable[[bytes], object]) -> None:
    for _ in range(FREE // (1 << 20) + 100):
        write((b"a" * 1023 + b"\n") * 1024)


@pytest.mark.parametrize(("fill", "problem"), [(one_line, "line is longer"), (many_lines, "no session does")])
def test_a_small_file_that_grows_without_end_is_refused_in_little_memory(
    path: Path, tmp_path: Path, fill: Callable[[Callable[[bytes], object]], None], problem: str
) -> None:
    bomb = tmp_path / "bomb"
    with bomb.open("wb") as file, compressing(file, "zstd") as stream:
        stream.write(path.read_bytes())
        fill(stream.write)
    assert bomb.stat().st_size < FREE // MOST_TIMES
    tracemalloc.start()
    try:
        verdict = verify(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert verdict.state == "damaged"
    assert problem in verdict.problem
    assert peak < 5_000_000


def test_a_line_that_could_not_be_read_back_is_not_compressed(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "long.jsonl", fsync="never") as journal:
        journal.append(MessageRecord(path="desk", message=user("a" * LONGEST_LINE)))
    with pytest.raises(LineTooLong) as caught:
        export(tmp_path / "long.jsonl", tmp_path / "long.gz")
    assert caught.value.line == 2
    assert not list(tmp_path.glob("long.gz*"))


def test_compressed_data_that_is_no_session_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "other.gz").write_bytes(gzip.compress(b"hello\n"))
    with pytest.raises(NotASession, match="hello"):
        read(tmp_path / "other.gz")
