"""New files that are there whole or not at all: each is written beside its place, and gets its name last."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from handrail.sessions.errors import JournalFailed, SessionConflict, SessionExists
from handrail.sessions.opening import nameable, open_locked, sync_folder

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.owning import OpenFile

_PATIENCE = 10.0
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


@contextmanager
def making(target: Path) -> Iterator[BinaryIO]:
    """An empty file to write to, which at the end of the block is on the disk and has the name `target`.

    Until then it stands beside that as `NAME.part`, locked; what a killed process left there is written over. Raises
    `SessionExists` where there is a file at the target, `SessionConflict` where another still makes the same file after
    some seconds, or `JournalFailed` where it cannot be made.
    """
    try:
        _refuse_made(target)
        part = target.with_name(f"{target.name}.part")
        file = _begun(target, part)
        try:
            _refuse_made(target)
            os.ftruncate(file.fileno(), 0)
            with open(file.fileno(), "wb", closefd=False) as stream:
                yield stream
            os.fsync(file.fileno())
            _publish(part, target)
            sync_folder(os.path.dirname(target) or ".")
        finally:
            # Before the lock goes: whoever has it next must not find a file that is taken away.
            part.unlink(missing_ok=True)
            file.close()
    except FileExistsError:
        raise SessionExists(target) from None
    except OSError as error:
        raise JournalFailed(target, None, error) from error
    except JournalFailed as error:
        raise JournalFailed(target, None, error.error) from error


def _begun(target: Path, part: Path) -> OpenFile:
    try:
        return open_locked(part, _PATIENCE, new=False)
    except SessionConflict:
        raise SessionConflict(target, _PATIENCE, "another makes this file at this moment") from None


def _refuse_made(target: Path) -> None:
    if nameable(target).exists():
        raise SessionExists(target)


def _publish(part: Path, target: Path) -> None:
    try:
        os.link(part, target)  # which, other than to rename it, overwrites nothing
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS or target.exists():
            raise
        part.rename(target)
