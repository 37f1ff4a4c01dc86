"""Where a session's lines are: in a file, or at a place that shows itself like one.

A path stays a path. A store that keeps sessions otherwise gives each a `Place`, and whatever reads or writes a session
takes either.
"""

from __future__ import annotations

import errno
import os
import stat
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.writer import Fsync, Journal


class Place(ABC):
    """A session's lines, as one run of bytes; its `str` is what errors call it, and holds no password."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything is kept here."""

    @abstractmethod
    def open_to_read(self, buffering: int = -1) -> BinaryIO:
        """The bytes as they stand now, seekable, without a lock. Raises `FileNotFoundError` where nothing is kept here,
        or `OSError`."""

    @abstractmethod
    def lock(self, fsync: Fsync, timeout: float, *, new: bool) -> Journal:
        """A journal that has the place for itself and has looked at nothing of it yet, made where there is none.

        It overrides how a `Journal` reads back (`read_back`), writes a batch, all of it or nothing (`write`, `settle`),
        cuts (`end_here`), syncs (`flush`, `sync_name`) and lets go (`release`, `closed`).
        `timeout` is how many seconds to wait for another writer. Raises `SessionConflict`, `SessionExists` where `new`
        is asked for and something is kept here, or `JournalFailed`.
        """


_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

Where: TypeAlias = "Path | Place"
"""Where a session is, as everything here keeps it."""
Given: TypeAlias = str | os.PathLike[str] | Place
"""Where a session is, as callers say it."""


def located(place: Given) -> Where:
    """The place itself, or the path that was given."""
    from pathlib import Path

    return place if isinstance(place, Path | Place) else Path(place)


def is_begun(where: Where) -> bool:
    """Whether there is anything to read: a place that is kept, or a path to what is not an empty file."""
    if isinstance(where, Place):
        return where.exists()
    try:
        found = os.stat(where)
    except ValueError:
        return False  # no file has such a name
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    return found.st_size > 0 or not stat.S_ISREG(found.st_mode)
