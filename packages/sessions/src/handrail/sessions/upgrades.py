"""New files made of a session: a sealed copy, and one of today's version made of an older one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from handrail.sessions.lines import ZEROS, Progress, link
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.places import Given, located
from handrail.sessions.reader import Reading
from handrail.sessions.records import VERSION
from handrail.sessions.tails import TornTail

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.opening import Compression


def export(
    source: Given,
    path: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    passphrase: Secret = None,
    compression: Compression | None = None,
) -> Path:
    """Writes a sealed copy of the session `source` to the new file `path`, which is there whole or not at all.

    A file that is sealed already is copied as it is; what is torn at the end is left out. With a passphrase an
    encrypted session is copied as it stands, and a plain one is encrypted, under the same id. `compression` is `gzip`
    or `zstd`, and without it told by a path that ends in `.gz` or `.zst`.

    Raises `OSError`, `NotASession`, `UnsupportedVersion`, `OutdatedSession` or `EncryptionError` where the source
    cannot be read or copied, `DamagedSession` where a line is no record or does not follow the one before it,
    `SessionExists` for a target that is there, `SessionConflict` for one that another makes at this moment,
    `LineTooLong`, or `JournalFailed` where it cannot be written.
    """
    from pathlib import Path

    from handrail.sessions.exports import write_sealed

    passphrase = hidden(passphrase)
    target = Path(path)
    write_sealed(located(source), target, progress, passphrase, compression)
    return target


class Migrated(msgspec.Struct, frozen=True):
    """What a migration did: the new file, the versions before and after, how many records it has (its footer not
    counted), its head and that of the old file, and what was torn there and is not in it."""

    path: Path
    before: int
    after: int
    records: int
    old_head: str
    head: str
    sealed: bool
    torn: TornTail | None = None

    def __str__(self) -> str:
        what = f"migrated from version {self.before} to {self.after}" if self.before != self.after else "copied"
        already = "" if self.before != self.after else f", it is of version {self.after} already"
        torn = f"; left out: {self.torn}" if self.torn is not None else ""
        seal = "sealed" if self.sealed else "not sealed"
        return f"{what}{already}: {self.records} records, {seal}, head {self.head} (before: {self.old_head}){torn}"


def migrate(
    source: Given, target: str | os.PathLike[str], *, progress: Progress | None = None, passphrase: Secret = None
) -> Migrated:
    """Writes a session of an older version to a new file of today's, with the same id and a fresh chain; a sealed one
    is sealed again, an encrypted one encrypted again with the same passphrase. The source stays as it is.

    Raises what `read` does, `DamagedSession` also where a line does not follow the one before it, and `SessionExists`
    or `JournalFailed` where the target cannot be made.
    """
    from pathlib import Path

    from handrail.sessions.exports import rewritten, write_new

    passphrase = hidden(passphrase)
    reading, path = Reading(located(source), progress, passphrase), Path(target)
    lines = _Counted(rewritten(reading, passphrase, sealed=reading.sealed))
    write_new(path, lines, None)
    return Migrated(
        path=path,
        before=reading.version,
        after=VERSION,
        records=lines.count - reading.sealed,
        old_head=reading.head,
        head=lines.head,
        sealed=reading.sealed,
        torn=reading.torn,
    )


class _Counted:
    """Lines as they are taken, how many there were, and the last one's hash."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self.count = 0
        self.head = ZEROS

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.count += 1
            self.head = link(line)
            yield line
