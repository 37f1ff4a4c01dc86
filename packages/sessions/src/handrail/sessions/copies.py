"""Copies of sessions, byte for byte, into files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from handrail.sessions.errors import DamagedSession, JournalFailed, SessionExists
from handrail.sessions.lines import ZEROS, each_line, follows, link
from handrail.sessions.opening import nameable, open_to_read, sync_folder
from handrail.sessions.reader import Reading

if TYPE_CHECKING:
    from pathlib import Path


def copied(lines: Iterator[bytes], target: Path) -> Path:
    """Writes the lines to a new file that is there whole or not at all. Raises `SessionExists` or `JournalFailed`."""
    # Another that copies to the same place at once has a part of its own.
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    try:
        with open(nameable(part), "xb", opener=_private) as copy:
            for line in lines:
                copy.write(line + b"\n")
            copy.flush()
            os.fsync(copy.fileno())
        os.link(part, target)
        sync_folder(str(target.parent))
    except FileExistsError:
        raise SessionExists(target) from None
    except OSError as error:
        raise JournalFailed(target, None, error) from error
    finally:
        with suppress(OSError, ValueError):
            part.unlink(missing_ok=True)
    return target


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Link(msgspec.Struct):
    prev: str


def _prev(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_Link).prev
    except (ValueError, RecursionError):
        return None


def whole_lines(reading: Reading) -> Iterator[bytes]:
    """The whole part of a session, line by line, as it is chained."""
    head = ZEROS
    with open_to_read(reading.place, 1 << 16) as file:
        for number, _, line in each_line(file, reading.end):
            if not follows(line, head, _prev(line)):
                raise DamagedSession(reading.path, number, "it does not follow the line before it")
            head = link(line)
            yield line
