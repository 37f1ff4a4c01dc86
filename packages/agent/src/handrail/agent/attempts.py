"""When a tool that failed is run again: what may pass, and how long is waited."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import BuildError

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from handrail.agent.tools import Tool

LONGEST_WAIT = 60.0
"""Seconds that are waited at most, whatever a service asks for."""
_PASSING = frozenset({408, 409, 425, 429})


class TookTooLong(TimeoutError):
    """A tool did not end within its own timeout. It was cancelled, and may be tried again where that is safe."""


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed soon: a timeout, a connection, or an HTTP status that passes. Where the error
    itself says so (`retryable`, True or False), that holds."""
    said = _of(error, "retryable")
    if isinstance(said, bool):
        return said
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    status = _of(_of(error, "response"), "status_code")
    if type(status) is int:
        return status in _PASSING or 500 <= status < 600
    # An error of httpx can only be there where httpx is loaded.
    httpx: Any = sys.modules.get("httpx")
    if httpx is None or not isinstance(error, httpx.TransportError):
        return False
    return not isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)


def asked_by(error: BaseException, now: float) -> float | None:
    """Seconds that an error asks to wait, by its own `retry_after` or by the headers of its response, 60 at most; None
    where it asks for nothing that can be read."""
    said = _of(error, "retry_after")
    if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
        return min(said, LONGEST_WAIT)
    headers = _of(_of(error, "response"), "headers")
    if not isinstance(headers, Mapping):
        return None
    # What reads dates of the field is only loaded where a service gave one.
    from handrail.agent.http.retries import asked_wait

    asked = asked_wait({str(name).lower(): str(value) for name, value in headers.items()}, now)
    return None if asked is None else min(asked, LONGEST_WAIT)


def _of(value: object, name: str) -> Any:
    # The error is the tool's own, and so is what a look at it may raise.
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001
        return None


def check_retries(tool: Tool) -> None:
    """Whether a tool may be run again as it says. Raises `BuildError`."""
    key = tool.idempotency_key
    if key is not None and not isinstance(key, str) and not callable(key):
        raise BuildError(f"the idempotency_key of {tool.name} is a function or the name of an argument, not {key!r}")
    if type(tool.retries) is not int or tool.retries < 0:
        raise BuildError(f"retries of {tool.name} is a whole number from 0, not {tool.retries!r}")
    delay = tool.retry_delay
    if type(delay) not in (int, float) or not 0 <= delay <= LONGEST_WAIT:
        raise BuildError(f"retry_delay of {tool.name} is in seconds from 0 to {LONGEST_WAIT:.0f}, not {delay!r}")
    kinds = () if tool.retry_on is None else tool.retry_on
    if type(kinds) is not tuple or not all([isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds]):
        raise BuildError(f"retry_on of {tool.name} is a tuple of exception classes, not {kinds!r}")
    if tool.retries and tool.side_effects not in ("pure", "read_only") and key is None:
        raise BuildError(
            f"{tool.name} has retries and is {tool.side_effects}: run again, it might do its work twice. "
            "Give it an idempotency_key, or side_effects='pure' or 'read_only'"
        )


class Attempts(msgspec.Struct, frozen=True):
    """How often a tool is run again, and for which errors.

    The wait grows from `first_wait` seconds, doubled each time, plus as much as that by chance, up to a minute; an
    error that asks for a wait gets that. `sleep` and `now` (seconds since 1970) are the clock.
    """

    retries: int
    retry_on: tuple[type[Exception], ...] | None = None
    first_wait: float = 0.5
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time

    async def run(self, attempt: Callable[[int], Awaitable[Any]]) -> Any:
        """What `attempt(number)` gives, the number counting from 1; the last error where no attempt succeeds."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.retries + 1),
            wait=self._wait,
            retry=retry_if_exception(self.worthwhile),
            reraise=True,
        )
        number = 0

        async def once() -> Any:
            nonlocal number
            number += 1
            return await attempt(number)

        return await retrying(once)

    def worthwhile(self, error: BaseException) -> bool:
        """Whether the tool is run again. A cancel never has it run again."""
        if not isinstance(error, Exception):
            return False
        if self.retry_on is None:
            return is_transient(error)
        return isinstance(error, self.retry_on) and _of(error, "retryable") is not False

    def _wait(self, state: RetryCallState) -> float:
        from tenacity import wait_exponential, wait_random

        error = state.outcome.exception() if state.outcome else None
        asked = asked_by(error, self.now()) if error is not None else None
        if asked is not None:
            return asked
        growing = wait_exponential(multiplier=self.first_wait, max=LONGEST_WAIT)
        return min(growing(state) + wait_random(0, self.first_wait)(state), LONGEST_WAIT)
