"""What belongs to one process alone: files that are open and locked, and the locks of threads. A child that is forked
lets go of its copies.

It would hold a file's lock beyond its parent's end, might write between its parent's records, and would wait for ever
for a lock that a thread of its parent had.
"""

from __future__ import annotations

import os
from io import FileIO
from typing import Protocol
from weakref import ref


class Owned(Protocol):
    """Something that a forked child may not have."""

    def disown(self) -> None:
        """Lets go of this process's copy, and leaves alone what it stands for. Doing so again does nothing."""


# What becomes of it when a thing goes is no step of Python's: an interrupt in such a step would be lost.
_owned: set[ref[Owned]] = set()


def own(thing: Owned) -> None:
    """This belongs to the process that it is in now, as long as it lives."""
    _owned.add(ref(thing, _owned.discard))


class OpenFile(FileIO):
    """A file that this process has open to write, by its descriptor. When nobody has it any more it is closed, and its
    lock goes: whatever cut short who opened it, and whoever forgot to close it (who gets a `ResourceWarning`)."""

    def __init__(self, file: int, name: str) -> None:
        # `FileIO` closes without a step of Python's, so that no interrupt keeps it from that.
        super().__init__(file, "r+")
        self.name = name
        own(self)

    def disown(self) -> None:
        """Closes this process's copy."""
        self.close()


class OpenFolder:
    """The same of a folder, which `FileIO` does not open. Its lock is held for moments alone."""

    def __init__(self, path: os.PathLike[str]) -> None:
        self.number = os.open(path, os.O_RDONLY)
        own(self)

    def disown(self) -> None:
        """Closes this process's copy."""
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)


def _after_fork() -> None:
    for thing in [each() for each in tuple(_owned)]:
        if thing is not None:
            thing.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
