"""What the next agent would see, shown without running anything."""

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    InvalidInput,
    ScriptedModel,
    UnknownTarget,
    handoff,
    preview,
    to_tool,
)
from handrail.filters import (
    FilterFailed,
    InvalidFilter,
    Message,
    NothingToHandOver,
    ToolCall,
    assistant,
    call,
    custom,
    last_user,
    none,
    strip_tool_calls,
    tool_result,
    user,
)
from handrail.filters.catalogue.attribute_agents import attribute_agents
from handrail.filters.catalogue.dynamic import dynamic
from handrail.filters.catalogue.summarize import summarize

FIND = call("find", call_id="c1", name="Ada")
HISTORY = (
    user("This is Ada.", id="m1"),
    assistant(FIND, id="m2", agent="triage"),
    tool_result(FIND, "12 Byron Road", id="m3", agent="triage"),
    user("I was charged twice.", id="m4"),
)


def silent(request: object) -> str:
    raise AssertionError("a preview asked a model")


MODEL = FunctionModel(silent)
BILLING = Agent("billing", model=MODEL)


def triage(**options: object) -> Agent:
    return Agent("triage", model=MODEL, handoffs=[handoff(BILLING, **options)])  # type: ignore[arg-type]


def said(messages: Sequence[Message]) -> list[str]:
    return [message.id for message in messages]


def test_a_preview_shows_what_would_cross_and_why() -> None:
    seen = preview(triage(filter=strip_tool_calls()), BILLING, HISTORY)
    assert (seen.kind, seen.source, seen.target, seen.tool) == ("handoff", "triage", "billing", "transfer_to_billing")
    assert said(seen.messages) == ["m1", "m4"]
    assert [change.id for change in seen.report.changes] == ["m2", "m3"]
    assert str(seen).startswith(
        "triage -> billing: 2 of 4 messages would cross, 0 made\nstrip_tool_calls(): 4 -> 2 messages\n"
    )
    assert str(seen).endswith("[user] m4\n  I was charged twice.\n")


async def test_a_preview_is_what_a_run_hands_over() -> None:
    billing = Agent("billing", model=ScriptedModel("It is refunded."))
    source = Agent(
        "triage", model=ScriptedModel(call("transfer_to_billing", call_id="h1", reason="twice")), handoffs=[billing]
    )
    result = await source.run(HISTORY)
    assert preview(source, billing, HISTORY, reason="twice").messages == result.handoffs[0].seed


def test_the_message_that_makes_the_call_may_be_in_the_history() -> None:
    transfer = ToolCall("h1", "transfer_to_billing", transfer=True)
    view = (*HISTORY, assistant("I hand over.", transfer, id="m5"))
    assert said(preview(triage(), "billing", view).messages) == ["m1", "m2", "m3", "m4", "m5"]


def test_a_sub_agent_is_shown_with_its_input() -> None:
    boss = Agent("boss", model=MODEL, tools=[to_tool(BILLING, filter=none())])
    seen = preview(boss, BILLING, HISTORY, input="Was Ada charged twice?")
    assert (seen.kind, seen.tool) == ("subagent", "billing")
    assert [message.text for message in seen.messages] == ["Was Ada charged twice?"]


def test_of_several_ways_one_is_named_by_its_tool() -> None:
    quick = handoff(BILLING, name="quick", filter=last_user())
    source = Agent("triage", model=MODEL, handoffs=[BILLING, quick])
    with pytest.raises(BuildError, match=r"several ways lead from triage to billing; .*: transfer_to_billing, quick"):
        preview(source, BILLING, HISTORY)
    assert said(preview(source, "quick", HISTORY).messages) == ["m4"]


def test_a_target_that_no_edge_leads_to_is_refused_naming_those_there_are() -> None:
    with pytest.raises(UnknownTarget, match="'returns', but only these agents are reachable: billing"):
        preview(triage(), "returns", HISTORY)


def test_what_a_boundary_refuses_a_preview_refuses() -> None:
    with pytest.raises(NothingToHandOver):
        preview(triage(filter=none()), BILLING, HISTORY)
    with pytest.raises(FilterFailed, match="raised ZeroDivisionError"):
        preview(triage(filter=custom(lambda history: history[: 1 // 0])), BILLING, HISTORY)


def test_a_resolver_that_needs_only_the_edge_is_asked() -> None:
    seen = preview(triage(filter=attribute_agents()), BILLING, HISTORY)
    assert "attribute_agents(self='billing'" in repr(seen.filter)
    chosen = dynamic(lambda history, edge: last_user() if edge.reason == "short" else none())
    assert said(preview(triage(filter=chosen), BILLING, HISTORY, reason="short").messages) == ["m4"]


def test_a_resolver_that_must_wait_is_not_run() -> None:
    async def ask(messages: object) -> str:
        raise AssertionError("a preview asked a model")

    with pytest.raises(InvalidFilter, match="waits for something"):
        preview(triage(filter=summarize(ask)), BILLING, HISTORY)


class Order(BaseModel):
    number: int


@pytest.mark.parametrize("history", ["Hello.", user("Hello."), ["Hello."], [{"role": "user"}]])
def test_what_is_no_history_is_refused(history: Any) -> None:
    source = Agent("A", model=ScriptedModel(), handoffs=[Agent("B", model=ScriptedModel())])
    with pytest.raises(InvalidInput, match="the history of a preview is messages"):
        preview(source, "B", history)


def test_a_typed_input_is_shown_as_it_would_cross_and_an_unfit_one_is_refused() -> None:
    target = Agent("B", model=ScriptedModel())
    source = Agent("A", model=ScriptedModel(), handoffs=[handoff(target, filter=none(), input_type=Order)])
    for given in ({"number": "7"}, Order(number=7), '{"number": 7}'):
        assert [message.text for message in preview(source, target, (), input=given).messages] == ['{"number":7}']
    for unfit in ("garbage", {"number": "x"}, None):
        with pytest.raises(InvalidInput, match="would refuse"):
            preview(source, target, (), input=unfit)
