"""Hearing a run as it goes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

from handrail.agent.errors import RunError
from handrail.agent.events import Event
from handrail.agent.reports import Crossing
from handrail.agent.telling import LEAD, Emit
from handrail.agent.threads import ended

ResultT = TypeVar("ResultT")


class Stream(Generic[ResultT]):
    """A run that is heard as it goes. Use it with `async with`, and iterate over its events."""

    def __init__(self, begin: Callable[..., Awaitable[ResultT]], handoffs: Sequence[Crossing] = ()) -> None:
        self._begin = begin
        self._handoffs = handoffs
        self._events: deque[Event] = deque()
        # While nobody waits, an event is put down and that is all.
        self._emit = Emit(self._events.append)
        self._begun = False
        self._waiting: list[asyncio.Future[None]] = []
        self._rooms: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[ResultT] | None = None

    @property
    def result(self) -> ResultT:
        """The run's result, once its events have ended. Raises what the run raised, or `RunError` before the end."""
        if self._task is None or not self._task.done():
            raise RunError("the run has not ended yet; its result is there when its events have ended")
        if self._task.cancelled():
            raise RunError("the run was cancelled before it ended, so it has no result")
        return self._task.result()

    @property
    def handoffs(self) -> Sequence[Crossing]:
        """Each boundary that was crossed so far, as `result.handoffs` will hold it: there before its `HandoffEnd`."""
        return tuple(self._handoffs)

    async def __aenter__(self) -> Stream[ResultT]:
        if self._task is not None:
            raise RunError("a stream is one run; call stream() again for another")
        begun: Any = self._begin(self._emit, (self._events, self._wait_for_room))
        self._task = asyncio.get_running_loop().create_task(begun)
        self._task.add_done_callback(self._wake)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        task = self._task
        if task is None:
            return
        if not task.done():
            task.cancel()
            await ended([task])
        if not task.cancelled():
            task.exception()  # taken note of: it was raised to whoever listened to the end

    def __aiter__(self) -> Stream[ResultT]:
        return self

    async def __anext__(self) -> Event:
        events = self._events
        if not events and not await self._more():
            raise StopAsyncIteration
        if self._rooms and len(events) <= LEAD // 2:
            self._make_room()
        return events.popleft()

    async def _more(self) -> bool:
        """Waits for an event; false when there will be none. Raises what the run raised."""
        while not self._events:
            if self._task is None:
                raise RunError("a stream is used with `async with`")
            if self._task.done():
                await self._task
                return False
            if not self._begun:
                # The run begins when this one pauses, and has mostly something to tell before it first waits.
                self._begun = True
                await asyncio.sleep(0)
                continue
            heard = asyncio.get_running_loop().create_future()
            self._waiting.append(heard)
            self._emit.take = self._ring
            try:
                await heard
            except asyncio.CancelledError:
                # Whoever else waits is to be woken as before.
                if heard in self._waiting:
                    self._waiting.remove(heard)
                raise
        return True

    def _ring(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    async def _wait_for_room(self) -> None:
        while len(self._events) > LEAD:
            room = asyncio.get_running_loop().create_future()
            self._rooms.append(room)
            await room

    def _make_room(self) -> None:
        # Agents that run side by side each wait by themselves.
        rooms, self._rooms = self._rooms, []
        _resolve(rooms)

    def _wake(self, _: asyncio.Task[Any] | None = None) -> None:
        # As do those who listen side by side: each looks again whether there is anything for it.
        self._emit.take = self._events.append
        waiting, self._waiting = self._waiting, []
        _resolve(waiting)


def _resolve(futures: Sequence[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
