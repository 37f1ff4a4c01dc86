"""What belongs to one process alone: files that are open and locked. A child that is forked lets go of its copies.

It would hold the lock beyond its parent's end, and might write between its parent's records.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Owned(Protocol):
    """Something that a forked child may not have."""

    def disown(self) -> None:
        """Lets go of this process's copy, and leaves alone what it stands for. Doing so again does nothing."""


_owned: WeakSet[Owned] = WeakSet()


def own(thing: Owned) -> None:
    """This belongs to the process that it is in now, as long as it lives."""
    _owned.add(thing)


def _after_fork() -> None:
    for thing in tuple(_owned):
        thing.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
