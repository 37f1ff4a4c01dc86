"""What a handoff may bring along, and whose turn it is afterwards."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    LimitExceeded,
    Middleware,
    RunContext,
    ScriptedModel,
    handoff,
    to_tool,
    tool,
)
from handrail.agent import events as told
from handrail.agent.errors import UnknownTarget
from handrail.filters import (
    Messages,
    Policy,
    PolicyViolation,
    assistant,
    breaches,
    by_sensitivity,
    call,
    custom,
    full,
    last_n,
    none,
    strip_tool_calls,
    user,
)
from handrail.sessions import HandoffRecord, Session, SessionConflict, read, verify


class Refund(BaseModel):
    order: int
    amount: float = 0.0


def transfer(to: str, call_id: str = "h1", **arguments: Any) -> Any:
    return call(f"transfer_to_{to}", call_id=call_id, **arguments)


def texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


def sent(model: ScriptedModel, number: int = 0) -> list[str]:
    return texts(model.requests[number].messages)


async def test_a_typed_input_crosses_as_the_last_user_message_and_is_in_the_record(tmp_path: Path) -> None:
    billing = ScriptedModel("Paid back.")
    target = Agent("Billing", model=billing)
    edge = handoff(target, filter=none(), input_type=Refund)
    source = Agent("Desk", model=ScriptedModel(transfer("billing", input={"order": "7"})), handoffs=[edge])
    path = tmp_path / "s.jsonl"
    assert (await source.run("hi", session=path)).output == "Paid back."
    assert sent(billing) == ['{"order":7,"amount":0.0}']
    (record,) = Session(path).handoffs
    assert [(note.label, note.text) for note in record.notes] == [("input", '{"order":7,"amount":0.0}')]
    assert verify(path).ok


async def test_the_transfer_tool_offers_the_schema_of_its_input() -> None:
    model = ScriptedModel("hi")
    edge = handoff(Agent("Billing", model=ScriptedModel()), input_type=Refund)
    await Agent("Desk", model=model, handoffs=[edge]).run("hi")
    (spec,) = model.requests[0].tools
    assert spec.parameters["required"] == ["input"]
    assert spec.parameters["properties"]["input"]["properties"]["order"]["type"] == "integer"


@pytest.mark.parametrize("arguments", [{}, {"input": {"order": "x"}}, {"input": {}}, {"inputs": {"order": 1}}])
async def test_an_unfit_input_is_an_error_result_and_the_turn_goes_on(arguments: dict[str, Any]) -> None:
    edge = handoff(Agent("Billing", model=ScriptedModel()), input_type=Refund)
    source = Agent("Desk", model=ScriptedModel(transfer("billing", **arguments), "Sorry."), handoffs=[edge])
    result = await source.run("hi")
    assert (result.output, result.agent, result.handoffs) == ("Sorry.", "Desk", ())
    assert result.messages[2].is_error


async def test_what_is_told_of_a_handoff_is_told_when_it_passes_and_before_the_target_starts() -> None:
    heard: list[Any] = []

    async def note(context: RunContext[Any], input: Refund) -> None:
        heard.append((context.agent, input.order))

    target = Agent("Billing", model=FunctionModel(lambda request: f"after {len(heard)}"))
    edge = handoff(target, input_type=Refund, on_handoff=note)
    source = Agent("Desk", model=ScriptedModel(transfer("billing", input={"order": 7})), handoffs=[edge])
    assert ((await source.run("hi")).output, heard) == ("after 1", [("Desk", 7)])


async def test_a_handoff_that_is_not_enabled_is_not_offered_and_a_gate_that_raises_says_no() -> None:
    def closed(context: RunContext[Any]) -> bool:
        raise LookupError

    model = ScriptedModel(transfer("night"), "no luck")
    day, night = Agent("Day", model=ScriptedModel()), Agent("Night", model=ScriptedModel())
    edges = [handoff(day, enabled=lambda context: context.deps == "open"), handoff(night, enabled=closed)]
    result = await Agent("Desk", model=model, handoffs=edges).run("hi", deps="open")
    assert [spec.name for spec in model.requests[0].tools] == ["transfer_to_day"]
    assert (result.output, texts(result.messages)[2]) == ("no luck", "Night is not available.")


async def test_deps_of_a_target_are_what_the_edge_makes_of_the_sources_and_the_source_keeps_its_own() -> None:
    seen: list[tuple[str, Any]] = []

    @tool
    def look(context: RunContext[Any]) -> str:
        seen.append((context.agent, context.deps))
        return "ok"

    a_model = ScriptedModel(call("look", call_id="1"), transfer("b"), call("look", call_id="2"), "end")
    b_model = ScriptedModel(call("look", call_id="3"), transfer("a", "h2"))
    b = Agent("B", model=b_model, tools=[look], handoffs=["A"])
    a = Agent("A", model=a_model, tools=[look], handoffs=[handoff(b, deps=lambda deps: {"name": deps["name"]})])
    await a.run("go", deps={"name": "Ann", "key": 1})
    assert seen == [("A", {"name": "Ann", "key": 1}), ("B", {"name": "Ann"}), ("A", {"name": "Ann", "key": 1})]


async def test_with_returns_the_source_waits_and_goes_on_with_the_answer(tmp_path: Path) -> None:
    clerk = ScriptedModel("Checked.", transfer("boss"))
    boss = Agent("Boss", model=ScriptedModel("Approved."))
    path = tmp_path / "s.jsonl"
    desk = ScriptedModel(transfer("clerk"), "All done.")
    clerk_agent = Agent("Clerk", model=ScriptedModel(["Checked.", transfer("boss", "h2")]), handoffs=[boss])
    source = Agent("Desk", model=desk, handoffs=[handoff(clerk_agent, returns=full())])
    result = await source.run("please", session=path)
    assert (result.output, result.agent) == ("All done.", "Desk")
    assert sent(desk, 1) == ["please", "", "Checked.\n\nApproved."]
    assert (Session(path).active_agent, verify(path).ok) == ("Desk", True)
    assert [record.active for record in Session(path).handoffs] == ["Desk", "Desk"]
    assert clerk.requests == []


async def test_what_returns_passes_its_filter_and_nothing_left_says_so() -> None:
    target = Agent("Clerk", model=ScriptedModel("Secret number 9041."))
    desk = ScriptedModel(transfer("clerk"), "done")
    await Agent("Desk", model=desk, handoffs=[handoff(target, returns=none())]).run("please")
    assert sent(desk, 1)[-1] == "The agent answered, and its answer may not cross."


async def test_a_target_that_fails_while_its_source_waits_is_an_error_result() -> None:
    def fail(request: Any) -> str:
        raise LookupError("no ledger")

    desk = ScriptedModel(transfer("clerk"), "sorry")
    edge = handoff(Agent("Clerk", model=FunctionModel(fail)), returns=full())
    result = await Agent("Desk", model=desk, handoffs=[edge]).run("please")
    assert result.output == "sorry"
    assert (result.messages[2].is_error, "no ledger" in result.messages[2].text) == (True, True)


async def test_a_transfer_to_an_agent_that_waits_is_an_error_result() -> None:
    clerk = Agent("Clerk", model=ScriptedModel(transfer("desk", "h2"), "then I answer"), handoffs=["Desk"])
    desk = ScriptedModel(transfer("clerk"), "done")
    result = await Agent("Desk", model=desk, handoffs=[handoff(clerk, returns=full())]).run("please")
    assert (result.output, sent(desk, 1)[-1]) == ("done", "then I answer")


async def test_a_call_that_returns_is_content_and_crosses_to_the_next_agent_with_its_result() -> None:
    clerk = Agent("Clerk", model=ScriptedModel("Checked."))
    last = ScriptedModel("bye")
    desk = ScriptedModel(transfer("clerk"), transfer("last", "h2"))
    edges = [handoff(clerk, returns=full()), handoff(Agent("Last", model=last), filter=full())]
    await Agent("Desk", model=desk, handoffs=edges).run("please")
    assert sent(last) == ["please", "", "Checked."]
    assert breaches(last.requests[0].messages) == []


@pytest.mark.parametrize(("turn", "next_agent"), [("target", "C"), ("caller", "B"), ("root", "A")])
async def test_the_next_turn_is_whose_the_last_handoff_says(turn: Any, next_agent: str, tmp_path: Path) -> None:
    c = Agent("C", model=ScriptedModel("from C"))
    b = Agent("B", model=ScriptedModel(transfer("c", "h2")), handoffs=[handoff(c, next_turn=turn)])
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[b])
    path = tmp_path / "s.jsonl"
    result = await a.run("go", session=path)
    session = Session(path)
    assert (result.output, session.active_agent, verify(path).ok) == ("from C", next_agent, True)
    assert session.history(next_agent)[-1].text == "from C"
    assert breaches(session.history(next_agent)) == []


async def test_a_handoff_that_returns_does_not_change_whose_the_next_turn_is(tmp_path: Path) -> None:
    clerk = Agent("Clerk", model=ScriptedModel("Checked."))
    b_model = ScriptedModel(transfer("clerk", "h2"), "from B")
    b = Agent("B", model=b_model, handoffs=[handoff(clerk, returns=full())])
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[handoff(b, next_turn="caller")])
    path = tmp_path / "s.jsonl"
    await a.run("go", session=path)
    assert (Session(path).active_agent, Session(path).history("A")[-1].text) == ("A", "from B")
    assert verify(path).ok


async def test_what_goes_back_for_the_next_turn_passes_a_filter_of_its_own(tmp_path: Path) -> None:
    def shout(history: Messages) -> Messages:
        return [message.replace(content="HIDDEN") for message in history]

    b = Agent("B", model=ScriptedModel("card 4111"))
    edge = handoff(b, next_turn="caller", next_filter=custom(shout))
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[edge])
    path = tmp_path / "s.jsonl"
    result = await a.run("go", session=path)
    assert (result.output, Session(path).history("A")[-1].text) == ("card 4111", "HIDDEN")


async def test_a_tool_hands_over_by_code_after_its_batch(tmp_path: Path) -> None:
    @tool
    def route(context: RunContext[Any]) -> str:
        context.handoff("B", reason="by rule")
        return "routed"

    target = ScriptedModel("from B")
    b = Agent("B", model=target)
    a = Agent("A", model=ScriptedModel(call("route", call_id="1")), tools=[route], handoffs=[handoff(b, filter=full())])
    path = tmp_path / "s.jsonl"
    result = await a.run("go", session=path)
    assert (result.output, result.agent, verify(path).ok) == ("from B", "B", True)
    assert sent(target) == ["go", "", "routed"]
    (record,) = [record for record in read(path).records() if isinstance(record, HandoffRecord)]
    assert (record.call_id, record.notes[0].text) == (None, "by rule")


async def test_a_hook_hands_over_by_code_also_where_the_answer_has_no_call() -> None:
    class Route(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            request.run.handoff("B")
            return response

    b = Agent("B", model=ScriptedModel("from B"))
    a = Agent("A", model=ScriptedModel("I would rather not."), middleware=[Route()], handoffs=[b])
    assert (await a.run("go")).output == "from B"


async def test_a_handoff_by_code_to_an_agent_that_is_not_reachable_is_refused() -> None:
    @tool
    def route(context: RunContext[Any]) -> str:
        with pytest.raises(UnknownTarget, match="reachable"):
            context.handoff("Nobody")
        return "stayed"

    result = await Agent("A", model=ScriptedModel(call("route", call_id="1"), "done"), tools=[route]).run("go")
    assert texts(result.messages)[2:] == ["stayed", "done"]


@pytest.mark.parametrize(("expose", "text"), [("final", "two"), ("all", "one\n\ntwo"), ("none", "The agent finished.")])
async def test_how_much_of_a_sub_agents_words_is_shown(expose: Any, text: str) -> None:
    @tool
    def look() -> str:
        return "ok"

    child = Agent("Child", model=ScriptedModel(["one", call("look", call_id="c")], "two"), tools=[look])
    boss = ScriptedModel(call("child", call_id="1", input="go"), "done")
    await Agent("Boss", model=boss, tools=[to_tool(child, expose=expose)]).run("hi")
    assert sent(boss, 1)[-1] == text


async def test_a_folded_answer_says_what_was_done_and_is_cut() -> None:
    child = Agent("Child", model=ScriptedModel("x" * 30))
    boss = ScriptedModel(call("child", call_id="1", input="go"), "done")
    await Agent("Boss", model=boss, tools=[child.to_tool(fold=10)]).run("hi")
    assert sent(boss, 1)[-1] == "[Child completed in 1 step; tools: none]\nxxxxxxxxxx… (20 characters left out)"


async def test_where_only_reading_is_allowed_tools_with_effects_are_neither_offered_nor_run() -> None:
    ran: list[str] = []

    @tool(side_effects="read_only")
    def look() -> str:
        return "seen"

    @tool
    def pay() -> str:
        ran.append("pay")
        return "paid"

    grandchild_model = ScriptedModel(call("pay", call_id="g"), "could not")
    grandchild = Agent("Grandchild", model=grandchild_model, tools=[look, pay])
    child = Agent(
        "Child", model=ScriptedModel(call("grandchild", call_id="c", input="pay"), "told"), tools=[grandchild.to_tool()]
    )
    boss = Agent(
        "Boss",
        model=ScriptedModel(call("child", call_id="1", input="go"), "done"),
        tools=[child.to_tool(capability="read_only")],
    )
    await boss.run("hi")
    assert ([spec.name for spec in grandchild_model.requests[0].tools], ran) == (["look"], [])
    assert "only reading is allowed" in sent(grandchild_model, 1)[-1]


@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        ("all", {told.TurnStart, told.StepStart, told.Text, told.MessageDone, told.StepEnd, told.TurnEnd}),
        ("lifecycle", {told.TurnStart, told.TurnEnd}),
        ("none", set()),
    ],
)
async def test_a_childs_events_are_forwarded_by_the_level_of_its_edge(level: Any, kinds: set[type]) -> None:
    child = Agent("Child", model=ScriptedModel("two"))
    boss = ScriptedModel(call("child", call_id="1", input="go"), "done")
    heard = []
    async with Agent("Boss", model=boss, tools=[child.to_tool(forward_events=level)]).stream("hi") as run:
        async for event in run:
            heard.append(event)
    within = [event for event in heard if event.path == "Boss/Child@1"]
    outer = {event.run_id for event in heard if event.path == "Boss"}
    assert {type(event) for event in within} == kinds
    assert all(event.depth == 1 and {event.parent_id} == outer and event.run_id not in outer for event in within)


async def test_what_an_agent_that_inherits_writes_is_as_sensitive_as_what_it_saw() -> None:
    @tool(output_sensitivity="secret")
    def vault() -> str:
        return "PIN 9041"

    next_model = ScriptedModel("bye")
    target = Agent("Next", model=next_model)
    model = ScriptedModel(call("vault", call_id="1"), ["It is 9041.", transfer("next", reason="9041 it is")])
    edge = handoff(target, filter=by_sensitivity("internal"))
    result = await Agent("Desk", model=model, tools=[vault], handoffs=[edge], labels="inherit").run("which PIN?")
    assert (result.output, "9041" in str(next_model.requests[0].messages)) == ("bye", False)
    assert sent(next_model) == ["which PIN?"]


async def test_the_answer_of_a_sub_agent_that_inherits_keeps_its_label() -> None:
    @tool(output_sensitivity="secret")
    def vault() -> str:
        return "PIN 9041"

    child = Agent("Child", model=ScriptedModel(call("vault", call_id="1"), "9041"), tools=[vault], labels="inherit")
    boss = Agent("Boss", model=ScriptedModel(call("child", call_id="1", input="go"), "done"), tools=[child.to_tool()])
    result = await boss.run("hi")
    assert [(message.role, message.sensitivity) for message in result.messages][2] == ("tool", "secret")


async def test_what_a_failed_child_spent_is_counted_once_in_a_waiting_handoff_too() -> None:
    def fail(request: Any) -> str:
        raise LookupError

    desk = ScriptedModel(transfer("clerk"), "sorry")
    edge = handoff(Agent("Clerk", model=FunctionModel(fail, name="c")), returns=full())
    result = await Agent("Desk", model=desk, handoffs=[edge]).run("please")
    assert (result.usage.requests, result.steps) == (3, 3)


def test_parts_of_a_handoff_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(BuildError, match="no next turn"):
        handoff("B", returns=full(), next_turn="root")
    with pytest.raises(BuildError, match="next_turn is one of"):
        handoff("B", next_turn="nobody")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(BuildError, match="expose is one of"):
        Agent("X", model=ScriptedModel()).to_tool(expose="some")


async def test_two_runs_at_once_on_one_session_are_refused(tmp_path: Path) -> None:
    class Twice(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            with pytest.raises(SessionConflict, match="another run"):
                await Agent("Y", model=ScriptedModel("no")).run("y", session=session, start="self")
            return await call_next(request)

    with Session(tmp_path / "s.jsonl") as session:
        await Agent("X", model=ScriptedModel("ok"), middleware=[Twice()]).run("x", session=session)
    assert verify(tmp_path / "s.jsonl").ok


async def test_waiting_handoffs_count_against_the_limit_of_handoffs() -> None:
    clerk = Agent("Clerk", model=FunctionModel(lambda request: "checked"))
    desk = Agent(
        "Desk",
        model=FunctionModel(lambda request: transfer("clerk", f"h{len(request.messages)}")),
        handoffs=[handoff(clerk, returns=strip_tool_calls())],
    )
    from handrail.agent import Limits

    with pytest.raises(LimitExceeded, match="max_handoffs=3"):
        await desk.run("please", limits=Limits(max_handoffs=3))


def rules(**keys: str) -> Policy:
    lines = "\n".join(f"{key} = {value}" for key, value in keys.items())
    return Policy.from_toml(f"[[rule]]\nname = 'no'\n{lines}")


@pytest.mark.parametrize("where", ["run", "agent", "target", "edge"])
async def test_a_policy_stops_a_handoff_before_the_target_starts(where: str, tmp_path: Path) -> None:
    policy = rules(forbid_patterns="['4111']")
    target = ScriptedModel()
    b = Agent("B", model=target, policy=policy if where == "target" else None)
    edge = handoff(b, policy=policy if where == "edge" else None)
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[edge], policy=policy if where == "agent" else None)
    with pytest.raises(PolicyViolation) as caught:
        await a.run("card 4111", session=tmp_path / "s.jsonl", policy=policy if where == "run" else None)
    assert (target.requests, caught.value.agent, breaches(caught.value.messages)) == ([], "A", [])
    assert (Session(tmp_path / "s.jsonl").handoffs, verify(tmp_path / "s.jsonl").ok) == ([], True)


async def test_a_policy_on_answers_holds_for_what_a_sub_agent_gives_back() -> None:
    child = Agent("Child", model=ScriptedModel("card 4111"))
    boss = Agent("Boss", model=ScriptedModel(call("child", call_id="1", input="go")), tools=[child.to_tool()])
    with pytest.raises(PolicyViolation):
        await boss.run("hi", policy=rules(kind="['return']", forbid_patterns="['4111']"))


async def test_a_policy_that_nothing_breaks_changes_nothing() -> None:
    b = Agent("B", model=ScriptedModel("from B"))
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[b])
    assert (await a.run("hi", policy=rules(max_messages="5"))).output == "from B"


async def test_tokens_of_each_boundary_are_counted_where_the_run_has_a_counter(tmp_path: Path) -> None:
    b = Agent("B", model=ScriptedModel("from B"))
    a = Agent("A", model=ScriptedModel(transfer("b")), handoffs=[handoff(b, filter=last_n(1))])
    history = [user("word " * 100, id="u1"), assistant("yes", id="a1"), user("now", id="u2")]
    result = await a.run(history, session=tmp_path / "s.jsonl", counter="estimate@1")
    (crossing,), (record,) = result.handoffs, Session(tmp_path / "s.jsonl").handoffs
    assert crossing.saving == crossing.tokens_before - crossing.tokens_after > 50
    assert (record.tokens_before, record.tokens_after) == (crossing.tokens_before, crossing.tokens_after)


def test_what_is_no_policy_or_no_function_is_refused_when_it_is_given() -> None:
    wrong: Any = "strict.toml"
    child = Agent("B", model=ScriptedModel())
    for make in (
        lambda: Agent("A", model=ScriptedModel(), policy=wrong),
        lambda: handoff("B", policy=wrong),
        lambda: to_tool(child, policy=wrong),
        lambda: child.run_sync("hi", policy=wrong),
        lambda: handoff("B", deps=wrong),
        lambda: handoff("B", on_handoff=wrong),
        lambda: handoff("B", enabled=wrong),
    ):
        with pytest.raises(BuildError, match=r"not 'strict\.toml'"):
            make()


def test_describe_tells_what_an_edge_asks_and_what_is_labelled() -> None:
    @tool(output_sensitivity="secret")
    def vault() -> str:
        return "9041"

    edge = handoff(Agent("B", model=ScriptedModel()), input_type=Refund, deps=dict, enabled=lambda context: True)
    text = Agent("A", model=ScriptedModel(), tools=[vault], handoffs=[edge], labels="inherit").describe()
    assert "agent A (scripted, labels inherit)" in text
    assert "tool vault (side_effecting, gives secret)" in text
    assert "input Refund, with deps, enabled" in text
