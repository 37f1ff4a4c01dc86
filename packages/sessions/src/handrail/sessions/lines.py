"""The lines of a session file and the chain that ties each to the one before.

A line's `prev` is SHA-256 in hex over the bytes of the line before it, without its newline; 64 zeros in the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias

from handrail.filters.hashes import sha256

ZEROS = "0" * 64
BLOCK = 1 << 20
Progress: TypeAlias = Callable[[int], None]
"""Called now and then with the number of bytes read so far."""

_NAMED = '{"prev":"'
_HEAD = _NAMED.encode()
_LINKED = len(_HEAD) + len(ZEROS)
_TOGETHER = 1 << 16


def link(line: bytes) -> str:
    """What the next line's `prev` has to be."""
    return sha256(line).hexdigest()


def links(lines: Iterable[bytes]) -> list[str]:
    """The same for each of these lines."""
    from hashlib import sha256

    return [hashed.hexdigest() for hashed in map(sha256, lines)]


def chained(prev: str, batch: int, body: bytes) -> bytes:
    """A record's JSON object with its link and its place in a batch put in front; neither may be in it yet."""
    front = f'{{"prev":"{prev}","batch":{batch},' if batch else f'{{"prev":"{prev}",'
    return front.encode() + body[1:]


def follows(line: bytes, prev: str, decoded: str | None = None) -> bool:
    """Whether the line names `prev` as the link to the line before it, and no other: of two, one reader would take the
    first and another the last. `decoded` is the one that its decoder took."""
    return (decoded == prev and line.startswith(_HEAD + prev.encode())) or prev_of(line) == prev


def all_follow(lines: Sequence[bytes], prevs: Sequence[str], decoded: Sequence[str]) -> bool:
    """Whether each line surely follows the line that it has to, `decoded` being what their decoder took; False also
    where a line has to be looked at by itself."""
    named = _NAMED + _NAMED.join(prevs)
    return prevs == decoded and b"".join([line[:_LINKED] for line in lines]) == named.encode()


def prev_of(line: bytes) -> str:
    """The link that a line names, however it is laid out; empty where it names none, or more than one."""
    import json

    try:
        fields = json.loads(line, parse_int=float, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ""
    named = [value for name, value in fields if name == "prev"] if isinstance(fields, _Pairs) else []
    return named[0] if len(named) == 1 and isinstance(named[0], str) else ""


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object as they stand, names that come twice too."""


def each_line(file: BinaryIO, end: int, progress: Progress | None = None) -> Iterator[tuple[int, int, bytes]]:
    """Every line up to byte `end`: its number (from 1), the offset of its first byte, and its bytes without the
    newline."""
    for number, offset, lines in each_block(file, end, progress):
        for place, line in enumerate(lines, number):
            yield place, offset, line
            offset += len(line) + 1


def each_block(file: BinaryIO, end: int, progress: Progress | None = None) -> Iterator[tuple[int, int, list[bytes]]]:
    """The lines up to byte `end`, some at a time: the number of the first (from 1), the offset of its first byte, and
    the lines without their newlines. Holds some KB, or one line where that is longer."""
    number, offset, told = 1, 0, 0
    file.seek(0)
    # After a last record without its newline stands what a power cut left, and it may be of any length.
    while offset < end and (block := file.read(min(_TOGETHER, end - offset))):
        if not block.endswith(b"\n"):
            block += file.readline(end - offset - len(block))
        begin, offset = offset, offset + len(block)
        lines = block.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        del block
        yield number, begin, lines
        number += len(lines)
        if progress is not None and offset < end and offset >= told + BLOCK:
            told = offset
            progress(offset)
    if progress is not None:
        progress(min(offset, end))
