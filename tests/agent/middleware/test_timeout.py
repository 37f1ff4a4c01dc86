"""What does not end in its time is cancelled, and nothing else is taken for that."""

import asyncio
import math
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, failure, hear, pause, result_of, tasks, texts
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    LimitExceeded,
    ModelTimeout,
    ModelUnavailable,
    ScriptedModel,
)
from handrail.agent.errors import CancelSwallowed, TurnTimeout
from handrail.agent.events import Discard, LimitReached, Text
from handrail.agent.kernel import Middleware, ToolResponse, TurnResult
from handrail.agent.middleware import Timeout
from handrail.agent.models import ChatResponse, Delta, TextDelta
from handrail.agent.scripted import pieces
from handrail.filters import assistant, call
from handrail.sessions import Session

SOON = 0.005
LATER = 0.06
"""Where something is to happen before the time is over."""


class Hanging:
    """Waits for ever, as a model's answer or a tool's, and notes when it began and how it ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended: list[str] = []

    async def answer(self, request: Any) -> str:
        return await self.wait()

    async def wait(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        return "never"


async def ok() -> str:
    return "ok"


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, True, "5"])
@pytest.mark.parametrize("what", ["model", "tool", "turn"])
def test_what_is_no_time_is_refused_naming_it(what: str, seconds: Any) -> None:
    with pytest.raises(BuildError, match=f"{what}=.*above 0"):
        Timeout(**{what: seconds})


def test_a_timeout_of_nothing_is_refused() -> None:
    with pytest.raises(BuildError, match="model, tool or turn"):
        Timeout()


async def test_what_ends_in_time_passes() -> None:
    model = ScriptedModel(call("ok", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[ok], middleware=[Timeout(model=9, tool=9, turn=9)]).run("go")
    assert (result.output, answers(result.messages)) == ("done", [("c1", "ok")])


async def test_what_has_no_limit_is_left_alone() -> None:
    async def slow() -> str:
        await asyncio.sleep(2 * SOON)
        return "slow"

    model = ScriptedModel(call("slow", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[slow], middleware=[Timeout(model=SOON)]).run("go")
    assert answers(result.messages) == [("c1", "slow")]


async def test_a_model_that_does_not_answer_is_cancelled_and_may_be_asked_again() -> None:
    hanging = Hanging()
    error = await failure(Agent("X", model=FunctionModel(hanging.answer), middleware=[Timeout(model=SOON)]), "go")
    assert isinstance(error, ModelTimeout)
    assert error.retryable
    assert str(error) == f"function did not answer within {SOON} seconds"
    assert hanging.ended == ["cancelled"]


async def test_each_attempt_of_a_retry_outside_has_its_own_time() -> None:
    class Again(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            except ModelTimeout:
                return await call_next(request)

    async def answer(request: Any) -> str:
        if request.run.attempt == 1:
            await asyncio.Event().wait()
        return f"attempt {request.run.attempt}"

    agent = Agent("X", model=FunctionModel(answer), middleware=[Again(), Timeout(model=SOON)])
    assert (await agent.run("go")).output == "attempt 2"


async def test_two_times_stand_around_one_another_under_two_names() -> None:
    layers = [Timeout(model=9), Timeout(model=SOON, name="each attempt")]
    error = await failure(Agent("X", model=FunctionModel(Hanging().answer), middleware=layers), "go")
    assert str(error) == f"function did not answer within {SOON} seconds"


class Stuck(FunctionModel):
    """Streams two words, and then nothing."""

    closed = False

    async def stream(self, request: Any) -> AsyncGenerator[Delta | ChatResponse, None]:
        try:
            for word in pieces(assistant("so far")):
                yield word
            await asyncio.Event().wait()
            yield TextDelta("never")
        finally:
            self.closed = True


async def test_a_stream_that_stops_is_closed_and_what_came_of_it_is_withdrawn() -> None:
    model = Stuck(lambda request: "")
    heard = await hear(Agent("X", model=model, middleware=[Timeout(model=LATER)]), "go")
    assert isinstance(heard.error, ModelTimeout)
    assert [event.text for event in heard.of(Text)] == ["so ", "far"]
    assert {event.message_id for event in heard.of(Discard)} == {event.message_id for event in heard.of(Text)}
    assert model.closed


async def test_a_tool_that_does_not_end_is_cancelled_and_the_model_is_told() -> None:
    hanging = Hanging()
    model = ScriptedModel(call("wait", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[hanging.wait], middleware=[Timeout(tool=SOON)]).run("go")
    assert answers(result.messages) == [("c1", f"wait did not end within {SOON} seconds.")]
    assert result_of(result.messages, "c1").is_error
    assert hanging.ended == ["cancelled"]


async def test_the_result_of_a_late_tool_is_of_the_class_timeout() -> None:
    seen: list[str] = []

    class Classes(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            seen.append(response.error_class)
            return response

    layers = [Classes(), Timeout(tool=SOON)]
    model = ScriptedModel(call("wait", call_id="c1"), "done")
    await Agent("X", model=model, tools=[Hanging().wait], middleware=layers).run("go")
    assert seen == ["timeout"]


async def test_only_the_late_one_of_calls_side_by_side_is_cancelled() -> None:
    hanging = Hanging()
    model = ScriptedModel([call("wait", call_id="c1"), call("ok", call_id="c2")], "done")
    result = await Agent("X", model=model, tools=[hanging.wait, ok], middleware=[Timeout(tool=SOON)]).run("go")
    late = f"wait did not end within {SOON} seconds."
    assert answers(result.messages) == [("c1", late), ("c2", "ok")]
    assert (hanging.ended, tasks()) == (["cancelled"], set())


async def test_a_late_sub_agent_is_cancelled_with_all_that_it_began() -> None:
    hanging = Hanging()
    child = Agent("Child", model=ScriptedModel(call("wait", call_id="w1")), tools=[hanging.wait])
    model = ScriptedModel(call("child", call_id="t1", input="x"), "done")
    result = await Agent("X", model=model, tools=[child.to_tool()], middleware=[Timeout(tool=LATER)]).run("go")
    assert answers(result.messages) == [("t1", f"child did not end within {LATER} seconds.")]
    assert hanging.ended == ["cancelled"]


async def test_a_turn_that_does_not_end_fails_with_what_was_said_and_no_call_left_open() -> None:
    hanging = Hanging()
    model = ScriptedModel([call("ok", call_id="c1"), call("wait", call_id="c2")])
    error = await failure(Agent("X", model=model, tools=[hanging.wait, ok], middleware=[Timeout(turn=LATER)]), "go")
    assert isinstance(error, TurnTimeout)
    assert isinstance(error, LimitExceeded)
    assert (error.source, error.limit, error.value) == ("X", "turn_seconds", LATER)
    assert str(error) == f"the turn of X did not end within {LATER} seconds; its work was cancelled"
    assert answers(error.messages) == [("c1", "ok"), ("c2", "The call was cancelled.")]
    assert hanging.ended == ["cancelled"]


async def test_a_late_turn_is_told_as_a_limit_that_was_reached() -> None:
    heard = await hear(Agent("X", model=FunctionModel(Hanging().answer), middleware=[Timeout(turn=SOON)]), "go")
    assert [(event.limit, event.value) for event in heard.of(LimitReached)] == [("turn_seconds", SOON)]


async def test_the_time_of_a_turn_ends_when_it_hands_over() -> None:
    async def slow(request: Any) -> str:
        await asyncio.sleep(LATER + SOON)
        return "done"

    b = Agent("B", model=FunctionModel(slow))
    model = ScriptedModel(call("transfer_to_b", call_id="h1"))
    assert (await Agent("A", model=model, handoffs=[b], middleware=[Timeout(turn=LATER)]).run("go")).output == "done"


async def test_a_late_turn_of_a_sub_agent_is_a_failed_tool_to_its_caller() -> None:
    child = Agent("Child", model=FunctionModel(Hanging().answer), middleware=[Timeout(turn=SOON)])
    model = ScriptedModel(call("child", call_id="t1", input="x"), "done")
    result = await Agent("X", model=model, tools=[child.to_tool()]).run("go")
    assert answers(result.messages) == [("t1", f"The agent Child reached turn_seconds={SOON}.")]


async def stubborn() -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "late"
    return "never"


async def test_a_tool_that_keeps_the_cancel_to_itself_does_not_save_a_late_turn() -> None:
    model = ScriptedModel(call("stubborn", call_id="c1"), "done")
    error = await failure(Agent("X", model=model, tools=[stubborn], middleware=[Timeout(turn=SOON)]), "go")
    assert isinstance(error, TurnTimeout)


async def test_a_cancel_from_outside_that_a_late_tool_kept_to_itself_is_told_from_the_timeouts_own() -> None:
    kept: list[str] = []

    async def keeps_both() -> str:
        for by in ("the timeout", "outside"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                kept.append(by)
                if by == "the timeout":
                    run.cancel()
        return "late"

    model = ScriptedModel(call("keeps_both", call_id="c1"), "done")
    agent = Agent("X", model=model, tools=[keeps_both], middleware=[Timeout(turn=SOON)])
    run = asyncio.ensure_future(agent.run("go"))
    with pytest.raises(CancelSwallowed):
        await run
    assert (kept, len(model.requests)) == (["the timeout", "outside"], 1)


async def test_a_tool_that_answers_after_its_time_is_late_all_the_same() -> None:
    model = ScriptedModel(call("stubborn", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[stubborn], middleware=[Timeout(tool=SOON)]).run("go")
    assert answers(result.messages) == [("c1", f"stubborn did not end within {SOON} seconds.")]
    assert result.output == "done"


class Patching(Middleware):
    """Answers by itself where what it called on to was cancelled."""

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            return TurnResult(status="completed", message=assistant("late"))

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            return ChatResponse(assistant("late"))

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except asyncio.CancelledError:
            return ToolResponse("late")


@pytest.mark.parametrize(("limit", "found"), [({"model": SOON}, ModelTimeout), ({"turn": SOON}, TurnTimeout)])
async def test_a_layer_inside_that_answers_after_the_time_does_not_save_it(limit: Any, found: type[Exception]) -> None:
    layers = [Timeout(**limit), Patching()]
    with pytest.raises(found, match=f"within {SOON} seconds"):
        await Agent("X", model=FunctionModel(Hanging().answer), middleware=layers).run("go")


async def test_a_model_that_answers_after_its_time_is_late_all_the_same() -> None:
    async def answer(request: Any) -> str:
        return await stubborn()

    heard = await hear(Agent("X", model=FunctionModel(answer), middleware=[Timeout(model=SOON)]), "go")
    assert isinstance(heard.error, ModelTimeout)
    assert [event.message_id for event in heard.of(Discard)] == [event.message_id for event in heard.of(Text)]


async def test_a_layer_inside_that_answers_for_a_late_tool_does_not_save_it() -> None:
    model = ScriptedModel(call("wait", call_id="c1"), "done")
    layers = [Timeout(tool=SOON), Patching()]
    result = await Agent("X", model=model, tools=[Hanging().wait], middleware=layers).run("go")
    assert answers(result.messages) == [("c1", f"wait did not end within {SOON} seconds.")]


@pytest.mark.parametrize("limit", [{"model": 9}, {"tool": 9}, {"turn": 9}])
async def test_a_cancel_from_outside_that_is_kept_is_no_lateness(limit: Any) -> None:
    hanging = Hanging()
    answer = hanging.answer if "model" in limit else lambda request: call("wait", call_id="c1")
    agent = Agent("X", model=FunctionModel(answer), tools=[hanging.wait], middleware=[Timeout(**limit), Patching()])
    run = asyncio.ensure_future(agent.run("go"))
    await hanging.begun.wait()
    run.cancel()
    with pytest.raises(CancelSwallowed):
        await run


async def test_a_cancel_from_outside_after_the_time_is_over_stays_a_cancel() -> None:
    over, never = asyncio.Event(), asyncio.Event()

    async def tidies() -> str:
        try:
            await never.wait()
        except asyncio.CancelledError:
            over.set()
            await never.wait()
        return "never"

    agent = Agent("X", model=ScriptedModel(call("tidies")), tools=[tidies], middleware=[Timeout(tool=SOON)])
    run = asyncio.ensure_future(agent.run("go"))
    await over.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.mark.parametrize("raised", [ModelUnavailable("busy"), ModelTimeout("of its own"), TimeoutError("of its own")])
async def test_what_the_model_raises_by_itself_passes_as_it_is(raised: Exception) -> None:
    agent = Agent("X", model=ScriptedModel(raised), middleware=[Timeout(model=9, turn=9)])
    with pytest.raises(type(raised)) as found:
        await agent.run("go")
    assert found.value is raised


@pytest.mark.parametrize("raised", [LookupError("gone"), TimeoutError("of its own")])
async def test_what_a_layer_inside_raises_by_itself_passes_as_it_is(raised: Exception) -> None:
    class Failing(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            raise raised

    agent = Agent("X", model=ScriptedModel(call("ok")), tools=[ok], middleware=[Timeout(tool=9, turn=9), Failing()])
    with pytest.raises(type(raised)) as found:
        await agent.run("go")
    assert found.value is raised


async def test_what_a_tool_raises_by_itself_is_told_as_its_own() -> None:
    async def hasty() -> str:
        raise TimeoutError("the printer is off")

    model = ScriptedModel(call("hasty", call_id="c1"), "done")
    result = await Agent("X", model=model, tools=[hasty], middleware=[Timeout(tool=9)]).run("go")
    assert answers(result.messages) == [("c1", "TimeoutError: the printer is off")]


async def test_what_is_raised_while_the_late_call_is_cancelled_passes_as_it_is() -> None:
    async def answer(request: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ModelUnavailable("the line broke") from None
        return "never"

    with pytest.raises(ModelUnavailable, match="the line broke"):
        await Agent("X", model=FunctionModel(answer), middleware=[Timeout(model=SOON)]).run("go")


async def cancelled(agent: Agent, hanging: Hanging) -> None:
    """Cancels a run once it hangs."""
    run = asyncio.ensure_future(agent.run("go"))
    await hanging.begun.wait()
    await pause()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


@pytest.mark.parametrize("limits", [{"model": 9}, {"turn": 9}, {"model": 9, "turn": 9}])
async def test_a_cancel_from_outside_while_the_model_is_asked_travels_as_a_cancel(limits: Any) -> None:
    hanging = Hanging()
    await cancelled(Agent("X", model=FunctionModel(hanging.answer), middleware=[Timeout(**limits)]), hanging)
    assert hanging.ended == ["cancelled"]


async def test_a_cancel_from_outside_while_a_tool_runs_travels_as_a_cancel() -> None:
    hanging = Hanging()
    model = ScriptedModel(call("wait"))
    await cancelled(Agent("X", model=model, tools=[hanging.wait], middleware=[Timeout(tool=9, turn=9)]), hanging)
    assert hanging.ended == ["cancelled"]


async def test_a_session_goes_on_after_a_late_turn(tmp_path: Path) -> None:
    model = ScriptedModel(call("wait", call_id="c1"), "Here I am.")
    agent = Agent("X", model=model, tools=[Hanging().wait], middleware=[Timeout(turn=LATER)])
    with Session(tmp_path / "s.jsonl") as session:
        await failure(agent, "go", session=session)
        result = await agent.run("and now?", session=session)
    assert texts(result.messages) == ["go", "", "The call was cancelled.", "and now?", "Here I am."]
