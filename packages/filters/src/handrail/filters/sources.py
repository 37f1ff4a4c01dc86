"""Where ids and times come from: injected, so that a run can be told what they are."""

from __future__ import annotations

import os
import time
from itertools import count

from handrail.filters.hashes import sha256

_PREFIX = 16
_drawn: list[str] = []
if hasattr(os, "register_at_fork"):
    # A process and its child draw from what each finds for itself.
    os.register_at_fork(after_in_child=_drawn.clear)


def _draw() -> str:
    # The system is asked for many prefixes at once: a run needs one, and a thousand runs may begin together.
    try:
        return _drawn.pop()
    except IndexError:
        digits = os.urandom(_PREFIX // 2 * 64).hex()
        _drawn.extend([digits[start : start + _PREFIX] for start in range(_PREFIX, len(digits), _PREFIX)])
        return digits[:_PREFIX]


class IdSource:
    """Message ids: a counter behind one prefix, random unless given.

    A parallel branch has its own source, named by its call, so that its ids do not depend on which branch is faster.
    """

    __slots__ = ("_branches", "_numbers", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix or _draw()
        self._numbers = count(1)
        self._branches: dict[str, int] | None = None

    def next(self) -> str:
        """The next id, such as `3f9a01c2-17`."""
        return f"{self.prefix}-{next(self._numbers)}"

    def branch(self, name: str) -> IdSource:
        """The source of a branch. One name asked for again, as call ids come back, is another branch."""
        if self._branches is None:
            self._branches = {}
        again = self._branches[name] = self._branches.get(name, 0) + 1
        key = sha256(f"{again}\0{name}".encode(errors="replace")).hexdigest()
        return type(self)(f"{self.prefix}.{key[:12]}")


class FixedIds(IdSource):
    """The same ids every time, for tests: `m-1`, `m-2`, …"""

    __slots__ = ()

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)


class Clock:
    """The time of day in milliseconds since 1970 (UTC)."""

    _now = 0

    def __call__(self) -> int:
        now = time.time_ns() // 1_000_000
        if now != self._now:
            self._now = now
        return self._now  # one number for all that happens at once: each would take 32 bytes


class FixedClock(Clock):
    """A time that is the same in every test: it starts at `start` and goes on by `step` milliseconds at each look."""

    def __init__(self, start: int = 0, step: int = 1) -> None:
        self._times = count(start, step)

    def __call__(self) -> int:
        return next(self._times)
