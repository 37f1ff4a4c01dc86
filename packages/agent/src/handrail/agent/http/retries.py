"""When a failed call is made again: after how long, how often, and when not."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, TypeVar

import msgspec

from handrail.agent.errors import ModelError, ModelTimeout

if TYPE_CHECKING:
    from tenacity import RetryCallState

_Answer = TypeVar("_Answer")
_SECONDS = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*", re.ASCII)


class Retries(msgspec.Struct, frozen=True):
    """How often a call that failed in passing is made again, and how long is waited before.

    Connections that fail, 429 and 5xx are worth another try; so is a stream that breaks before its first delta. The
    service's `Retry-After` is obeyed to the second; where it asks for more than `longest_wait` seconds, or for
    nothing that can be read, the error is raised at once or the wait grows from `first_wait`, doubled each time up to
    `top_wait`, plus as much as `first_wait` by chance. `sleep` and `now` (seconds since 1970) are the clock.
    """

    times: int = 2
    longest_wait: float = 60.0
    first_wait: float = 0.5
    top_wait: float = 8.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.time

    async def call(self, attempt: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """What an attempt gives; the error of the last one where none succeeds."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        retrying = AsyncRetrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.times + 1),
            wait=self._wait,
            retry=retry_if_exception(self.worthwhile),
            reraise=True,
        )
        return await retrying(attempt)

    def worthwhile(self, error: BaseException) -> bool:
        """Whether the same call may succeed soon. A service that was too slow may be at work on it: that is no case."""
        if not isinstance(error, ModelError) or not error.retryable:
            return False
        if isinstance(error, ModelTimeout) and error.kind in ("read", "total"):
            return False
        return error.retry_after is None or error.retry_after <= self.longest_wait

    def _wait(self, state: "RetryCallState") -> float:
        from tenacity import wait_exponential, wait_random

        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, ModelError) and error.retry_after is not None:
            return error.retry_after
        growing = wait_exponential(multiplier=self.first_wait, max=self.top_wait)
        return growing(state) + wait_random(0, self.first_wait)(state)


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a service asks to wait, or None where it asks for nothing that can be read.

    `Retry-After` holds seconds or a date (RFC 9110, 10.2.3), `retry-after-ms` milliseconds; a date gone by is 0.
    """
    milliseconds = _SECONDS.fullmatch(headers.get("retry-after-ms", ""))
    if milliseconds:
        return float(milliseconds[1]) / 1000
    asked = headers.get("retry-after", "")
    seconds = _SECONDS.fullmatch(asked)
    return float(seconds[1]) if seconds else _until(asked, now)


def _until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # Without a zone the field is in UTC all the same, and not in the time of this machine.
    return max((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now, 0.0)
