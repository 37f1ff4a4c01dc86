"""Deadlines: what takes too long is cancelled, and ends with the limit that it reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TypeVar

from handrail.agent.errors import LimitExceeded

_T = TypeVar("_T")


class Span:
    """So many seconds for all that is done under a budget, from when the first of it begins."""

    __slots__ = ("_budget", "_ends", "_loop", "seconds")

    def __init__(self, seconds: float, budget: object) -> None:
        self.seconds = seconds
        self._budget = budget
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends = 0.0

    def begin(self) -> float:
        """When it ends, by the clock of the event loop; it runs from the first time that this is asked."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._ends = self._loop.time() + self.seconds
        return self._ends

    @property
    def left(self) -> float:
        """How many seconds are left."""
        return self.seconds if self._loop is None else max(self._ends - self._loop.time(), 0.0)

    def reached(self) -> LimitExceeded:
        """The error that says that none are."""
        return LimitExceeded("max_seconds", self.seconds, budget=self._budget)


async def bounded(span: Span, work: Awaitable[_T]) -> _T:
    """What the work gives. When the span has ended the work is cancelled and waited for, and the span's `LimitExceeded`
    raised. A cancel from outside stays one, and what the work raises comes out as it is."""
    ends = span.begin()
    if not span.left:
        if isinstance(work, Coroutine):
            work.close()
        raise span.reached()
    try:
        async with asyncio.timeout_at(ends) as timeout:
            try:
                given = await work
            except asyncio.CancelledError as cancelled:
                if type(cancelled) is asyncio.CancelledError or not timeout.expired():
                    raise
                raise asyncio.CancelledError from cancelled  # Python 3.11 knows a cancel by its very class alone
    except TimeoutError as late:
        if not timeout.expired():
            raise
        # The cancel it came from shows where the work was waiting.
        raise span.reached() from late.__cause__
    if timeout.expired():
        raise span.reached()  # somebody kept the cancel to himself, and went on
    return given
