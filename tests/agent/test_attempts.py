"""A tool is run again after a failure in passing, where that cannot do its work twice, and never too early."""

import asyncio
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.desks import result_of, tasks
from handrail.agent import Agent, BuildError, ModelRefused, ModelUnavailable, RunContext, ScriptedModel, Tool, tool
from handrail.agent.attempts import Attempts, TookTooLong, asked_by, is_transient
from handrail.agent.kernel import around_chat
from handrail.filters import Message, call
from handrail.sessions import Tally, ToolCallRecord, read

NOW = parsedate_to_datetime("Wed, 21 Oct 2026 07:28:00 GMT").timestamp()


def answered(status: int, headers: Any = None) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://localhost/")
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, headers=headers))


class Said(Exception):
    def __init__(self, **about: Any) -> None:
        self.__dict__.update(about)


class Odd(Exception):
    @property
    def response(self) -> Any:
        raise LookupError("nothing here")

    def __str__(self) -> str:
        raise LookupError("nothing to say")


async def once(made: Tool, **options: Any) -> Message:
    """The result of one call of a tool, made by an agent."""
    agent = Agent("X", model=ScriptedModel(call(made.name, call_id="c1"), "done"), tools=[made])
    return result_of((await agent.run("go", **options)).messages, "c1")


def failing(*errors: BaseException, **options: Any) -> tuple[Tool, list[int]]:
    """A tool that raises these, one a call, and then succeeds; and its calls."""
    calls: list[int] = []

    async def it() -> str:
        calls.append(1)
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return "ok"

    return tool(**{"side_effects": "read_only", "retry_delay": 0.0, **options})(it), calls


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (TimeoutError(), True),
        (ConnectionResetError(), True),
        (TookTooLong(), True),
        (ValueError(), False),
        *[(answered(status), True) for status in (408, 409, 425, 429, 500, 502, 503, 504)],
        *[(answered(status), False) for status in (400, 401, 404, 422)],
        (httpx.ConnectError("no"), True),
        (httpx.ReadTimeout("no"), True),
        (httpx.RemoteProtocolError("no"), True),
        (httpx.UnsupportedProtocol("no"), False),
        (httpx.TooManyRedirects("no"), False),
        (ModelUnavailable("down"), True),
        (ModelRefused("no"), False),
        (Said(retryable=True), True),
        (Said(retryable="yes"), False),
        (Odd(), False),
    ],
    ids=lambda value: str(value) if isinstance(value, bool) else type(value).__name__,
)
def test_what_may_pass_is_told_by_its_type_its_status_or_itself(error: Exception, transient: bool) -> None:
    assert is_transient(error) is transient


def test_an_error_that_says_it_will_not_pass_is_believed() -> None:
    error = ConnectionError("for good")
    error.retryable = False  # type: ignore[attr-defined]  # as an application marks one
    assert not is_transient(error)
    assert not Attempts(1, (ConnectionError,)).worthwhile(error)


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (answered(429, {"Retry-After": "7"}), 7.0),
        (answered(429, {"Retry-After": "0.5"}), 0.5),
        (answered(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:20 GMT"}), 20.0),
        (answered(429, {"Retry-After": "Wed, 21 Oct 2026 07:27:00 GMT"}), 0.0),
        (answered(429, {"Retry-After": "Wed, 21 Oct 2026 09:28:00 GMT"}), 60.0),
        (answered(429, {"Retry-After": "99999999999999999999"}), 60.0),
        (answered(429, {"retry-after-ms": "250"}), 0.25),
        *[(answered(429, {"Retry-After": junk}), None) for junk in ("soon", "-3", "nan", "")],
        (Said(retry_after=3), 3.0),
        (Said(retry_after=10**400), 60.0),
        (Said(retry_after=float("inf")), 60.0),
        *[(Said(retry_after=junk), None) for junk in (-1, float("nan"), True, "3", None)],
        (Said(retry_after=2, response=Said(headers={"retry-after": "9"})), 2.0),
        (Said(response=Said(headers={"Retry-After": 9})), 9.0),
        (Said(response=Said(headers="junk")), None),
        (Odd(), None),
    ],
)
async def test_a_wait_that_is_asked_for_is_kept_up_to_a_minute_and_junk_is_none(error: Exception, wait: Any) -> None:
    assert asked_by(error, NOW) == wait
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def attempt(number: int) -> int:
        if number == 1:
            raise error
        return number

    attempts = Attempts(1, (Exception,), first_wait=0.5, sleep=sleep, now=lambda: NOW)
    assert await attempts.run(attempt) == 2
    assert waits == [wait] if wait is not None else 0.5 <= waits[0] <= 1.0


async def test_without_a_wait_that_is_asked_for_it_doubles_with_some_chance_in_it() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def attempt(number: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await Attempts(9, first_wait=1, sleep=sleep).run(attempt)
    assert all(
        low <= wait <= min(low + 1, 60) for wait, low in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True)
    )


async def test_one_attempt_is_one_call_unless_the_tool_says_otherwise() -> None:
    made, calls = failing(ValueError("declined"), side_effects="side_effecting")
    assert ((await once(made)).text, len(calls)) == ("ValueError: declined", 1)
    made, calls = failing(ValueError("declined"), retries=2)
    assert ((await once(made)).text, len(calls)) == ("ValueError: declined", 1)
    made, calls = failing(*[TimeoutError("slow")] * 3, retries=2)
    assert ((await once(made)).text, len(calls)) == ("TimeoutError: slow", 3)
    made, calls = failing(ValueError("declined"), retries=2, retry_on=(ValueError,))
    assert ((await once(made)).text, len(calls)) == ("ok", 2)
    made, calls = failing(TimeoutError("slow"), retries=2, retry_on=(ValueError,))
    assert ((await once(made)).text, len(calls)) == ("TimeoutError: slow", 1)


async def test_a_sync_tool_is_run_again_too() -> None:
    calls: list[int] = []

    @tool(side_effects="pure", retries=1, retry_delay=0.0)
    def it() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError
        return "ok"

    assert ((await once(it)).text, len(calls)) == ("ok", 2)


async def test_each_attempt_has_the_whole_time_and_one_too_long_is_made_again() -> None:
    calls: list[int] = []

    async def hang() -> None:
        calls.append(1)
        await asyncio.Event().wait()

    made = tool(side_effects="pure", retries=2, timeout=0.01, retry_delay=0.0)(hang)
    assert ((await once(made)).text, len(calls)) == ("hang did not end within 0.01 seconds.", 3)
    made = tool(side_effects="pure", retries=2, timeout=0.01, retry_delay=0.0, retry_on=(LookupError,))(hang)
    assert ((await once(made)).text, len(calls)) == ("hang did not end within 0.01 seconds.", 4)


@pytest.mark.parametrize("cancelled", ["while it runs", "while it waits"])
async def test_a_cancel_passes_at_once_and_is_never_tried_again(cancelled: str) -> None:
    begun, calls = asyncio.Event(), []

    async def it() -> None:
        calls.append(1)
        begun.set()
        if cancelled == "while it waits":
            raise TimeoutError
        await asyncio.Event().wait()

    made = tool(side_effects="pure", retries=5, retry_delay=30, retry_on=(Exception,))(it)
    running = asyncio.create_task(Agent("X", model=ScriptedModel(call("it")), tools=[made]).run("go"))
    await begun.wait()
    for _ in range(3):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (len(calls), tasks()) == (1, set())


async def test_a_tool_that_cancels_itself_is_not_run_again() -> None:
    made, calls = failing(asyncio.CancelledError(), retries=3)
    assert ((await once(made)).text, len(calls)) == ("it was cancelled.", 1)


async def test_each_attempt_gets_arguments_of_its_own() -> None:
    seen: list[list[int]] = []

    @tool(side_effects="pure", retries=1, retry_delay=0.0)
    async def it(numbers: list[int]) -> str:
        seen.append(list(numbers))
        numbers.clear()
        if len(seen) == 1:
            raise TimeoutError
        return "ok"

    agent = Agent("X", model=ScriptedModel(call("it", numbers=[1, 2]), "done"), tools=[it])
    await agent.run("go")
    assert seen == [[1, 2], [1, 2]]


async def test_every_attempt_has_its_start_mark_and_the_key_is_the_same(tmp_path: Path) -> None:
    told: list[str] = []

    @tool(side_effects="external", retries=2, retry_delay=0.0, idempotency_key="order")
    async def pay(order: int, run: RunContext[None]) -> str:
        told.append(f"{run.key} {run.attempt}")
        if len(told) < 3:
            raise ConnectionError("down")
        return "paid"

    path = tmp_path / "s.jsonl"
    agent = Agent("X", model=ScriptedModel(call("pay", call_id="c1", order=7), "done"), tools=[pay])
    assert result_of((await agent.run("go", session=path)).messages, "c1").text == "paid"
    marks = [(each.attempt, each.key) for each in read(path).records() if isinstance(each, ToolCallRecord)]
    assert (marks, told) == ([(1, "7"), (2, "7"), (3, "7")], ["7 1", "7 2", "7 3"])
    assert Tally.of(read(path).records()).tools == {"pay": 1}


async def test_how_often_the_model_was_asked_is_no_try_of_its_tools(tmp_path: Path) -> None:
    told: list[int] = []

    @tool(side_effects="external", retries=1, retry_delay=0.0, idempotency_key="order")
    async def pay(order: int, run: RunContext[None]) -> str:
        told.append(run.attempt)
        if len(told) == 1:
            raise ConnectionError("down")
        return "paid"

    @around_chat
    async def again(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    path, model = tmp_path / "s.jsonl", ScriptedModel("no", call("pay", call_id="c1", order=7), "no", "done")
    await Agent("X", model=model, tools=[pay], middleware=[again]).run("go", session=path)
    marks = [each.attempt for each in read(path).records() if isinstance(each, ToolCallRecord)]
    assert marks == told == [1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"retries": -1},
        {"retries": True},
        {"retries": 1.5},
        {"retries": 1, "side_effects": "side_effecting"},
        {"retries": 1, "side_effects": "external"},
        {"retries": 1, "retry_on": ValueError},
        {"retries": 1, "retry_on": (asyncio.CancelledError,)},
        {"retries": 1, "retry_on": ("ValueError",)},
        {"retries": 1, "retry_delay": -1},
        {"retries": 1, "retry_delay": float("nan")},
        {"retries": 1, "retry_delay": 61},
        {"idempotency_key": 7},
    ],
)
def test_what_could_do_harm_or_is_nonsense_is_refused_when_the_tool_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="it"):
        failing(**{"side_effects": "pure", **options})


def test_a_key_that_names_no_argument_is_refused_when_the_agent_is_made() -> None:
    async def it(order: int) -> None:
        return None

    with pytest.raises(BuildError, match="'ordre' to be its key; there are: order"):
        Agent("X", model=ScriptedModel(), tools=[tool(idempotency_key="ordre")(it)])
    schema = {"type": "object", "properties": {"order": {"type": "integer"}}}
    with pytest.raises(BuildError, match="ordre"):
        Agent("X", model=ScriptedModel(), tools=[Tool.from_json_schema("it", "", schema, it, idempotency_key="ordre")])


@pytest.mark.parametrize("key", [lambda arguments: arguments["nothing"], lambda arguments: "", lambda arguments: None])
async def test_without_its_key_a_tool_does_not_run(key: Any) -> None:
    made, calls = failing(idempotency_key=key)
    result = await once(made)
    assert (result.is_error, calls) == (True, [])
    assert "was not run" in result.text


async def test_a_tool_that_keeps_the_cancel_of_its_time_and_answers_later_has_taken_too_long() -> None:
    async def keeps() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "late"
        return "never"

    assert (await once(tool(side_effects="pure", timeout=0.01)(keeps))).text == "keeps did not end within 0.01 seconds."
