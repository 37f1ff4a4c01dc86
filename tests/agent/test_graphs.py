"""What an agent can reach is found once, before any request."""

from typing import Any

import pytest

from agent.desks import requests
from handrail.agent import Agent, BuildError, FunctionModel, NameClash, ScriptedModel, UnknownTarget, handoff
from handrail.filters import call

QUIET = FunctionModel(lambda request: "Hello.")


async def test_two_agents_may_hand_to_each_other_by_name_or_by_callable() -> None:
    model = ScriptedModel(call("transfer_to_b"), call("transfer_to_c"), call("transfer_to_a"), "home")
    c = Agent("C", model=model, handoffs=["A"])
    b = Agent("B", model=model, handoffs=[lambda: c])
    result = await Agent("A", model=model, handoffs=[b]).run("go")
    assert (result.output, result.agent) == ("home", "A")


async def test_a_name_nobody_reachable_has_is_refused_before_any_request_listing_those_there_are() -> None:
    model = ScriptedModel("never")
    agent = Agent("A", model=model, handoffs=["Nobody", Agent("B", model=model)])
    with pytest.raises(UnknownTarget, match=r"Nobody.*A, B") as raised:
        await agent.run("go")
    assert (raised.value.name, raised.value.source, list(raised.value.known)) == ("Nobody", "A", ["A", "B"])
    assert requests(model) == []


def test_a_name_is_found_through_a_sub_agent_and_further() -> None:
    deep = Agent("Deep", model=QUIET)
    child = Agent("Child", model=QUIET, handoffs=[deep])
    agent = Agent("A", model=QUIET, tools=[child.to_tool()], handoffs=["Deep"])
    agent.check()
    assert set(agent.graph().agents) == {"A", "Child", "Deep"}
    assert agent.graph().agents["A"].targets == {"transfer_to_deep": "Deep"}


def test_one_name_on_two_agents_is_refused_naming_both() -> None:
    first = Agent("Twin", model=QUIET, description="the elder")
    second = Agent("Twin", model=QUIET, description="the younger")
    b = Agent("B", model=QUIET, handoffs=[second])
    with pytest.raises(NameClash, match=r"the elder.*the younger"):
        Agent("A", model=QUIET, handoffs=[first, b]).check()


def test_an_agent_does_not_hand_over_to_itself() -> None:
    with pytest.raises(BuildError, match="hands over to itself"):
        Agent("A", model=QUIET, handoffs=["A"]).check()


def test_a_callable_that_gives_no_agent_is_refused() -> None:
    nobody: Any = lambda: "not an agent"  # noqa: E731  # as people write it
    with pytest.raises(BuildError, match="'not an agent', which is no agent"):
        Agent("A", model=QUIET, handoffs=[nobody]).check()


def test_a_late_target_is_asked_for_once() -> None:
    asked: list[int] = []

    def late() -> Agent:
        asked.append(1)
        return b

    b = Agent("B", model=QUIET)
    agent = Agent("A", model=QUIET, handoffs=[handoff(late)])
    agent.check()
    agent.describe()
    agent.run_sync("go")
    assert len(asked) == 1


async def test_every_model_is_closed_and_one_that_fails_does_not_keep_the_others_open() -> None:
    closed: list[str] = []

    class Closing(FunctionModel):
        async def aclose(self) -> None:
            closed.append(self.name)
            if self.name == "first":
                raise OSError("already gone")

    first, second = (Closing(lambda request: "hi", name=name) for name in ("first", "second"))
    graph = Agent("A", model=first, handoffs=[Agent("B", model=second)]).graph()
    with pytest.raises(OSError, match="already gone"):
        await graph.aclose()
    assert closed == ["first", "second"]
