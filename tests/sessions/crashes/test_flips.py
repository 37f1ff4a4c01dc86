"""One bit, byte or line of a session's file is changed: an error or a verdict tells it, wherever a check can know.

What none can know without a kept head: in a plain session that is not sealed, a change within its last line, behind
`prev`, that leaves it a record of its batch. What means nothing, such as the time in a gzip header or the spare bits of
base64, may change too: the records are the same then.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.filters import user
from handrail.sessions import (
    Journal,
    MessageRecord,
    NotASession,
    Passphrase,
    SessionError,
    UnsupportedVersion,
    Verdict,
    export,
    read,
    verify,
)
from handrail.sessions.lines import link
from sessions.conversations import WORDS, Conversation, put, secret

KINDS = ("plain", "encrypted", "sealed", "sealed encrypted", "gzip", "zstd")


@dataclass(frozen=True)
class Kept:
    """A file as it was, and what is known of it."""

    data: bytes
    passphrase: Passphrase | None
    sealed: bool
    verdict: Verdict
    records: list[object]

    @property
    def last(self) -> int:
        """Where the last line begins."""
        return self.data.rstrip(b"\n").rfind(b"\n") + 1

    def found(self, path: Path, data: bytes) -> str:
        """What is found of the file after a change: a state, or the name of an error of ours."""
        put(path, data)
        try:
            verdict = verify(path, passphrase=self.passphrase)
        except SessionError as error:
            return type(error).__name__
        if verdict.state == "intact" and list(read(path, passphrase=self.passphrase).records()) == self.records:
            return "the same"
        return verdict.state


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flips")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    """A session of each kind, of two batches."""
    return {kind: kept(tmp_path_factory.mktemp("kept"), kind, 2) for kind in KINDS}


def kept(folder: Path, kind: str, count: int = 1) -> Kept:
    """A small session of this kind."""
    name = kind.replace(" ", "-")
    path, passphrase = folder / f"{name}-{count}", secret(WORDS) if "encrypted" in kind else None
    with Journal.open(path, fsync="never", passphrase=passphrase) as journal:
        for number in range(count):
            journal.append(*[MessageRecord(path="desk", message=user("Hi", id=f"{number}{part}")) for part in "ab"])
    end = {"gzip": ".gz", "zstd": ".zst"}.get(kind, ".sealed")
    sealed = kind not in ("plain", "encrypted")
    if sealed:
        path = export(path, path.with_suffix(end), passphrase=passphrase)
    records: list[object] = list(read(path, passphrase=passphrase).records())
    return Kept(path.read_bytes(), passphrase, sealed, verify(path, passphrase=passphrase), records)


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Every one that differs from this in one bit, and where."""
    for place, byte in enumerate(data):
        for bit in range(8):
            yield place, data[:place] + bytes([byte ^ 1 << bit]) + data[place + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encrypted", "sealed", "sealed encrypted", "gzip", "zstd"])
def test_every_flipped_bit_is_found_or_means_nothing(folder: Path, kind: str) -> None:
    session = kept(folder, kind)
    missed = [place for place, data in flips(session.data) if session.found(folder / "flip", data) == "intact"]
    assert missed == []


def test_in_a_plain_journal_only_a_flipped_bit_that_leaves_the_last_line_a_record_is_missed(folder: Path) -> None:
    session = kept(folder, "plain")
    line = session.data[session.last :]
    missed = [(place, data) for place, data in flips(session.data) if session.found(folder / "flip", data) == "intact"]
    front = len(b'{"prev":"",') + 64
    for place, data in missed:
        assert place >= session.last + front
        fields = json.loads(data[session.last :])
        assert (data[session.last : session.last + front], fields["batch"]) == (line[:front], -1)
        assert link(data[session.last : -1]) != session.verdict.head
    text = session.last + line.index(b'"Hi"')
    assert {text + 1, text + 2} <= {place for place, _ in missed}


@pytest.mark.parametrize("kind", KINDS)
def test_every_shorter_file_is_found_but_one_that_ends_with_a_batch_of_a_journal(
    folder: Path, sessions: dict[str, Kept], kind: str
) -> None:
    session = sessions[kind]
    ends = {place + 1 for place, byte in enumerate(session.data) if byte == 10}
    for cut in range(len(session.data)):
        found = session.found(folder / "cut", session.data[:cut])
        if found == "intact":
            assert kind not in ("gzip", "zstd")
            assert cut in ends
            assert not verify(folder / "cut", passphrase=session.passphrase).sealed
        else:
            assert found in ("torn", "damaged", "NotASession")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_lines_and_bytes_put_in_doubled_or_swapped_are_found(
    folder: Path, sessions: dict[str, Kept], kind: str, data: st.DataObject
) -> None:
    session = sessions[kind]
    if kind in ("gzip", "zstd") or data.draw(st.booleans(), "bytes"):
        at = data.draw(st.integers(1, session.last or len(session.data)), "at")
        put = data.draw(st.binary(min_size=1, max_size=40) | st.just(session.data[at : at + 30] or b"x"), "put in")
        changed = session.data[:at] + put + session.data[at:]
    else:
        lines = session.data.splitlines(keepends=True)
        one = data.draw(st.integers(0, len(lines) - 2), "one")
        other = data.draw(st.integers(one + 1, len(lines) - 1), "other")
        how = data.draw(st.sampled_from(["swap", "double", "take out"]))
        if how == "swap":
            lines[one], lines[other] = lines[other], lines[one]
        elif how == "double":
            lines.insert(other, lines[one])
        else:
            del lines[one]
        changed = b"".join(lines)
    assert session.found(folder / "changed", changed) != "intact"


@settings(max_examples=150)
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_long_conversation_is_found_before_its_last_line(folder: Path, place: int, bit: int) -> None:
    path = folder / "long"
    if not path.exists():
        with Conversation(path) as conversation:
            for number in range(40):
                conversation.say("desk", user(f"Is parcel {number} there?"))
                conversation.use_tool("desk", "look", "ask", backwards=True)
    data = bytearray(path.read_bytes())
    data[place % (data.rstrip(b"\n").rfind(b"\n") + 1)] ^= 1 << bit
    changed = folder / "long-changed"
    put(changed, bytes(data))
    try:
        found: str = verify(changed).state
    except (NotASession, UnsupportedVersion) as error:
        found = str(error)
    assert found in ("damaged", "tampered") or found.startswith(str(changed))
