"""What waits: for a sync function beside the event loop, and for tasks that were told to stop."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from typing import Any

from handrail.filters import HandrailError


async def in_thread(fn: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """What the function returns, or raises, run in a thread of its own with the caller's context variables.

    A thread cannot be stopped: where the caller is cancelled, the function goes on by itself and nobody waits for it,
    neither the loop when it closes nor the program when it ends. Its `StopIteration` comes out as a `RuntimeError`.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def tell(set_end: Callable[[Any], None], value: Any) -> None:
        if not ended.done():
            set_end(value)

    def work() -> None:
        try:
            end = ended.set_result, context.run(fn, **arguments)
        except StopIteration as error:
            # No future can carry one.
            stopped = RuntimeError(f"StopIteration: {error}" if str(error) else "StopIteration")
            stopped.__cause__ = error
            end = ended.set_exception, stopped
        except BaseException as error:  # noqa: BLE001  # it is raised to whoever waits
            end = ended.set_exception, error
        try:
            loop.call_soon_threadsafe(tell, *end)
        except RuntimeError:
            return  # the loop has closed, and nobody waits any more

    threading.Thread(target=work, name=getattr(fn, "__name__", "tool"), daemon=True).start()
    return await ended


async def ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Waits until the tasks have ended, also where the waiting is cancelled: then that is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while waiting := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # taken note of, whoever is told of it
    if cancelled is not None:
        raise cancelled


async def run_all(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs all at once. The first to raise stops the others, which are awaited; the first in order is raised."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await ended(tasks)
    results = [asyncio.CancelledError() if task.cancelled() else task.exception() for task in tasks]
    errors = [error for error in results if error is not None]
    raise_first([error for error in errors if not isinstance(error, asyncio.CancelledError)] or errors)


def raise_first(errors: Sequence[BaseException]) -> None:
    """Raises the first of several errors, if any; it carries the others, and says what was beside it."""
    if not errors:
        return
    first, *others = errors
    if isinstance(first, HandrailError):
        first.others = tuple(others)
    for other in others:
        first.add_note(f"beside it: {type(other).__name__}: {other}")
    raise first


async def called(fn: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, sync or async; a sync one runs in a thread."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004
        return await fn(*arguments)
    value = await in_thread(functools.partial(fn, *arguments), {})
    return await value if inspect.isawaitable(value) else value
