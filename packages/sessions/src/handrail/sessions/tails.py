"""Where the whole part of a session file ends: what a crash in the middle of a write leaves behind.

A last record that only lacks its newline is whole. Anything else after the last newline is torn, and so is a batch of
which not every record arrived.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import BinaryIO

import msgspec

from handrail.filters.patterns import lazy

BLOCK = 1 << 16
_SOME = 8
"""The most records of a batch that are looked at one by one."""
_FOOTER = lazy(rb'\{"prev":"[0-9a-f]{64}","kind":"f')
_BATCH = lazy(rb'\{"prev":"[0-9a-f]{64}","batch":(-?\d{1,9}),')


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
    """Looks at the end of the file, and no further back than its last batch; holds one record at a time."""
    size = file.seek(0, os.SEEK_END)
    backwards = _backwards(file, size)
    start, _ = next(backwards, (0, 0))
    written = _without_zeros(file, start, size)
    kept = _record(file, start, written)
    if kept:
        return _whole_batch(file, size, Tail(written, kept, False, _missing_newline(written, size)))
    torn = None
    if size > start:
        problem = (
            "a record that was not written to its end" if written > start else "zero bytes where no record was written"
        )
        torn = TornTail(start, size - start, problem)
    return _whole_batch(file, size, Tail(start, _read(file, *next(backwards, (0, 0))), True, torn))


def _missing_newline(written: int, size: int) -> TornTail:
    zeros = ", and zero bytes follow it" if size > written else ""
    return TornTail(written, size - written, f"the last record is whole but has no newline{zeros}")


def _whole_batch(file: BinaryIO, size: int, tail: Tail) -> Tail:
    place = batch_of(tail.last)
    if not place:
        return tail
    # The last record is number -place after the first of its batch, or is that first itself.
    arrived = max(0, -place)
    lines = _backwards(file, tail.end - 1 if tail.terminated else tail.end)
    start, end = next(islice(lines, arrived, None), (0, 0))
    followers = batch_of(_read(file, start, min(end, start + BLOCK)))
    if followers <= arrived:
        return tail
    problem = f"only {arrived + 1} of the {followers + 1} records of a batch"
    last = _read(file, *next(_backwards(file, start - 1), (0, 0))) if start else b""
    return Tail(start, last, True, TornTail(start, size - start, problem))


def batch_of(line: bytes) -> int:
    """What a line says of its batch: how many records follow in it, or its own place as a negative number."""
    found = _BATCH.match(line)
    return int(found[1]) if found else 0


class Batches:
    """Whether the lines of a file stand in the batches that they name, told one after the other."""

    def __init__(self) -> None:
        self.left = 0
        """How many records of the batch have not come yet."""
        self._place = 0

    def problem(self, batch: int) -> str:
        """What is wrong with a line that says this of its batch; empty where nothing is."""
        if not self.left:
            self.left, self._place = max(batch, 0), 0
            return "it is of a batch that does not stand before it" if batch < 0 else ""
        self.left, self._place = self.left - 1, self._place - 1
        return "" if batch == self._place else f"record {1 - self._place} of a batch has to stand here"

    def take(self, batches: Iterable[int]) -> bool:
        """Whether lines that say this of their batches stand in them; where they do not, none of them was told."""
        left, place, coming = self.left, self._place, iter(batches)
        for batch in coming:
            if left:
                left, place = left - 1, place - 1
                if batch != place:
                    return False
            elif batch < 0:
                return False
            else:
                left, place = batch, 0
                if batch > _SOME:
                    # Many at once, since a batch may hold hundreds.
                    some = list(islice(coming, min(batch, sys.maxsize)))
                    left, place = batch - len(some), -len(some)
                    if some != list(range(-1, place - 1, -1)):
                        return False
        self.left, self._place = left, place
        return True


def _without_zeros(file: BinaryIO, start: int, end: int) -> int:
    """Where the zero bytes begin that stand before byte `end`."""
    while end > start:
        block = _read(file, max(start, end - BLOCK), end)
        kept = block.rstrip(b"\0")
        end -= len(block) - len(kept)
        if kept:
            break
    return end


def _record(file: BinaryIO, start: int, end: int) -> bytes:
    """What stands between two bytes, where it is a record; else nothing."""
    # Of what cannot be a record only the ends are read: it may be of any length.
    if _read(file, start, min(end, start + 1)) != b"{" or not _read(
        file, max(start, end - BLOCK), end
    ).rstrip().endswith(b"}"):
        return b""
    line = _read(file, start, end)
    return line if _is_record(line) else b""


def _is_record(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        import json

        try:
            return isinstance(json.loads(line, parse_int=str), dict)
        except (ValueError, RecursionError):
            return False
    return True


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _backwards(file: BinaryIO, end: int) -> Iterator[tuple[int, int]]:
    """Where the pieces between newlines before byte `end` begin and end, last first."""
    stop = end
    while end > 0:
        start = max(0, end - BLOCK)
        block = _read(file, start, end)
        while (newline := block.rfind(b"\n")) >= 0:
            yield start + newline + 1, stop
            stop = start + newline
            block = block[:newline]
        end = start
    yield 0, stop


def lines_backwards(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines before byte `end`, last first, without their newlines; leaves the file at the end of each."""
    for start, stop in _backwards(file, end):
        if stop > start:
            yield _read(file, start, stop)


def was_footer(line: bytes) -> bool:
    """Whether a last line of an unknown kind has what only a footer has: it counts the records, or names the hash of
    the line before it a second time."""
    import json

    fields = json.loads(line, parse_int=str)
    counts = fields.get("counts")
    return fields.get("head", "") == fields.get("prev") or (isinstance(counts, dict) and "header" in counts)


def footer_begins(file: BinaryIO, offset: int) -> bool:
    """Whether what stands at this byte begins as a footer does."""
    return _FOOTER.match(_read(file, offset, offset + BLOCK)) is not None
