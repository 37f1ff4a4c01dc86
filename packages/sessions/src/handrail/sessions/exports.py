"""Sealed copies: the lines of a session, and a footer that counts them and names the last one's hash."""

import os
from pathlib import Path
from typing import BinaryIO

from handrail.sessions.codec import encode
from handrail.sessions.errors import DamagedSession, JournalFailed, SessionExists
from handrail.sessions.lines import ZEROS, Progress, chained, follows, link
from handrail.sessions.reader import Reading
from handrail.sessions.records import Footer
from handrail.sessions.tally import Tally


def export(source: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Progress | None = None) -> Path:
    """Writes a sealed copy of the session file `source` to the new file `path`, which is there whole or not at all.

    A file that is sealed already is copied as it is; what is torn at the end is left out. Raises `SessionExists`,
    `DamagedSession` where the chain of lines is broken, or `JournalFailed`.
    """
    reading, target = Reading(Path(source), progress), Path(path)
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
        if not follows(line, head):
            raise DamagedSession(reading.path, number, "it does not follow the line before it")
        head = link(line)
        tally.take(record)
        copy.write(line + b"\n")
    if not reading.sealed:
        copy.write(chained(head, 0, encode(Footer(counts=tally.counts, head=head))) + b"\n")
