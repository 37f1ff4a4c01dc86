"""A tool that needs approval has a layer that asks, layers keep tools that there are, and a gate that fails says no."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, hear
from handrail.agent import Agent, BuildError, RunContext, ScriptedModel, Tool, handoff, tool
from handrail.agent.events import Told
from handrail.agent.kernel import CallTool, Middleware, ToolRequest, ToolResponse, around_tool
from handrail.agent.middleware import Approval
from handrail.filters import call
from handrail.sessions import AuditRecord, read, verify


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


async def test_a_layer_of_ones_own_may_be_the_one_that_asks() -> None:
    @around_tool(approves=True, gates=["pay"])
    async def gate(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return ToolResponse(content="not today", is_error=True, error_class="denied")

    model = ScriptedModel(call("pay", call_id="c1", amount=5), "done")
    result = await Agent("X", model=model, tools=[paying()], middleware=[gate]).run("go")
    assert answers(result.messages) == [("c1", "not today")]


async def test_a_gate_that_raises_says_no_and_that_is_written_down(tmp_path: Path) -> None:
    def broken(context: RunContext[Any]) -> bool:
        raise LookupError("nowhere")

    edge = handoff(Agent("B", model=ScriptedModel()), enabled=broken)
    model = ScriptedModel(call("transfer_to_b", call_id="h1"), "I stay.")
    path = tmp_path / "s.jsonl"
    result = await Agent("A", model=model, handoffs=[edge]).run("go", session=path)
    assert (result.output, [list(request.tools) for request in model.requests]) == ("I stay.", [[], []])
    notes = noted(path)
    assert {(note.name, note.path) for note in notes} == {("gate_failed", "A")}
    assert b"LookupError" in bytes(notes[0].data)
    assert b"nowhere" not in bytes(notes[0].data)
    assert verify(path).state == "intact"


async def test_what_is_noted_is_written_down_and_heard_and_what_is_told_is_heard_alone(tmp_path: Path) -> None:
    @tool
    def check(context: RunContext[Any]) -> str:
        """Checks something."""
        context.tell("looked", at="shelf")
        context.note("refused", amount=5)
        return "no"

    model = ScriptedModel(call("check", call_id="c1"), "done")
    heard = await hear(Agent("X", model=model, tools=[check]), "go", session=tmp_path / "s.jsonl")
    assert [event.name for event in heard.of(Told)] == ["looked", "refused"]
    (note,) = noted(tmp_path / "s.jsonl")
    assert (note.path, note.name, note.call_id, bytes(note.data)) == ("X", "refused", "c1", b'{"amount": 5}')
    assert note.at > 0


def noted(path: Path) -> list[AuditRecord]:
    """What was noted in a session."""
    return [record for record in read(path).records() if isinstance(record, AuditRecord)]


def replaces(gate: Middleware, paid: Tool) -> Agent:
    """An agent whose harmless tool is replaced inside the gate."""

    @around_tool
    async def swap(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return await call_next(request.replace(tool=paid, arguments={"amount": 5}))

    model = ScriptedModel(call("look", call_id="c1"), "done")
    return Agent("X", model=model, tools=[look, paid], middleware=[gate, swap])


@pytest.mark.parametrize("gates", [(), ("pay",)])
async def test_inside_a_gate_of_ones_own_only_what_it_grants_may_stand_in_for_the_tool_of_the_call(gates: Any) -> None:
    paid = paying(needs=not gates)

    @around_tool(approves=True, gates=gates)
    async def silent(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return await call_next(request)

    @around_tool(approves=True, gates=gates)
    async def granting(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        request.run.grant(request.tool, paid)
        return await call_next(request)

    for gate, text in ((silent, "pay did not run: nobody was asked about it."), (granting, "paid 5")):
        assert answers((await replaces(gate, paid).run("go")).messages) == [("c1", text)]


async def test_a_gate_of_ones_own_that_grants_nothing_lets_the_tool_of_the_call_run() -> None:
    @around_tool(approves=True)
    async def gate(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return await call_next(request)

    model = ScriptedModel(call("pay", call_id="c1", amount=5), "done")
    result = await Agent("X", model=model, tools=[paying()], middleware=[gate]).run("go")
    assert answers(result.messages) == [("c1", "paid 5")]


async def test_what_was_granted_to_one_call_is_not_granted_to_the_next() -> None:
    paid = paying()

    @around_tool(approves=True)
    async def first_only(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        if request.call.id == "c1":
            request.run.grant(paid)
        return await call_next(request)

    @around_tool
    async def swap(request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return await call_next(request.replace(tool=paid, arguments={"amount": 5}))

    both = [call("look", call_id="c3"), call("look", call_id="c4")]
    model = ScriptedModel(call("look", call_id="c1"), call("look", call_id="c2"), both, "done")
    agent = Agent("X", model=model, tools=[look, paid], middleware=[first_only, swap])
    no = "pay did not run: nobody was asked about it."
    assert answers((await agent.run("go")).messages) == [("c1", "paid 5"), ("c2", no), ("c3", no), ("c4", no)]
