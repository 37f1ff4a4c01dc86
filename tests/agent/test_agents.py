"""An agent is a value: checked when it is made, never changed, and used by many runs at once."""

import asyncio
import os
import re
import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from agent.desks import pause, texts
from handrail.agent import Agent, BuildError, FunctionModel, NameClash, ScriptedModel, UnfitName, handoff, tool
from handrail.agent.kernel import ChatRequest, Middleware
from handrail.filters import ToolCall, call, last_n

QUIET = FunctionModel(lambda request: "Hello.")


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def test_an_agent_cannot_be_changed() -> None:
    agent = Agent("X", model=QUIET)
    with pytest.raises(AttributeError, match="immutable"):
        agent.name = "Y"


def test_a_function_becomes_a_tool_and_an_agent_a_handoff() -> None:
    agent = Agent("X", model=QUIET, tools=[add], handoffs=[Agent("Y", model=QUIET)])
    assert agent.tools[0].name == "add"
    assert agent.handoffs[0].filter == handoff("Y").filter


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"name": ""}, "an agent's name"),
        ({"model": "gpt"}, "service:name, as openai:NAME"),
        ({"model": lambda request: "Hello."}, r"FunctionModel\(fn\) is a function as a model"),
        ({"output_type": "Parcel"}, r"^the output type of X has no JSON schema: .*$"),
        ({"model": "nobody:gpt"}, "openai"),
        ({"tools": [3]}, "made of a function"),
        ({"handoffs": [3]}, "a handoff goes to an agent"),
        ({"instructions": {"a": 1}}, "blocks of text"),
        ({"middleware": [add]}, "Middleware values"),
    ],
)
def test_what_cannot_work_is_refused_when_the_agent_is_made(options: dict[str, Any], found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Agent(**{"name": "X", "model": QUIET, **options})


def test_two_tools_of_one_name_are_refused_naming_both() -> None:
    other = tool(name="add")(texts)
    with pytest.raises(NameClash, match="'add'"):
        Agent("X", model=QUIET, tools=[add, other])


@pytest.mark.parametrize(
    "names",
    [("Billing Agent", "billing agent"), ("Billing/Agent", "Billing?Agent")],
)
@pytest.mark.parametrize("wrap", [lambda two: (two, []), lambda two: ([], [agent.to_tool() for agent in two])])
def test_names_that_become_one_tool_name_are_refused_naming_both_agents(names: tuple[str, str], wrap: Any) -> None:
    handoffs, tools = wrap([Agent(name, model=QUIET) for name in names])
    with pytest.raises(NameClash) as raised:
        Agent("X", model=QUIET, handoffs=handoffs, tools=tools).check()
    assert all(repr(name) in str(raised.value) for name in names)


@pytest.mark.parametrize("name", ["風林火山", "!!!", "A" * 70])
def test_an_agent_whose_name_makes_no_tool_name_needs_one_given(name: str) -> None:
    far = Agent(name, model=QUIET)
    with pytest.raises(UnfitName, match=re.escape(repr(name))):
        Agent("X", model=QUIET, handoffs=[far]).check()
    with pytest.raises(UnfitName, match=re.escape(repr(name))):
        far.to_tool()
    Agent("X", model=QUIET, handoffs=[handoff(far, name="to_far")], tools=[far.to_tool(name="far")]).check()


def test_a_handoff_named_as_a_tool_is_refused_naming_both() -> None:
    with pytest.raises(NameClash) as raised:
        Agent("X", model=QUIET, tools=[tool(name="transfer_to_add")(add)], handoffs=[Agent("add", model=QUIET)]).check()
    assert "the tool 'transfer_to_add'" in str(raised.value)
    assert "the agent 'add'" in str(raised.value)


async def test_each_made_name_reaches_the_agent_it_was_made_for() -> None:
    far = [Agent(name, model=ScriptedModel(name)) for name in ("One Two", "one-two", "One.Two.")]
    for number, target in enumerate(far):
        near = Agent("X", model=ScriptedModel(partial(call_to, number)), handoffs=far)
        assert (await near.run("go")).output == target.name


def call_to(number: int, request: ChatRequest) -> ToolCall:
    return call(request.tools[number].name)


def test_names_are_the_same_in_every_process() -> None:
    code = "from handrail.agent.names import tool_name; print(tool_name('Éa Ünfit/Näme 7'))"
    made = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert made == {b"_a_nfit_n_me_7\n"}


async def test_one_agent_serves_many_runs_at_once_without_mixing_them() -> None:
    async def echo(request: ChatRequest) -> str:
        await pause()
        return f"{len(request.messages)}: {request.messages[-1].text}"

    agent = Agent("X", model=FunctionModel(echo))
    results = await asyncio.gather(*[agent.run(str(number)) for number in range(50)])
    assert [result.output for result in results] == [f"1: {number}" for number in range(50)]
    assert len({message.id for result in results for message in result.messages}) == 100


def test_describe_tells_every_chain_tool_and_handoff() -> None:
    class Watch(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request)

    child = Agent("Child", model=QUIET)
    other = Agent("Other", model=QUIET, handoffs=["X"])
    agent = Agent(
        "X",
        model=QUIET,
        tools=[add, child.to_tool(filter=last_n(3))],
        handoffs=[handoff(other, filter=last_n(2))],
        middleware=[Watch()],
    )
    told = agent.describe()
    assert "agent X (function)\n  turn: turn\n  chat: Watch > chat\n  tool: tool\n  handoff: handoff\n" in told
    assert "tool add (side_effecting)" in told
    assert re.search(r"tool child = agent Child, filter seal\(last_n\(n=3.*returns seal\(full\(\)\)", told)
    assert re.search(r"handoff transfer_to_other -> Other, filter seal\(last_n\(n=2", told)
    assert "agent Other" in told
    assert "agent Child" in told
