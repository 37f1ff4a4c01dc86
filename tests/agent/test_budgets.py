"""A budget counts everything, refuses the call that would go over it, and goes on where a session left it."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.desks import answers, failure, hear
from handrail.agent import (
    Agent,
    BuildError,
    LimitExceeded,
    Limits,
    ModelRefused,
    ModelUnavailable,
    ScriptedModel,
    UnknownPrice,
    handoff,
)
from handrail.agent.events import LimitReached
from handrail.agent.kernel import ChatRequest, Middleware
from handrail.agent.limits import Budget
from handrail.agent.models import ChatResponse
from handrail.filters import assistant, breaches, call, full
from handrail.sessions import BudgetRecord, ModelCallRecord, Session, Spent, ToolCallRecord, Usage, read

PRICED = "gpt-4.1-mini"  # $0.40 and $1.60 for a million tokens


async def ping() -> str:
    return "pong"


def costing(answer: Any, input: int, output: int = 0) -> ChatResponse:
    return ChatResponse(assistant(answer), Usage(input, output))


def pinging(count: int, input: int = 10, output: int = 1, name: str = "scripted") -> ScriptedModel:
    calls = [costing(call("ping", call_id=f"c{n}"), input, output) for n in range(count)]
    return ScriptedModel(*calls, costing("done", input, output), name=name)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *[(name, [-1, 1.5, True, "3"]) for name in ("max_tokens", "max_input_tokens", "max_output_tokens")],
        *[(name, [-0.1, float("nan"), float("inf"), True, "3"]) for name in ("max_cost", "max_seconds")],
        ("max_repeats", [0, -1, True, 1.5]),
        ("max_parallel_tools", [None, True]),
        ("on_max_tool_calls", ["stop", None]),
        ("on_unpriced", ["warn", True]),
    ],
)
def test_a_limit_that_is_none_is_refused_where_it_is_given(name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(BuildError, match=name):
            Limits(**{name: value})


def test_only_the_limits_that_are_named_bound_anything() -> None:
    assert Limits.only(max_tokens=5) == Limits(max_steps=None, max_handoffs=None, max_tokens=5)


async def test_what_are_no_limits_is_refused_before_any_request() -> None:
    model = ScriptedModel("Hello.")
    with pytest.raises(BuildError, match="Limits"):
        await Agent("X", model=model).run("go", limits=5)  # type: ignore[arg-type]
    assert model.requests == []


@pytest.mark.parametrize(
    ("limits", "requests"),
    [
        (Limits(max_tokens=22), 2),
        (Limits(max_tokens=23), 3),
        (Limits(max_input_tokens=20), 2),
        (Limits(max_output_tokens=3), 3),
    ],
)
async def test_when_the_tokens_are_used_up_the_next_model_call_is_refused(limits: Limits, requests: int) -> None:
    model = pinging(5)
    error = await failure(Agent("X", model=model, tools=[ping]), "go", limits=limits)
    assert isinstance(error, LimitExceeded)
    assert (len(model.requests), breaches(error.messages), error.usage.requests) == (requests, [], requests)


def nothing(limit: str) -> Limits:
    zero: dict[str, Any] = {limit: 0}
    return Limits(**zero)


@pytest.mark.parametrize("name", ["max_tokens", "max_input_tokens", "max_output_tokens", "max_cost", "max_seconds"])
async def test_a_budget_of_nothing_refuses_the_first_request(name: str) -> None:
    model = ScriptedModel("Hello.", name=PRICED)
    error = await failure(Agent("X", model=model), "go", limits=nothing(name))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, model.requests) == (name, 0, [])
    assert [message.text for message in error.messages] == (["go"] if name != "max_seconds" else [])


async def test_what_retries_and_failed_attempts_cost_is_counted_and_bounds_them_too() -> None:
    class Again(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: Any) -> Any:
            while True:
                try:
                    return await call_next(request)
                except ModelUnavailable:
                    continue

    down = [ModelUnavailable("down", spent=Usage(10)) for _ in range(9)]
    model = ScriptedModel(*down, "Hello.")
    error = await failure(Agent("X", model=model, middleware=[Again()]), "go", limits=Limits(max_input_tokens=30))
    assert isinstance(error, LimitExceeded)
    assert (len(model.requests), error.usage.input_tokens) == (3, 30)


async def test_a_total_counts_every_child_finished_or_failed_and_stops_the_run_before_the_next_request() -> None:
    boss = ScriptedModel(
        costing([call("helper", call_id="t1", input="x"), call("broken", call_id="t2", input="y")], 100, 10),
        costing("done", 160, 8),
        name="m1",
    )
    helper = Agent("Helper", model=ScriptedModel(costing("fine", 50, 5), name="m2"))
    broken = Agent("Broken", model=ScriptedModel(ModelRefused("400", spent=Usage(30, 3)), name="m2"))
    agent = Agent("Boss", model=boss, tools=[helper.to_tool(), broken.to_tool()])
    error = await failure(agent, "go", limits=Limits(max_input_tokens=180))
    assert isinstance(error, LimitExceeded)
    assert (error.usage.input_tokens, error.usage.requests, len(boss.requests)) == (180, 3, 1)


async def test_a_childs_own_tokens_used_up_are_an_error_of_its_call() -> None:
    child = Agent("Child", model=pinging(5), tools=[ping], limits=Limits(max_tokens=20))
    model = ScriptedModel(call("child", call_id="t1", input="x"), "I go on.")
    result = await Agent("Boss", model=model, tools=[child.to_tool()]).run("go", limits=Limits(max_tokens=500))
    assert (result.output, answers(result.messages)) == ("I go on.", [("t1", "The agent Child reached max_tokens=20.")])


async def test_a_run_of_a_priced_model_costs_what_its_requests_cost() -> None:
    model = pinging(1, 1_000_000, 100_000, name=PRICED)
    result = await Agent("X", model=model, tools=[ping]).run("go")
    assert result.cost == 2 * (Decimal("0.40") + Decimal("0.16"))


async def test_a_long_request_may_cost_more_a_token_so_each_is_priced_alone() -> None:
    result = await Agent("X", model=pinging(1, 150_000, 0, name="gemini-2.5-pro"), tools=[ping]).run("go")
    one = await Agent("X", model=pinging(0, 300_000, 0, name="gemini-2.5-pro")).run("go")
    assert result.cost is not None
    assert one.cost is not None
    assert result.usage.input_tokens == one.usage.input_tokens
    assert result.cost < one.cost


async def test_the_cost_of_a_model_without_a_known_price_is_not_known() -> None:
    assert (await Agent("X", model=pinging(0)).run("go")).cost is None


async def test_money_that_is_used_up_stops_the_run_before_the_next_request_to_the_cent() -> None:
    model = pinging(5, 250_000, 0, name=PRICED)  # ten cents a request
    heard = await hear(Agent("X", model=model, tools=[ping]), "go", limits=Limits.only(max_cost=0.3))
    assert isinstance(heard.error, LimitExceeded)
    assert (heard.error.limit, len(model.requests)) == ("max_cost", 3)
    assert [(event.limit, event.value) for event in heard.of(LimitReached)] == [("max_cost", 0.3)]


async def test_under_a_cost_limit_a_model_without_a_price_is_refused_before_its_first_call() -> None:
    model = pinging(0, name="our-own")
    error = await failure(Agent("X", model=model), "go", limits=Limits(max_cost=1))
    assert isinstance(error, UnknownPrice)
    assert (error.model, model.requests) == ("our-own", [])
    result = await Agent("X", model=model).run("go", limits=Limits(max_cost=1, on_unpriced="ignore"))
    assert result.output == "done"


async def test_a_second_model_without_a_price_is_refused_after_a_first_that_has_one() -> None:
    other = pinging(0, name="our-own")
    asked = ScriptedModel(costing(call("transfer_to_b", call_id="h1"), 10), name=PRICED)
    a = Agent("A", model=asked, handoffs=[handoff(Agent("B", model=other), filter=full())])
    error = await failure(a, "go", limits=Limits(max_cost=1))
    assert isinstance(error, UnknownPrice)
    assert (error.model, len(asked.requests), other.requests) == ("our-own", 1, [])


def test_a_budget_that_was_used_up_and_more_grants_no_tool_call_and_takes_none_back() -> None:
    budget = Budget.resumed(Limits(max_tool_calls=2), Spent(tool_calls=5))
    granted, refusal = budget.take_tool_calls(3)
    assert (granted, budget.tool_calls) == (0, 5)
    assert isinstance(refusal, LimitExceeded)


def test_a_budget_says_what_was_used_and_what_is_left_of_all_that_bound_it() -> None:
    outer = Budget(Limits(max_steps=9, max_tokens=100))
    inner = Budget(Limits.only(max_steps=3, max_cost=1, max_seconds=5), outer)
    inner.take_step()
    inner.spend(PRICED, Usage(50, 10))
    outer.take_step()
    assert inner.used == Spent(1, 0, 0, Usage(50, 10, requests=1), Decimal("0.000036"))
    assert outer.used == Spent(2, 0, 0, Usage(50, 10, requests=1), None)
    left = {"max_steps": 2, "max_cost": Decimal("0.999964"), "max_seconds": 5, "max_tokens": 40}
    assert inner.left() == {**left, "max_handoffs": 10}
    assert str(inner) == "steps 1 of 3, tool calls 0, handoffs 0, cost 0.000036 of 1, seconds 0 of 5"


async def test_what_a_run_used_is_written_at_its_end_however_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    b = Agent("B", model=pinging(0))
    await Agent("A", model=ScriptedModel(call("ping"), call("transfer_to_b")), tools=[ping], handoffs=[b]).run(
        "go", session=path
    )
    await failure(Agent("B", model=pinging(9), tools=[ping]), "go", session=path, limits=Limits(max_steps=2))
    written = [record.spent for record in read(path).records() if isinstance(record, BudgetRecord)]
    used = [(each.steps, each.tool_calls, each.handoffs, each.usage.requests) for each in written]
    assert used == [(3, 1, 1, 3), (2, 2, 0, 2)]
    assert Session(path).spent == written[0] + written[1]


async def test_a_session_has_limits_that_hold_across_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"

    def agent(count: int) -> Agent:
        return Agent("X", model=pinging(count, 100, 0), tools=[ping])

    assert (await agent(1).run("one", session=path, session_limits=Limits.only(max_input_tokens=400))).output == "done"
    error = await failure(agent(5), "two", session=path, session_limits=Limits.only(max_input_tokens=400))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, error.usage.requests) == ("max_input_tokens", 400, 2)
    error = await failure(agent(0), "three", session=path, session_limits=Limits.only(max_steps=4))
    assert (isinstance(error, LimitExceeded), error.usage.requests) == (True, 0)
    assert (await agent(0).run("four", session=path)).usage.requests == 1


async def test_tool_calls_are_bounded_over_the_runs_of_a_session_and_seconds_within_one(tmp_path: Path) -> None:
    path, limits = tmp_path / "s.jsonl", Limits.only(max_tool_calls=3)
    assert (await Agent("X", model=pinging(2), tools=[ping]).run("one", session=path, session_limits=limits)).steps == 3
    error = await failure(Agent("X", model=pinging(2), tools=[ping]), "two", session=path, session_limits=limits)
    assert isinstance(error, LimitExceeded)
    assert (error.limit, [text == "pong" for _, text in answers(error.messages)]) == (
        "max_tool_calls",
        [True, True, True, False],
    )

    async def hang() -> None:
        await asyncio.Event().wait()

    hanging = Agent("X", model=ScriptedModel(call("hang", call_id="c1")), tools=[hang])
    error = await failure(hanging, "three", session=path, limits=Limits(max_seconds=0.01))
    assert isinstance(error, LimitExceeded)
    assert error.limit == "max_seconds"


async def test_the_money_of_a_session_is_counted_from_its_requests_where_no_run_did(tmp_path: Path) -> None:
    path, limits = tmp_path / "s.jsonl", Limits.only(max_cost=0.25)
    agent = Agent("X", model=pinging(0, 250_000, 0, name=PRICED))
    await agent.run("not counted then", session=path)
    assert Session(path).spent.cost is None
    again = Agent("X", model=pinging(5, 250_000, 0, name=PRICED), tools=[ping])
    error = await failure(again, "go", session=path, session_limits=limits)
    assert isinstance(error, LimitExceeded)
    assert error.usage.requests == 2
    await Agent("X", model=pinging(0, name="our-own")).run("free", session=path)
    error = await failure(again, "go", session=path, session_limits=limits)
    assert isinstance(error, UnknownPrice)


async def test_what_bounds_a_session_needs_one_and_is_no_time() -> None:
    for limits in (Limits(), Limits(max_seconds=1)):
        with pytest.raises(BuildError, match="session_limits"):
            await Agent("X", model=pinging(0)).run("go", session_limits=limits)


def test_the_calls_of_a_run_that_was_killed_count_for_its_session(tmp_path: Path) -> None:
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        session.append(
            BudgetRecord(path="a", run="r1", spent=Spent(1, usage=Usage(5, requests=1), cost=Decimal("0.1"))),
        )
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        session.append(
            ModelCallRecord(path="a", step=1, usage=Usage(7, requests=1)),
            ModelCallRecord(path="a", step=1, purpose="summary", usage=Usage(2, requests=1)),
            ToolCallRecord(path="a", call_id="c1", name="ping"),
            ToolCallRecord(path="a", call_id="c1", name="ping", attempt=2),
        )
        spent = session.spent
    assert (spent.steps, spent.tool_calls, spent.usage.input_tokens, spent.cost) == (2, 1, 9, None)
    assert Session(tmp_path / "s.jsonl").spent == spent


@pytest.mark.parametrize("changes", [{"steps": -1}, {"cost": Decimal("NaN")}, {"usage": Usage(-5)}])
def test_nobody_gets_more_by_what_was_used_before(changes: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="counted from 0"):
        Budget.resumed(Limits(), msgspec.structs.replace(Spent(), **changes))


def test_money_that_was_spent_and_not_counted_refuses_unless_it_is_ignored() -> None:
    spent = Spent(1, usage=Usage(5, requests=1))
    with pytest.raises(UnknownPrice, match="spent before"):
        Budget.resumed(Limits(max_cost=1), spent)
    assert Budget.resumed(Limits(max_cost=1, on_unpriced="ignore"), spent).used.cost == 0


async def test_limits_on_handoffs_hold_for_a_session_too(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    model = ScriptedModel(call("transfer_to_b", call_id="h1"), "Hello.", call("transfer_to_a", call_id="h2"))
    a = Agent("A", model=model, handoffs=[handoff(lambda: b, filter=full())])
    b = Agent("B", model=model, handoffs=[handoff(a, filter=full())])
    await a.run("go", session=path, session_limits=Limits.only(max_handoffs=1))
    error = await failure(b, "go", session=path, session_limits=Limits.only(max_handoffs=1))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, breaches(error.messages)) == ("max_handoffs", [])
