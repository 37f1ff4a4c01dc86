"""Limits stop a run before the call they limit, and say where it stood."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, failure, hear, requests, roles, unlawful
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    LimitExceeded,
    Limits,
    RunContext,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.events import LimitReached
from handrail.agent.kernel import Middleware, after_model
from handrail.agent.limits import Budget
from handrail.agent.models import ChatResponse
from handrail.filters import ToolCall, assistant, breaches, call, full, user
from handrail.sessions import Session, Usage, verify


def pinging(count: int) -> ScriptedModel:
    return ScriptedModel(
        *[ChatResponse(assistant(call("ping", call_id=f"c{n}")), Usage(10, 1)) for n in range(1, count + 1)]
    )


@pytest.mark.parametrize("name", ["max_steps", "max_tool_calls", "max_handoffs", "max_parallel_tools"])
@pytest.mark.parametrize("value", [-1, 1.5, "3"])
def test_a_bound_is_a_whole_number_from_nothing_up(name: str, value: Any) -> None:
    with pytest.raises(BuildError, match=name):
        Limits(**{name: value})


def test_no_tool_at_once_is_no_bound_but_a_standstill() -> None:
    with pytest.raises(BuildError, match="max_parallel_tools"):
        Limits(max_parallel_tools=0)


def test_a_budget_within_another_counts_in_both_and_either_may_refuse() -> None:
    outer = Budget(Limits(max_steps=2))
    inner = Budget(Limits(max_steps=None), outer)
    inner.take_step()
    outer.take_step()
    with pytest.raises(LimitExceeded, match="max_steps=2"):
        inner.take_step()
    assert (inner.steps, outer.steps) == (1, 2)


def test_of_a_batch_of_tool_calls_as_many_are_granted_as_are_left_and_only_those_are_counted() -> None:
    budget = Budget(Limits(max_tool_calls=2))
    granted, refusal = budget.take_tool_calls(3)
    assert (granted, budget.tool_calls) == (2, 2)
    assert isinstance(refusal, LimitExceeded)
    assert budget.take_tool_calls(1)[0] == 0


async def test_the_step_limit_keeps_the_transcript_the_usage_and_the_agent() -> None:
    pings: list[int] = []
    model = pinging(3)
    agent = Agent("X", model=model, tools=[named_ping(pings)])
    error = await failure(agent, "go", limits=Limits(max_steps=3))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, error.agent) == ("max_steps", 3, "X")
    assert (len(pings), len(model.requests), roles(error.messages)) == (3, 3, "uatatat")
    assert (error.usage.input_tokens, error.usage.output_tokens) == (30, 3)
    assert breaches(error.messages) == []


async def test_a_stream_that_reaches_the_step_limit_raises_the_same_and_tells_its_listener() -> None:
    agent = Agent("X", model=pinging(3), tools=[named_ping([])])
    heard = await hear(agent, "go", limits=Limits(max_steps=3))
    assert isinstance(heard.error, LimitExceeded)
    assert (roles(heard.error.messages), heard.error.usage.input_tokens) == ("uatatat", 30)
    assert [(event.limit, event.value) for event in heard.of(LimitReached)] == [("max_steps", 3)]


async def test_what_a_limit_left_can_be_gone_on_with() -> None:
    error = await failure(Agent("X", model=pinging(3), tools=[named_ping([])]), "go", limits=Limits(max_steps=3))
    model = ScriptedModel("done")
    again = Agent("X", model=model, tools=[named_ping([])])
    result = await again.run([*error.messages, user("please finish")], limits=Limits(max_steps=1))
    assert (result.output, unlawful(requests(model))) == ("done", [])


async def test_calls_over_the_tool_call_limit_are_answered_but_neither_run_nor_counted() -> None:
    pings: list[int] = []
    model = ScriptedModel([call("ping", call_id="c1"), call("ping", call_id="c2"), call("ping", call_id="c3")])
    error = await failure(Agent("X", model=model, tools=[named_ping(pings)]), "go", limits=Limits(max_tool_calls=2))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, len(pings), breaches(error.messages)) == ("max_tool_calls", 2, [])
    assert [call_id for call_id, _ in answers(error.messages)] == ["c1", "c2", "c3"]
    assert error.messages[-1].is_error
    assert "max_tool_calls=2" in error.messages[-1].text


async def test_a_batch_never_goes_over_the_limit_and_the_error_has_the_usage_of_all_responses() -> None:
    pings: list[int] = []
    batches = [[call("ping", call_id=f"c{step}{n}") for n in "123"] for step in "12"]
    model = ScriptedModel(*[ChatResponse(assistant(batch), Usage(10, 1)) for batch in batches])
    error = await failure(Agent("X", model=model, tools=[named_ping(pings)]), "go", limits=Limits(max_tool_calls=4))
    assert isinstance(error, LimitExceeded)
    assert (len(pings), error.usage, roles(error.messages)) == (4, Usage(20, 2, requests=2), "uatttattt")
    assert breaches(error.messages) == []


class Looks(Middleware):
    """Has every state hook, and does nothing in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def before_agent(self, state: Any, run: Any) -> None:
        """Once a turn."""

    async def before_model(self, state: Any, run: Any) -> None:
        """Once a step."""

    after_agent = before_agent
    after_model = before_model


@pytest.mark.parametrize("layers", [0, 1, 9])
async def test_layers_eat_no_steps_and_what_the_limit_left_can_be_gone_on_with(layers: int) -> None:
    looking = [Looks(str(number)) for number in range(layers)]
    agent = Agent("X", model=pinging(3), tools=[named_ping([])], middleware=looking)
    error = await failure(agent, "go", limits=Limits(max_steps=2))
    assert isinstance(error, LimitExceeded)
    assert (error.usage.requests, roles(error.messages)) == (2, "uatat")
    again = Agent("X", model=ScriptedModel("done"), tools=[named_ping([])], middleware=looking)
    assert (await again.run([*error.messages, user("And?")], limits=Limits(max_steps=1))).output == "done"


async def test_two_agents_that_only_hand_over_to_each_other_are_stopped_by_the_handoff_limit(tmp_path: Path) -> None:
    model = ScriptedModel(*[call(f"transfer_to_{'ba'[n % 2]}", call_id=f"h{n}") for n in range(6)])
    a = Agent("A", model=model, handoffs=[handoff(lambda: b, filter=full())])
    b = Agent("B", model=model, handoffs=[handoff(a, filter=full())])
    error = await failure(a, "go", limits=Limits(max_handoffs=5, max_steps=100), session=tmp_path / "s.jsonl")
    assert isinstance(error, LimitExceeded)
    assert (error.limit, len(model.requests), error.agent) == ("max_handoffs", 6, "B")
    assert list(error.path) == ["A", "B", "A", "B", "A", "B"]
    assert "A -> B -> A" in str(error)
    taken = [f"{record.source}{record.target}" for record in Session(tmp_path / "s.jsonl").handoffs]
    assert (taken, verify(tmp_path / "s.jsonl").state) == (["AB", "BA", "AB", "BA", "AB"], "intact")
    assert breaches(error.messages) == breaches(error.new_messages) == []


async def test_an_agents_own_limits_bound_each_of_its_turns_and_the_runs_bound_all() -> None:
    model = ScriptedModel(call("ping", call_id="c1"), call("transfer_to_b", call_id="h1"), call("ping", call_id="c2"))
    b = Agent("B", model=model, tools=[named_ping([])], limits=Limits(max_steps=1))
    a = Agent("A", model=model, tools=[named_ping([])], handoffs=[b])
    error = await failure(a, "go", limits=Limits(max_steps=10))
    assert isinstance(error, LimitExceeded)
    assert (error.value, error.agent, len(model.requests)) == (1, "B", 3)


async def test_a_childs_own_limit_is_an_error_of_its_call_and_the_caller_goes_on() -> None:
    model = ScriptedModel(call("child", call_id="t1", input="x"), call("ping", call_id="c1"), "done")
    child = Agent("Child", model=model, tools=[named_ping([])], limits=Limits(max_steps=1))
    result = await Agent("Boss", model=model, tools=[child.to_tool()]).run("go")
    (answer,) = [message for message in result.messages if message.role == "tool"]
    assert (result.output, answer.is_error) == ("done", True)
    assert "max_steps=1" in answer.text


async def test_the_runs_limit_reached_in_a_child_ends_the_run() -> None:
    model = ScriptedModel(call("child", call_id="t1", input="x"), call("ping", call_id="c1"))
    child = Agent("Child", model=model, tools=[named_ping([])])
    error = await failure(Agent("Boss", model=model, tools=[child.to_tool()]), "go", limits=Limits(max_steps=2))
    assert isinstance(error, LimitExceeded)
    assert (error.agent, roles(error.messages), breaches(error.messages)) == ("Boss", "uat", [])


async def test_without_limits_of_its_own_a_run_has_those_of_the_agent_it_was_called_on() -> None:
    agent = Agent("X", model=pinging(1), tools=[named_ping([])], limits=Limits(max_steps=1))
    error = await failure(agent, "go")
    assert isinstance(error, LimitExceeded)
    assert error.value == 1


def named_ping(pings: list[int]) -> Any:
    async def ping() -> str:
        pings.append(1)
        return "pong"

    return ping


@pytest.mark.parametrize("waits", [False, True])
async def test_the_runs_limit_on_tool_calls_reached_by_another_agent_ends_the_run(waits: bool) -> None:
    pings: list[int] = []
    child = Agent("Child", model=pinging(3), tools=[named_ping(pings)])
    asked = call("transfer_to_child") if waits else call("child", call_id="t1", input="x")
    boss = Agent(
        "Boss",
        model=ScriptedModel(asked, "I go on."),
        tools=[] if waits else [child.to_tool()],
        handoffs=[handoff(child, returns=full())] if waits else [],
    )
    error = await failure(boss, "go", limits=Limits(max_tool_calls=2))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, len(pings)) == ("max_tool_calls", 2, 2 if waits else 1)
    assert breaches(error.messages) == []


@pytest.mark.parametrize("waits", [False, True])
async def test_an_agents_own_limit_on_tool_calls_is_an_error_for_who_asked_it(waits: bool) -> None:
    child = Agent("Child", model=pinging(3), tools=[named_ping([])], limits=Limits(max_tool_calls=1))
    asked = call("transfer_to_child", call_id="t1") if waits else call("child", call_id="t1", input="x")
    boss = Agent(
        "Boss",
        model=ScriptedModel(asked, "I go on."),
        tools=[] if waits else [child.to_tool()],
        handoffs=[handoff(child, returns=full())] if waits else [],
    )
    result = await boss.run("go", limits=Limits(max_tool_calls=9))
    (answer,) = [message for message in result.messages if message.role == "tool"]
    assert (result.output, answer.is_error) == ("I go on.", True)
    assert "max_tool_calls=1" in answer.text


def three() -> list[ToolCall]:
    return [call("ping", call_id="c1"), call("ping", call_id="c2"), call("ping", call_id="c3")]


async def test_over_the_tool_call_limit_the_model_may_be_told_and_go_on() -> None:
    pings: list[int] = []
    model = ScriptedModel(three(), "done")
    agent = Agent("X", model=model, tools=[named_ping(pings)])
    limits = Limits(max_tool_calls=2, on_max_tool_calls="tell")
    heard = await hear(agent, "go", limits=limits)
    assert heard.result is not None
    messages = heard.result.messages
    assert (heard.result.output, len(pings), len(model.requests), unlawful(requests(model))) == ("done", 2, 2, [])
    assert [(each.call_id, each.is_error) for each in messages if each.role == "tool"] == [
        *[("c1", False), ("c2", False), ("c3", True)]
    ]
    assert [(event.limit, event.value) for event in heard.of(LimitReached)] == [("max_tool_calls", 2)]


async def test_over_the_tool_call_limit_the_turn_may_end_as_failed_with_every_call_answered() -> None:
    pings: list[int] = []
    model = ScriptedModel(three(), "done")
    agent = Agent("X", model=model, tools=[named_ping(pings)], limits=Limits(max_tool_calls=2, on_max_tool_calls="end"))
    result = await agent.run("go")
    assert (result.status, result.output, result.message, result.finish_reason) == (
        "failed",
        "",
        None,
        "max_tool_calls",
    )
    assert (len(pings), len(model.requests), breaches(result.messages)) == (2, 1, [])
    assert [call_id for call_id, _ in answers(result.messages)] == ["c1", "c2", "c3"]
    again = await Agent("X", model=ScriptedModel("done")).run([*result.messages, user("please finish")])
    assert again.output == "done"


@pytest.mark.parametrize(("how", "output"), [("tell", "I am B."), ("end", "")])
async def test_a_handoff_beside_calls_over_the_limit_takes_place_unless_the_turn_ends(how: Any, output: str) -> None:
    b = Agent("B", model=ScriptedModel("I am B."))
    model = ScriptedModel([call("ping", call_id="c1"), call("transfer_to_b", call_id="h1")])
    a = Agent("A", model=model, tools=[named_ping([])], handoffs=[handoff(b, filter=full())])
    result = await a.run("go", limits=Limits(max_tool_calls=0, on_max_tool_calls=how))
    assert (result.output, bool(result.handoffs), breaches(result.messages)) == (output, how == "tell", [])


async def test_a_child_that_was_ended_by_its_limit_did_not_complete() -> None:
    limits = Limits(max_tool_calls=0, on_max_tool_calls="end")
    child = Agent("Child", model=pinging(1), tools=[named_ping([])], limits=limits)
    boss = Agent("Boss", model=ScriptedModel(call("child", call_id="t1", input="x"), "done"), tools=[child.to_tool()])
    result = await boss.run("go")
    assert answers(result.messages) == [("t1", "The agent Child did not complete: failed.")]


@pytest.mark.parametrize("by", ["a tool", "a hook"])
async def test_a_handoff_by_code_beside_calls_over_the_limit_does_not_happen_where_the_turn_ends(by: str) -> None:
    @tool
    async def route(context: RunContext[Any]) -> str:
        """Hands over, where a hook does not."""
        if by == "a tool":
            context.handoff("B")
        return "routed"

    async def after(state: Any, run: RunContext[Any]) -> None:
        if by == "a hook":
            run.handoff("B")

    b = Agent("B", model=ScriptedModel())
    model = ScriptedModel([call("route", call_id="c1"), call("route", call_id="c2")])
    a = Agent("A", model=model, tools=[route], handoffs=[handoff(b)], middleware=[after_model(after)])
    result = await a.run("go", limits=Limits(max_tool_calls=1, on_max_tool_calls="end"))
    assert (result.status, result.agent, result.handoffs, breaches(result.messages)) == ("failed", "A", (), [])


async def test_the_error_says_whose_limit_it_was() -> None:
    def again(request: Any) -> Any:
        return call("nothing")

    own = Agent("X", model=FunctionModel(again), limits=Limits(max_steps=2))
    assert "the turn of X reached max_steps=2" in str(await failure(own, "go", limits=Limits(max_steps=9)))
    assert "the run reached max_steps=1" in str(await failure(own, "go", limits=Limits(max_steps=1)))
