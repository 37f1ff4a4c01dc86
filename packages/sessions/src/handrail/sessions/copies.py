"""Copies of sessions, byte for byte, into files that are there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from handrail.sessions.errors import DamagedSession
from handrail.sessions.lines import ZEROS, each_line, follows, link
from handrail.sessions.making import making
from handrail.sessions.opening import open_to_read
from handrail.sessions.reader import Reading

if TYPE_CHECKING:
    from pathlib import Path


def copied(lines: Iterator[bytes], target: Path) -> Path:
    """Writes the lines to a new file that is there whole or not at all. Raises what `making` does."""
    with making(target) as copy:
        for line in lines:
            copy.write(line + b"\n")
    return target


class _Link(msgspec.Struct):
    prev: str


def _prev(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_Link).prev
    except (ValueError, RecursionError):
        return None


def whole_lines(reading: Reading) -> Iterator[bytes]:
    """The whole part of a session, line by line, as it is chained; an encrypted one needs no key for it."""
    head = ZEROS
    with open_to_read(reading.place, 1 << 16) as file:
        for number, _, line in each_line(file, reading.end):
            if not follows(line, head, _prev(line)):
                raise DamagedSession(reading.path, number, "it does not follow the line before it")
            head = link(line)
            yield line
