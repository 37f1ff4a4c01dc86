"""A limit on seconds really cancels what takes too long, and is told from a cancel and from other timeouts."""

import asyncio
import contextlib
import sys
from typing import Any

import pytest

from agent.desks import answers, failure, hear, roles, tasks
from handrail.agent import Agent, FunctionModel, LimitExceeded, Limits, ScriptedModel, handoff
from handrail.agent.events import LimitReached
from handrail.agent.kernel import Kernel, Middleware, around_chat
from handrail.agent.limits import Budget
from handrail.filters import breaches, call, full

SOON = Limits(max_seconds=0.02)


class Stuck:
    """Things that never end by themselves, and remember that they were stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.stopped = 0

    async def __call__(self, *_: Any) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped += 1
        return "never"

    async def hang(self) -> str:
        """A tool."""
        return await self()


@pytest.mark.parametrize("names", [["hang"], ["hang", "hang"]])
async def test_a_run_that_takes_too_long_is_cancelled_with_its_tools_and_keeps_its_transcript(names: list[str]) -> None:
    stuck = Stuck()
    calls = [call(name, call_id=f"c{number}") for number, name in enumerate(names)]
    error = await failure(Agent("X", model=ScriptedModel(calls), tools=[stuck.hang]), "go", limits=SOON)
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, error.agent) == ("max_seconds", 0.02, "X")
    assert (stuck.stopped, tasks()) == (len(names), set())
    assert (roles(error.messages), breaches(error.messages)) == ("ua" + "t" * len(names), [])


async def test_a_model_that_does_not_answer_in_time_is_cancelled_and_listeners_hear_of_the_limit() -> None:
    stuck = Stuck()
    heard = await hear(Agent("X", model=FunctionModel(stuck)), "go", limits=SOON)
    assert isinstance(heard.error, LimitExceeded)
    assert ([event.limit for event in heard.of(LimitReached)], stuck.stopped) == (["max_seconds"], 1)
    assert sys.exc_info() == (None, None, None)


async def test_a_cancel_from_outside_stays_a_cancel() -> None:
    stuck = Stuck()
    agent = Agent("X", model=FunctionModel(stuck), limits=Limits(max_seconds=60))
    running = asyncio.create_task(agent.run("go"))
    await stuck.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert stuck.stopped == 1


async def test_a_timeout_of_the_works_own_making_is_not_taken_for_the_limit() -> None:
    class Impatient(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            raise TimeoutError("mine")

    agent = Agent("X", model=ScriptedModel("Hello."), middleware=[Impatient()], limits=Limits(max_seconds=60))
    with pytest.raises(TimeoutError, match="mine"):
        await agent.run("go")


async def test_an_agents_own_seconds_bound_each_of_its_turns() -> None:
    stuck = Stuck()
    b = Agent("B", model=FunctionModel(stuck), limits=SOON)
    a = Agent("A", model=ScriptedModel(call("transfer_to_b", call_id="h1")), handoffs=[b])
    error = await failure(a, "go", limits=Limits(max_seconds=60))
    assert isinstance(error, LimitExceeded)
    assert (error.value, error.agent, stuck.stopped) == (0.02, "B", 1)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_child_that_takes_too_long_is_an_error_of_its_call_and_the_caller_goes_on(waits: bool) -> None:
    stuck = Stuck()
    child = Agent("Child", model=FunctionModel(stuck), limits=SOON)
    asked = call("transfer_to_child", call_id="t1") if waits else call("child", call_id="t1", input="x")
    boss = Agent(
        "Boss",
        model=ScriptedModel(asked, "I go on."),
        tools=[] if waits else [child.to_tool()],
        handoffs=[handoff(child, returns=full())] if waits else [],
    )
    result = await boss.run("go", limits=Limits(max_seconds=60))
    ((call_id, text),) = answers(result.messages)
    assert (result.output, call_id, stuck.stopped, tasks()) == ("I go on.", "t1", 1, set())
    assert "max_seconds=0.02" in text


async def test_the_seconds_of_the_run_end_it_within_a_child_too() -> None:
    stuck = Stuck()
    child = Agent("Child", model=FunctionModel(stuck), limits=Limits(max_seconds=60))
    boss = Agent("Boss", model=ScriptedModel(call("child", call_id="t1", input="x")), tools=[child.to_tool()])
    error = await failure(boss, "go", limits=SOON)
    assert isinstance(error, LimitExceeded)
    assert (error.value, error.agent, stuck.stopped, breaches(error.messages)) == (0.02, "Boss", 1, [])


async def test_who_swallows_the_cancel_does_not_save_the_run() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "still here"
        return "never"

    model = ScriptedModel(call("stubborn", call_id="c1"), "done")
    error = await failure(Agent("X", model=model, tools=[stubborn]), "go", limits=SOON)
    assert isinstance(error, LimitExceeded)
    assert (error.limit, len(model.requests)) == ("max_seconds", 1)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_run_that_never_waits_is_refused_its_next_call_when_the_time_is_over() -> None:
    budget = Budget(Limits(max_seconds=0.001))

    async def never_waits() -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + 0.002
        while loop.time() < ends:
            pass
        budget.check_call("any")

    with pytest.raises(LimitExceeded, match="max_seconds"):
        await budget.in_time(never_waits())


async def test_within_a_deadline_the_time_that_is_left_can_be_read() -> None:
    budget = Budget(Limits.only(max_seconds=60))
    assert budget.left() == {"max_seconds": 60}

    async def look() -> Any:
        return budget.left()["max_seconds"]

    assert 59 < await budget.in_time(budget.in_time(look())) <= 60
    assert 59 < budget.left()["max_seconds"] < 60


async def test_a_hook_that_never_returns_is_named_when_the_time_has_run_out() -> None:
    @around_chat
    async def hangs(request: Any, call_next: Any) -> Any:
        await asyncio.Event().wait()

    with pytest.raises(LimitExceeded) as raised:
        await Agent("X", model=ScriptedModel(), middleware=[hangs]).run("go", limits=Limits(max_seconds=0.02))
    assert raised.value.__notes__ == ["the time ran out in hangs.around_chat"]
    with pytest.raises(LimitExceeded):
        await Kernel(ScriptedModel(), middleware=[hangs], limits=Limits(max_seconds=0.02)).chat("go")


async def test_work_that_keeps_the_cancel_to_itself_has_reached_the_limit_all_the_same() -> None:
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "still here"

    with pytest.raises(LimitExceeded, match="max_seconds"):
        await Budget(SOON).in_time(stubborn())
