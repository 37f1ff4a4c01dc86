"""Whatever the filter and the hooks, a child starts from lawful messages without reasoning, or it does not start."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, hear, ids, requests, roles, tasks, texts, unlawful
from handrail.agent import Agent, InvalidAnswer, ScriptedModel, handoff
from handrail.agent.events import HandoffEnd, HandoffStart
from handrail.agent.kernel import HandoffRequest, HandoffResponse, Middleware
from handrail.filters import (
    FilterFailed,
    Image,
    Message,
    Messages,
    NothingToHandOver,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    breaches,
    call,
    compose,
    full,
    last_user,
    none,
    strip_tool_calls,
    system,
    tool_result,
    user,
)
from handrail.filters.messages import canonical_json
from handrail.sessions import Session, verify

BUY = call("buy", call_id="c1", item="pen", qty=2)
TALK = (
    system("Prices are in francs.", id="s1"),
    user(["see picture", Image(media_type="image/png", data="iVBORw0=")], id="u1"),
    assistant(Reasoning("Customer looks risky.", data='{"signature":"c2lnLTE="}'), BUY, id="a1"),
    tool_result(BUY, "ok", id="t1"),
)


class Edge(Middleware):
    """A boundary layer that is a function."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    async def around_handoff(self, request: HandoffRequest, call_next: Any) -> Any:
        return await self.fn(request, call_next)


def pair(filter: Any = None, *layers: Middleware, reason: str = "") -> tuple[Agent, ScriptedModel, ScriptedModel]:
    """An agent that hands over at once, and the models of both."""
    source = ScriptedModel(call("transfer_to_b", call_id="h1", **({"reason": reason} if reason else {})))
    target = ScriptedModel("done")
    b = Agent("B", instructions="You are B.", model=target)
    return Agent("A", model=source, handoffs=[handoff(b, filter=filter)], middleware=layers), source, target


async def test_the_call_that_hands_over_never_reaches_the_child() -> None:
    a, source, target = pair(full(), reason="double charge")
    await a.run("I was charged twice.")
    assert texts(target.requests[0].messages) == ["I was charged twice."]
    assert unlawful(requests(source, target)) == []


async def test_all_crosses_full_but_the_reasoning_and_the_parents_instructions() -> None:
    a, _, target = pair(full())
    await a.run(TALK)
    seen = target.requests[0].messages
    assert (roles(seen), ids(seen)) == ("suat", ["s1", "u1", "a1", "t1"])
    assert seen[2].content == (BUY,)
    assert list(target.requests[0].instructions.values()) == ["You are B."]


@pytest.mark.parametrize("filter", [none(), strip_tool_calls(), last_user()])
async def test_where_no_user_message_is_left_the_reason_is_what_the_child_answers(filter: Any) -> None:
    a, _, target = pair(filter, reason="disk is full")
    await a.run([system("s"), assistant("Cron started me.", BUY), tool_result(BUY, "ok")])
    assert (target.requests[0].messages[-1].role, target.requests[0].messages[-1].text) == ("user", "disk is full")
    assert unlawful(requests(target)) == []


async def test_with_neither_user_message_nor_reason_the_child_does_not_start() -> None:
    a, _, target = pair(none())
    with pytest.raises(NothingToHandOver):
        await a.run("hi")
    assert requests(target) == []


def raises(history: Messages) -> Messages:
    raise LookupError("no such key")


def mutates(history: Any) -> Messages:
    history[2].content[0].text = "changed"
    return history


def clears(history: Any) -> Messages:
    history.clear()
    return ()


def nonsense(history: Messages) -> Any:
    return "everything"


def half_nonsense(history: Messages) -> Any:
    return [*history, {"role": "user"}]


def nothing(history: Messages) -> Any:
    return None


def twice(history: Messages) -> Messages:
    return (*history, history[0])


def invents(history: Messages) -> Messages:
    return (*history, assistant(call("buy", call_id="c9")), tool_result("c9", "bought"))


@pytest.mark.parametrize("filter", [raises, mutates, clears, nonsense, half_nonsense, nothing, twice, invents])
async def test_a_filter_that_fails_stops_the_handoff_and_leaves_the_parents_view_as_it_was(
    filter: Any, tmp_path: Path
) -> None:
    a, _, target = pair(filter)
    before = [message.digest for message in TALK]
    with pytest.raises(FilterFailed):
        await a.run(TALK, session=str(tmp_path / "s.jsonl"))
    kept = Session(tmp_path / "s.jsonl").history("A")
    assert requests(target) == []
    assert [message.digest for message in TALK] == [message.digest for message in kept[:4]] == before
    assert (roles(kept), breaches(kept), tasks()) == ("suatat", [], set())
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_the_step_that_failed_is_named() -> None:
    a, *_ = pair(raises)
    with pytest.raises(FilterFailed, match=r"step 1.*raised LookupError: no such key"):
        await a.run(TALK)


async def test_run_and_stream_fail_alike_when_a_filter_does() -> None:
    heard = await hear(pair(raises)[0], TALK)
    assert type(heard.error) is FilterFailed
    assert (len(heard.of(HandoffStart)), len(heard.of(HandoffEnd))) == (1, 0)


async def test_what_a_filter_makes_is_a_message_with_an_id_in_the_child_alone() -> None:
    a, _, target = pair(lambda history: [*history, user("mind the step")])
    result = await a.run(TALK)
    made = target.requests[0].messages[-1]
    assert (made.text, made.id[:3]) == ("mind the step", "f1-")
    assert made.id not in ids(result.handoffs[0].edge.view)


async def test_a_hook_may_choose_another_filter_and_another_reason() -> None:
    async def choose(request: HandoffRequest, call_next: Any) -> Any:
        assert (request.kind, request.source, request.target) == ("handoff", "A", "B")
        assert ids(request.history) == ["s1", "u1", "a1", "t1"]
        return await call_next(request.replace(filter=none(), reason="because"))

    a, _, target = pair(full(), Edge(choose), reason="money")
    result = await a.run(TALK)
    assert texts(target.requests[0].messages) == ["because"]
    assert repr(result.handoffs[0].filter) == "seal(none())"
    assert [note.text for note in result.handoffs[0].notes] == ["because"]


async def test_what_a_hook_returns_in_the_seals_place_is_sealed_again_and_marked(tmp_path: Path) -> None:
    async def add(request: HandoffRequest, call_next: Any) -> Any:
        sealed = (await call_next(request)).seed
        bad: list[Message] = [
            assistant(Reasoning("secret plan"), call("buy", call_id="c9")),
            user("PS", id="ps"),
            user(""),
        ]
        return HandoffResponse((*sealed, *bad))

    a, _, target = pair(last_user(), Edge(add))
    result = await a.run(TALK, session=str(tmp_path / "s.jsonl"))
    assert texts(target.requests[0].messages)[-2:] == ["see picture", "PS"]
    assert unlawful(requests(target)) == []
    assert result.handoffs[0].edited
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_every_message_of_a_seed_has_an_id_also_what_a_hook_made() -> None:
    async def make(request: HandoffRequest, call_next: Any) -> Any:
        return HandoffResponse((user("one"), user("two")))

    a, _, target = pair(full(), Edge(make))
    await a.run(TALK)
    assert all(ids(target.requests[0].messages))
    assert len(set(ids(target.requests[0].messages))) == 2


async def test_a_hook_that_does_not_call_on_keeps_the_filter_from_running_and_the_record_says_so(
    tmp_path: Path,
) -> None:
    async def instead(request: HandoffRequest, call_next: Any) -> Any:
        return HandoffResponse((user("start afresh", id="x1"),))

    a, _, target = pair(raises, Edge(instead))
    await a.run(TALK, session=str(tmp_path / "s.jsonl"))
    assert texts(target.requests[0].messages) == ["start afresh"]
    (record,) = Session(tmp_path / "s.jsonl").handoffs
    assert record.edited == "not run"
    assert verify(tmp_path / "s.jsonl").state == "intact"


@pytest.mark.parametrize("odd", [None, (), HandoffResponse(None), HandoffResponse("hi"), HandoffResponse(("hi",))])  # type: ignore[arg-type]  # what is tested
async def test_a_hook_that_returns_what_is_no_seed_stops_the_handoff(odd: Any) -> None:
    async def instead(request: HandoffRequest, call_next: Any) -> Any:
        return odd

    a, _, target = pair(full(), Edge(instead))
    error = await failure(a, TALK)
    assert type(error) is InvalidAnswer
    assert (requests(target), breaches(error.messages)) == ([], [])


async def test_a_hook_that_empties_the_seed_stops_the_handoff() -> None:
    async def instead(request: HandoffRequest, call_next: Any) -> Any:
        return HandoffResponse(())

    a, _, target = pair(full(), Edge(instead))
    with pytest.raises(NothingToHandOver):
        await a.run(TALK)
    assert requests(target) == []


@pytest.mark.parametrize(
    "changes", [{"history": (user("other", id="o1"),)}, {"target": "A"}, {"source": "B"}], ids=["history", "to", "from"]
)
async def test_a_hook_that_changes_what_the_boundary_is_given_or_where_it_leads_is_refused(
    changes: Any, tmp_path: Path
) -> None:
    async def reach(request: HandoffRequest, call_next: Any) -> Any:
        return await call_next(request.replace(**changes))

    a, _, target = pair(full(), Edge(reach))
    with pytest.raises(InvalidAnswer, match=r"of A changes its .* read-only"):
        await a.run(TALK, session=str(tmp_path / "s.jsonl"))
    assert requests(target) == []
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_a_hooks_error_at_the_boundary_comes_out_as_itself() -> None:
    async def refuse(request: HandoffRequest, call_next: Any) -> Any:
        raise PermissionError("no")

    a, _, target = pair(full(), Edge(refuse))
    with pytest.raises(PermissionError, match="no"):
        await a.run(TALK)
    assert requests(target) == []


async def test_the_sources_hook_also_stands_around_a_sub_agents_boundary_and_its_error_comes_out_as_itself() -> None:
    async def refuse(request: HandoffRequest, call_next: Any) -> Any:
        assert (request.kind, request.input) == ("subagent", "x")
        raise PermissionError("no")

    child = Agent("Child", model=ScriptedModel())
    model = ScriptedModel(call("child", call_id="t1", input="x"))
    with pytest.raises(PermissionError, match="no"):
        await Agent("Boss", model=model, tools=[child.to_tool()], middleware=[Edge(refuse)]).run("go")


async def test_what_stayed_and_why_can_be_asked_afterwards() -> None:
    a, *_ = pair(last_user())
    (crossing,) = (await a.run(TALK)).handoffs
    assert (crossing.messages_before, crossing.messages_after) == (4, 2)
    assert ids(crossing.stayed) == ["a1", "t1"]
    assert str(crossing) == "A -> B: 2 of 4 messages crossed, 0 made"
    assert "a1" in str(crossing.report)


async def test_a_handoff_is_told_with_what_crossed() -> None:
    heard = await hear(pair(last_user())[0], TALK)
    (start,), (end,) = heard.of(HandoffStart), heard.of(HandoffEnd)
    assert (start.source, start.target, start.call_id) == ("A", "B", "h1")
    assert (ids(end.crossed), end.messages_before) == (["s1", "u1"], 4)


async def test_reasoning_stays_in_its_own_agents_loop() -> None:
    thought = assistant(Reasoning("I think.", data='{"sig":"x"}'), Text("Hold on."), call("transfer_to_b"))
    source, target = ScriptedModel(thought, "bye"), ScriptedModel([Reasoning("So."), call("transfer_to_a")])
    b = Agent("B", model=target, handoffs=[handoff("A", filter=full())])
    await Agent("A", model=source, handoffs=[handoff(b, filter=full())]).run("hi")
    assert texts(target.requests[0].messages) == ["hi", "Hold on."]
    assert not any(isinstance(part, Reasoning) for m in target.requests[0].messages for part in m.content)
    own = [part for message in source.requests[1].messages for part in message.content if isinstance(part, Reasoning)]
    assert own == [Reasoning("I think.", data='{"sig":"x"}')]


def gives(*messages: Message) -> Edge:
    async def instead(request: HandoffRequest, call_next: Any) -> Any:
        return HandoffResponse(((await call_next(request)).seed[0], *messages))

    return Edge(instead)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ((user("one", id="x1"), user("two", id="x1")), "gives the message id 'x1' twice"),
        ((TALK[0],), "gives the message id 's1' twice"),
        ((user("Buy!", id="x1"), assistant(BUY, id="x2"), tool_result("c1", "bought", id="x3")), "invents an answer"),
        ((assistant(BUY, id="x2"), tool_result("c1", "bought", id="t9")), "invents an answer to the call 'c1'"),
    ],
)
async def test_a_hooks_seed_is_looked_at_as_a_filters_is(
    made: tuple[Message, ...], problem: str, tmp_path: Path
) -> None:
    a, _, target = pair(full(), gives(*made))
    with pytest.raises(FilterFailed, match=f"a hook around the handoff.*{problem}"):
        await a.run(TALK, session=tmp_path / "s.jsonl")
    assert requests(target) == []
    assert (Session(tmp_path / "s.jsonl").handoffs, verify(tmp_path / "s.jsonl").state) == ([], "intact")


async def test_a_hook_may_give_a_result_that_stands_in_the_view_also_where_the_boundary_leaves_it_out() -> None:
    refused = ToolCall("h0", "transfer_to_c", transfer=True)
    talk = (*TALK, assistant(refused, id="a2"), tool_result(refused, "not available", id="t2"))
    for asked, result in ((BUY, talk[3]), (call("transfer_to_c", call_id="h0"), talk[5])):
        a, _, target = pair(last_user(), gives(user("Buy!", id="x1"), assistant(asked, id="x2"), result))
        await a.run(talk)
        assert ids(target.requests[0].messages) == ["s1", "x1", "x2", result.id]


async def test_a_filter_may_bring_back_what_stands_in_the_view() -> None:
    a, _, target = pair(compose(last_user(), lambda history: (*history, *TALK[2:])))
    await a.run(TALK)
    assert ids(target.requests[0].messages) == ["s1", "u1", "a1", "t1"]


@pytest.mark.parametrize("filter", [mutates, clears, raises, nonsense])
async def test_what_a_session_holds_is_the_same_bytes_after_a_hostile_filter(filter: Any, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    await Agent("A", model=ScriptedModel("Anything else?")).run(TALK, session=path)
    stored, before = path.read_bytes(), [canonical_json(message) for message in Session(path).history("A")]
    with pytest.raises(FilterFailed), Session(path) as session:
        await pair(filter)[0].run("Pass me on.", session=session)
    assert path.read_bytes().startswith(stored)
    for view in (session.history("A"), Session(path).history("A")):
        assert [canonical_json(message) for message in view[: len(before)]] == before


async def test_who_hears_a_run_has_each_boundary_as_soon_as_it_is_crossed() -> None:
    asks = ScriptedModel(call("transfer_to_billing", reason="money"))
    agent = Agent("triage", model=asks, handoffs=[handoff(Agent("billing", model=ScriptedModel("Yes.")))])
    crossed = []
    async with agent.stream("Twice?") as run:
        assert tuple(run.handoffs) == ()
        async for event in run:
            if isinstance(event, HandoffEnd):
                crossed += [(each.source, each.target, [note.text for note in each.notes]) for each in run.handoffs]
    assert crossed == [("triage", "billing", ["money"])]
    assert run.handoffs == run.result.handoffs
