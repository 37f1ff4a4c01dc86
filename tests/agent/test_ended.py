"""A turn that has ended leaves nothing for the collector, and its context can still be read."""

import gc
from typing import Any

import pytest

from handrail.agent import Agent, RunContext, RunError, ScriptedModel, handoff, tool
from handrail.filters import call

KEPT: list[RunContext[Any]] = []


@tool(side_effects="pure")
async def keep(context: RunContext[Any]) -> str:
    """Keeps its context."""
    KEPT.append(context)
    return "kept"


async def test_the_context_of_a_turn_that_has_ended_can_be_read_and_does_nothing_any_more() -> None:
    KEPT.clear()
    result = await Agent("X", model=ScriptedModel(call("keep", call_id="c1"), "Done."), tools=[keep]).run("go")
    [context] = KEPT
    assert (context.path, context.call_id, context.messages) == ("X", "c1", tuple(result.messages))
    assert list(context.state) == ["messages"]
    context.tell("nobody hears this")
    with pytest.raises(RunError, match="the turn of X has ended"):
        context.handoff("Y")


async def test_runs_and_their_handoffs_leave_nothing_for_the_collector() -> None:
    b = Agent("B", model=ScriptedModel(*["Done."] * 20))
    a = Agent("A", model=ScriptedModel(*[call("transfer_to_b")] * 20), handoffs=[handoff(b)])
    await a.run("go")
    gc.collect()
    gc.disable()
    try:
        for _ in range(19):
            await a.run("go")
        assert gc.collect() < 19
    finally:
        gc.enable()
