"""The lines of a session file and the chain that ties each to the one before.

A line's `prev` is SHA-256 in hex over the bytes of the line before it, without its newline; 64 zeros in the first.
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

from handrail.filters.hashes import sha256

ZEROS = "0" * 64
BLOCK = 1 << 20
Progress: TypeAlias = Callable[[int], None]
"""Called now and then with the number of bytes read so far."""

_HEAD = b'{"prev":"'


def link(line: bytes) -> str:
    """What the next line's `prev` has to be."""
    return sha256(line).hexdigest()


def chained(prev: str, batch: int, body: bytes) -> bytes:
    """A record's JSON object with its link and its place in a batch put in front; neither may be in it yet."""
    front = f'{{"prev":"{prev}","batch":{batch},' if batch else f'{{"prev":"{prev}",'
    return front.encode() + body[1:]


def follows(line: bytes, prev: str, decoded: str | None = None) -> bool:
    """Whether the line names `prev` as the link to the line before it, and no other: of two, one reader would take the
    first and another the last. `decoded` is the one that its decoder took."""
    return (decoded == prev and line.startswith(_HEAD + prev.encode())) or prev_of(line) == prev


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
    newline. Holds one line at a time."""
    offset = 0
    stop = end if progress is None else min(BLOCK, end)
    file.seek(0)
    for number, line in enumerate(file if end else (), 1):
        # After a last record without its newline stands what a power cut left, zero bytes perhaps.
        yield number, offset, line[:-1] if line.endswith(b"\n") else line[: end - offset]
        offset += len(line)
        if offset < stop:
            continue
        if offset >= end:
            break  # what is torn after it may be of any length
        if progress is not None:
            progress(offset)
        stop = min(offset + BLOCK, end)
    if progress is not None:
        progress(min(offset, end))
