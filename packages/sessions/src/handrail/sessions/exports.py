"""Sealed copies: the lines of a session, and a footer that counts them and names the last one's hash."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from handrail.sessions.codec import encode, unchained
from handrail.sessions.errors import DamagedSession, JournalFailed, SessionExists
from handrail.sessions.lines import ZEROS, Progress, chained, follows, link
from handrail.sessions.opening import nameable
from handrail.sessions.places import Given, located
from handrail.sessions.reader import Reading
from handrail.sessions.records import Footer, Header, Writable
from handrail.sessions.tally import Tally

if TYPE_CHECKING:
    from pathlib import Path

_BROKEN = "it does not follow the line before it"


def export(source: Given, path: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
    """Writes a sealed copy of the session `source` to the new file `path`, which is there whole or not at all.

    A file that is sealed already is copied as it is; what is torn at the end is left out. Raises `OSError`,
    `NotASession` or `UnsupportedVersion` where the source cannot be read, `DamagedSession` where a line is no record or
    does not follow the one before it, `SessionExists` for a target that is there, or `JournalFailed` where it cannot be
    written.
    """
    from pathlib import Path

    reading, target = Reading(located(source), progress), Path(path)
    try:
        nameable(target)
    except OSError as error:
        raise JournalFailed(target, None, error) from error
    if target.exists():
        raise SessionExists(target)
    part = Path(f"{os.fspath(path)}.part")
    try:
        with part.open("wb") as copy:
            os.chmod(part, 0o600)
            _copy(reading, copy)
            copy.flush()
            os.fsync(copy.fileno())
        part.rename(target)
    except OSError as error:
        raise JournalFailed(target, None, error) from error
    finally:
        part.unlink(missing_ok=True)
    return target


def _copy(reading: Reading, copy: BinaryIO) -> None:
    tally = Tally()
    head = ZEROS
    for number, _, line, record in reading.lines():
        if not follows(line, head, getattr(record, "prev", None)):
            raise DamagedSession(reading.path, number, _BROKEN)
        head = link(line)
        tally.take(record)
        copy.write(line + b"\n")
    if not reading.sealed:
        copy.write(chained(head, 0, encode(Footer(counts=tally.counts, head=head))) + b"\n")


def to_go_on_from(reading: Reading) -> Iterator[Writable]:
    """A session's records without what only its own file can have. Raises `DamagedSession` where a line is no record
    or does not follow the one before it."""
    head = ZEROS
    for number, _, line, record in reading.lines():
        if not follows(line, head, getattr(record, "prev", None)):
            raise DamagedSession(reading.path, number, _BROKEN)
        head = link(line)
        if not isinstance(record, Header | Footer):
            try:
                yield unchained(record)
            except ValueError as error:
                raise DamagedSession(reading.path, number, str(error)) from None
