"""Failed calls are made again when that is worth it, and never before the service allows."""

from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime

import pytest

from handrail.agent.errors import (
    InvalidResponse,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from handrail.agent.http.retries import Retries, asked_wait

NOW = parsedate_to_datetime("Wed, 21 Oct 2026 07:28:00 GMT").timestamp()


def failing(*errors: Exception, then: str = "answer") -> Callable[[], Awaitable[str]]:
    left = list(errors)

    async def attempt() -> str:
        if left:
            raise left.pop(0)
        return then

    return attempt


def recording(times: int = 2) -> tuple[Retries, list[float]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return Retries(times, sleep=sleep, now=lambda: NOW), waits


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:20 GMT"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:20 -0000"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 09:28:20 +0200"}, 20.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 09:28:00 GMT"}, 7200.0),
        ({"retry-after": "99999999999999999999"}, 1e20),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_a_wait_is_read_in_seconds_dates_and_milliseconds_and_junk_is_none(
    headers: dict[str, str], wait: float | None
) -> None:
    assert asked_wait(headers, NOW) == wait


async def test_the_asked_time_is_waited_and_then_the_call_is_made_again() -> None:
    retries, waits = recording()
    assert await retries.call(failing(ModelUnavailable("busy", retry_after=7))) == "answer"
    assert waits == [7]


async def test_without_an_asked_time_the_wait_grows_up_to_its_top_with_some_chance_in_it() -> None:
    retries, waits = recording(times=8)
    await retries.call(failing(*[ModelUnavailable("busy")] * 8))
    assert all(low <= wait <= low + 0.5 for wait, low in zip(waits, [0.5, 1, 2, 4, 8, 8, 8, 8], strict=True))
    assert len(set(waits[4:])) > 1


async def test_the_last_failure_is_raised_when_there_are_no_more_tries() -> None:
    retries, waits = recording()
    with pytest.raises(ModelUnavailable, match="third"):
        await retries.call(failing(ModelUnavailable("1st"), ModelUnavailable("2nd"), ModelUnavailable("third")))
    assert len(waits) == 2


async def test_a_service_that_asks_for_too_long_a_wait_fails_at_once() -> None:
    retries, waits = recording()
    with pytest.raises(ModelUnavailable) as caught:
        await retries.call(failing(ModelUnavailable("busy", retry_after=7200)))
    assert (caught.value.retry_after, waits) == (7200, [])


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ModelUnavailable("503"), True),
        (ModelTimeout("not connected", kind="connect"), True),
        (StreamBroken("before the first word"), True),
        (ModelTimeout("silent", kind="read"), False),
        (ModelTimeout("too long", kind="total"), False),
        (ModelRefused("400"), False),
        (InvalidResponse("garbage"), False),
        (ModelUnavailable("quota", retryable=False), False),
    ],
    ids=lambda value: str(value),
)
def test_only_what_may_pass_is_worth_another_call(error: ModelError, again: bool) -> None:
    assert Retries().worthwhile(error) is again


async def test_errors_that_are_not_of_a_model_pass_through_at_once() -> None:
    retries, waits = recording()
    with pytest.raises(ZeroDivisionError):
        await retries.call(failing(ZeroDivisionError()))
    assert waits == []
