"""Where the whole part of a session file ends: what a crash in the middle of a write leaves behind.

A last record that only lacks its newline is whole. Anything else after the last newline is torn, and so is a batch of
which not every record arrived.
"""

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import msgspec

BLOCK = 1 << 16
_BATCH = re.compile(rb'\{"prev":"[0-9a-f]{64}","batch":(-?\d{1,9}),')


class TornTail(msgspec.Struct, frozen=True):
    """What does not belong to the whole part: `length` bytes from byte `offset` on, none where only a newline is
    missing."""

    offset: int
    length: int
    problem: str

    def __str__(self) -> str:
        return f"{self.problem} ({self.length} bytes from byte {self.offset} on)" if self.length else self.problem


class Tail(msgspec.Struct, frozen=True):
    """The end of the whole part of a file: its last line (empty where there is none), whether that has its newline,
    and what is torn after it."""

    end: int
    last: bytes = b""
    terminated: bool = True
    torn: TornTail | None = None


def find_tail(file: BinaryIO) -> Tail:
    """Looks at the end of the file, and no further back than its last batch."""
    size = file.seek(0, os.SEEK_END)
    backwards = _backwards(file, size)
    start, fragment = next(backwards, (0, b""))
    kept = fragment.rstrip(b"\0")
    if _is_record(kept):
        return _whole_batch(file, size, Tail(start + len(kept), kept, False, _missing_newline(start, fragment, kept)))
    torn = None
    if fragment:
        problem = "a record that was not written to its end" if kept else "zero bytes where no record was written"
        torn = TornTail(start, size - start, problem)
    _, last = next(backwards, (0, b""))
    return _whole_batch(file, size, Tail(start, last, True, torn))


def _missing_newline(start: int, fragment: bytes, kept: bytes) -> TornTail:
    problem = "the last record is whole but has no newline" + (", and zero bytes follow it" if kept != fragment else "")
    return TornTail(start + len(kept), len(fragment) - len(kept), problem)


def _whole_batch(file: BinaryIO, size: int, tail: Tail) -> Tail:
    place = batch_of(tail.last)
    if not place:
        return tail
    # The last record is number -place after the first of its batch, or is that first itself.
    arrived = max(0, -place)
    lines = _backwards(file, tail.end - 1 if tail.terminated else tail.end)
    start, first = next(islice(lines, arrived, None), (0, b""))
    followers = batch_of(first)
    if followers <= arrived:
        return tail
    problem = f"only {arrived + 1} of the {followers + 1} records of a batch"
    _, last = next(_backwards(file, start - 1), (0, b"")) if start else (0, b"")
    return Tail(start, last, True, TornTail(start, size - start, problem))


def batch_of(line: bytes) -> int:
    """What a line says of its batch: how many records follow in it, or its own place as a negative number."""
    found = _BATCH.match(line)
    return int(found[1]) if found else 0


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line, parse_int=str), dict)
    except (ValueError, RecursionError):
        return False


def _backwards(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """The pieces between newlines before byte `end`, last first, each with the offset of its first byte."""
    pieces: list[bytes] = []
    while end > 0:
        start = max(0, end - BLOCK)
        file.seek(start)
        block = file.read(end - start)
        while (newline := block.rfind(b"\n")) >= 0:
            yield start + newline + 1, b"".join([block[newline + 1 :], *reversed(pieces)])
            pieces.clear()
            block = block[:newline]
        pieces.append(block)
        end = start
    yield 0, b"".join(reversed(pieces))
