"""A tool that needs approval has a layer that asks, and a layer that keeps tools keeps tools that there are."""

from typing import Any

import pytest

from handrail.agent import Agent, BuildError, ScriptedModel, Tool, tool
from handrail.agent.kernel import Middleware
from handrail.agent.middleware import Approval


def paying(needs: Any = True) -> Tool:
    async def pay(amount: int) -> str:
        return f"paid {amount}"

    return tool(needs_approval=needs)(pay)


async def look() -> str:
    return "looked"


def yes(request: Any) -> bool:
    return True


@pytest.mark.parametrize("needs", [True, lambda arguments: False])
def test_a_tool_that_needs_approval_is_refused_where_nobody_asks(needs: Any) -> None:
    with pytest.raises(BuildError, match=r"the tool pay of X needs approval.*Approval\(…\)"):
        Agent("X", model=ScriptedModel(), tools=[paying(needs)])


def test_a_tool_that_a_layer_brings_needs_approval_as_well() -> None:
    class Paying(Middleware):
        tools = (paying(),)

    with pytest.raises(BuildError, match="the tool pay of X needs approval"):
        Agent("X", model=ScriptedModel(), middleware=[Paying()])
    agent = Agent("X", model=ScriptedModel(), middleware=[Paying(), Approval(yes)])
    assert "tool pay (side_effecting, needs approval)" in agent.describe()


async def test_a_tool_that_a_layer_of_the_run_brings_needs_approval_as_well() -> None:
    class Paying(Middleware):
        tools = (paying(),)

    agent = Agent("X", model=ScriptedModel("done"))
    with pytest.raises(BuildError, match="the tool pay of X needs approval"):
        await agent.run("go", middleware=[Paying()])
    assert (await agent.run("go", middleware=[Paying(), Approval(yes)])).output == "done"


def test_a_name_that_is_no_tools_is_refused_when_all_agents_are_known() -> None:
    layer = Approval(yes, tools=["lok"])
    with pytest.raises(BuildError, match="Approval keeps the tool 'lok', but the tools of X are look"):
        Agent("X", model=ScriptedModel(), tools=[look], middleware=[layer]).check()


def test_one_layer_may_keep_the_tools_of_several_agents() -> None:
    layer = Approval(yes, tools=["look", "pay"])
    other = Agent("B", model=ScriptedModel(), tools=[paying()], middleware=[layer])
    Agent("A", model=ScriptedModel(), tools=[look], handoffs=[other], middleware=[layer]).check()
    with pytest.raises(BuildError, match="keeps the tool 'look', but the tools of B are pay"):
        other.check()
