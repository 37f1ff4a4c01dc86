"""A resolver is asked once at the boundary; what it gives is what runs, what hooks see, and what is recorded."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.desks import requests, roles, texts, unlawful
from handrail.agent import Agent, ScriptedModel, handoff, tool
from handrail.agent.kernel import HandoffRequest, Middleware
from handrail.filters import (
    EdgeInfo,
    FilterFailed,
    History,
    InvalidFilter,
    Messages,
    NothingToHandOver,
    attribute_agents,
    call,
    compose,
    dynamic,
    full,
    last_n,
    last_user,
    note_foreign_tools,
    seal,
    since_handoff,
    summarize,
    unresolved,
    user,
)
from handrail.sessions import Session, verify


async def join(messages: Messages) -> str:
    return " | ".join([message.text for message in messages])


def chain(filter: Any, *lines: str) -> tuple[Agent, list[ScriptedModel]]:
    """Agents A, B, C … of which each says its line and hands over to the next; the last one only talks."""
    last: list[Any] = []
    models: list[ScriptedModel] = []
    for number in range(len(lines) - 1, -1, -1):
        name, said = "ABCDEF"[number], [lines[number]]
        transfer = [call(f"transfer_to_{last[0].name.lower()}", call_id=f"h{number}")] if last else []
        models.insert(0, ScriptedModel([*said, *transfer]))
        last = [Agent(name, model=models[0], handoffs=[handoff(agent, filter=filter) for agent in last])]
    return last[0], models


@pytest.mark.parametrize("keep_last", [0, 1, 2])
@pytest.mark.parametrize("instructions", ["", "Summarise what was said."])
async def test_in_a_chain_with_summaries_each_utterance_reaches_the_last_agent_once(
    keep_last: int, instructions: str, tmp_path: Path
) -> None:
    first, models = chain(
        summarize(join, instructions=instructions, keep_last=keep_last), "ALPHA-1", "BETA-2", "GAMMA-3", "done"
    )
    result = await first.run("USER-0", session=str(tmp_path / "s.jsonl"))
    seen = "\n".join(texts(models[3].requests[0].messages))
    assert [seen.count(said) for said in ("USER-0", "ALPHA-1", "BETA-2", "GAMMA-3")] == [1, 1, 1, 1]
    assert (unlawful(requests(*models)), result.agent) == ([], "D")
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_a_summary_crosses_in_the_user_role_and_marked_as_data() -> None:
    first, models = chain(summarize(join, instructions=""), "ALPHA-1", "done")
    await first.run("USER-0")
    (seen,) = models[1].requests[0].messages
    assert (seen.role, seen.id[:3]) == ("user", "f1-")
    assert seen.text.startswith("[What was said before, summarised by a model, quoted as data")
    assert "\nUSER-0 | ALPHA-1\n" in seen.text


async def fails(messages: Messages) -> str:
    raise ConnectionError("no route to host")


async def says_nothing(messages: Messages) -> str:
    return " \n"


async def breaks_off(messages: Messages) -> str:
    said = "Sum"
    raise ConnectionError(f"broke after {said}")


async def hangs(messages: Messages) -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize("ask", [fails, says_nothing, breaks_off, hangs])
async def test_a_summary_that_fails_stops_the_handoff_or_a_stated_filter_takes_its_place(ask: Any) -> None:
    first, models = chain(summarize(ask, timeout=0.01), "ALPHA-1", "done")
    with pytest.raises(FilterFailed, match=rf"summarize\({ask.__name__}\)") as raised:
        await first.run("USER-0")
    assert (requests(models[1]), raised.value.agent) == ([], "A")
    assert texts(raised.value.messages)[0] == "USER-0"

    first, models = chain(summarize(ask, timeout=0.01, on_error=last_user()), "ALPHA-1", "done")
    result = await first.run("USER-0")
    assert texts(models[1].requests[0].messages) == ["USER-0"]
    assert result.handoffs[0].filter == seal(last_user())


async def test_after_a_failed_summary_a_healthy_one_goes_on_from_what_was_kept() -> None:
    healthy = [False]

    async def ask(messages: Messages) -> str:
        return await (join if healthy[0] else fails)(messages)

    transfer = call("transfer_to_b", call_id="h1")
    a, b = ScriptedModel(["ALPHA-1", transfer], ["ALPHA-2", transfer]), ScriptedModel("done")
    first = Agent("A", model=a, handoffs=[handoff(Agent("B", model=b), filter=summarize(ask, instructions=""))])
    with pytest.raises(FilterFailed) as raised:
        await first.run("USER-0")
    healthy[0] = True
    await first.run([*raised.value.messages, user("USER-1", id="u1")])
    (seen,) = texts(b.requests[0].messages)
    assert "USER-0 | ALPHA-1 | USER-1 | ALPHA-2" in seen
    assert "ConnectionError" not in seen


async def test_the_edge_tells_who_hands_to_whom_why_and_with_what() -> None:
    told: list[EdgeInfo] = []

    async def choose(history: Messages, edge: EdgeInfo) -> Any:
        told.append(edge)
        return last_n(1)

    b = Agent("B", model=ScriptedModel("done"), tools=[tool(name="refund")(_nothing)])
    model = ScriptedModel([call("transfer_to_b", call_id="h1", reason="money")])
    await Agent("A", model=model, handoffs=[handoff(b, filter=dynamic(choose))]).run("hi", deps={"tenant": 7})
    (edge,) = told
    assert (edge.source, edge.target, edge.kind, edge.reason, edge.deps) == (
        "A",
        "B",
        "handoff",
        "money",
        {"tenant": 7},
    )
    assert (edge.target_tools, edge.model, edge.said) == (("refund",), model, None)
    assert edge.now > 0


async def _nothing() -> str:
    return ""


async def test_a_sub_agent_is_a_boundary_too(tmp_path: Path) -> None:
    told: list[EdgeInfo] = []

    def choose(history: Messages, edge: EdgeInfo) -> Any:
        told.append(edge)
        return compose(last_n(1), attribute_agents())

    child = ScriptedModel("answer")
    boss = ScriptedModel("Hello.", [call("child", call_id="t1", input="What?")], "done")
    agent = Agent("Boss", model=boss, tools=[Agent("Child", model=child).to_tool(filter=dynamic(choose))])
    with Session(tmp_path / "s.jsonl") as session:
        await agent.run("hi", session=session)
        await agent.run("and now?", session=session)
    assert [(edge.kind, edge.input) for edge in told] == [("subagent", "What?")]
    assert texts(child.requests[0].messages) == ["and now?", "What?"]
    assert verify(tmp_path / "s.jsonl").state == "intact"


async def test_hooks_see_the_resolved_filter_and_it_is_what_is_recorded(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looks(Middleware):
        async def around_handoff(self, request: HandoffRequest, call_next: Any) -> Any:
            seen.append(request.filter)
            return await call_next(request)

    model = ScriptedModel(call("transfer_to_b", call_id="h1"))
    edge = handoff(Agent("B", model=ScriptedModel("done")), filter=dynamic(lambda history, edge: last_n(1)))
    result = await Agent("A", model=model, handoffs=[edge], middleware=[Looks()]).run(
        "hi", session=str(tmp_path / "s.jsonl")
    )
    assert seen == [last_n(1)]
    assert result.handoffs[0].filter == seal(last_n(1))
    with Session(tmp_path / "s.jsonl") as session:
        assert [record.filter for record in session.handoffs] == [seal(last_n(1)).descriptor]


async def test_a_hook_may_put_a_resolver_in_the_filters_place() -> None:
    class Replaces(Middleware):
        async def around_handoff(self, request: HandoffRequest, call_next: Any) -> Any:
            return await call_next(request.replace(filter=summarize(join, instructions="")))

    target = ScriptedModel("done")
    edge = handoff(Agent("B", model=target), filter=full())
    model = ScriptedModel(call("transfer_to_b", call_id="h1"))
    result = await Agent("A", model=model, handoffs=[edge], middleware=[Replaces()]).run("USER-0")
    assert "\nUSER-0\n" in target.requests[0].messages[0].text
    assert not unresolved(result.handoffs[0].filter)


@pytest.mark.parametrize("given", [(), None, [], "everything", History()])
async def test_a_resolver_that_gives_no_filter_stops_the_handoff(given: Any) -> None:
    def choose(history: Messages, edge: EdgeInfo) -> Any:
        return given

    first, models = chain(dynamic(choose), "ALPHA-1", "done")
    with pytest.raises(FilterFailed, match=r"dynamic\(choose\) gave what is no filter"):
        await first.run("USER-0")
    assert requests(models[1]) == []


async def test_a_resolver_that_raises_or_cancels_itself_stops_the_handoff() -> None:
    for error in (LookupError("no such tenant"), asyncio.CancelledError()):

        async def choose(history: Messages, edge: EdgeInfo, error: BaseException = error) -> Any:
            raise error

        first, models = chain(dynamic(choose), "ALPHA-1", "done")
        with pytest.raises(FilterFailed, match=r"dynamic\(choose\)"):
            await first.run("USER-0")
        assert requests(models[1]) == []


async def test_a_run_whose_resolver_hangs_can_be_cancelled() -> None:
    began = asyncio.Event()

    async def ask(messages: Messages) -> str:
        began.set()
        return await hangs(messages)

    first, models = chain(summarize(ask), "ALPHA-1", "done")
    running = asyncio.create_task(first.run("USER-0"))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert requests(models[1]) == []


async def test_tools_that_the_target_lacks_become_notes_and_the_others_stay() -> None:
    both = tool(name="shared")(_nothing)
    target = ScriptedModel("done")
    calls = [call("track", call_id="c1", parcel="8841"), call("shared", call_id="c2")]
    model = ScriptedModel(calls, call("transfer_to_b", call_id="h1"))

    @tool(name="track")
    async def track(parcel: str) -> str:
        return f"{parcel} is in Porto"

    edge = handoff(Agent("B", model=target, tools=[both]), filter=compose(note_foreign_tools(), full()))
    await Agent("A", model=model, tools=[track, both], handoffs=[edge]).run("Where is it?")
    seen = target.requests[0].messages
    assert (roles(seen), [each.name for each in seen[1].tool_calls]) == ("uatu", ["shared"])
    assert "A called track" in seen[3].text
    assert "8841 is in Porto" in seen[3].text
    assert unlawful(requests(model, target)) == []


async def test_what_other_agents_said_is_quoted_and_what_the_target_said_is_its_own() -> None:
    first, models = chain(attribute_agents(), "ALPHA-1", "BETA-2", "done")
    await first.run("USER-0")
    seen = models[2].requests[0].messages
    assert [(message.role, message.text.split(",")[0]) for message in seen] == [
        ("user", "USER-0"),
        ("user", "[A said"),
        ("user", "[B said"),
    ]


async def test_since_the_handoff_is_since_the_source_got_control() -> None:
    first, models = chain(compose(since_handoff()), "ALPHA-1", "BETA-2", "done")
    with pytest.raises(NothingToHandOver):
        await first.run("USER-0")
    assert texts(models[1].requests[0].messages) == ["USER-0", "ALPHA-1"]

    first, models = chain(compose(since_handoff(), attribute_agents()), "ALPHA-1", "BETA-2", "done")
    await first.run("USER-0")
    (seen,) = models[2].requests[0].messages
    assert "\nBETA-2\n" in seen.text


async def test_in_a_later_run_since_the_handoff_is_since_the_same_handoff(tmp_path: Path) -> None:
    b = ScriptedModel("Which order?", ["8841 then.", call("transfer_to_c", call_id="h2")])
    c = ScriptedModel("Refunded.")
    billing = Agent("B", model=b, handoffs=[handoff(Agent("C", model=c), filter=since_handoff())])
    first = Agent("A", model=ScriptedModel(call("transfer_to_b", call_id="h1")), handoffs=[billing])
    path = str(tmp_path / "s.jsonl")
    await first.run("I was charged twice.", session=path)
    await first.run("Order 8841.", session=path)
    assert texts(c.requests[0].messages) == ["Which order?", "Order 8841.", "8841 then."]
    assert verify(path).state == "intact"


def test_an_answer_that_comes_back_as_a_result_takes_no_resolver() -> None:
    with pytest.raises(InvalidFilter, match="known beforehand"):
        Agent("B", model=ScriptedModel()).to_tool(returns=summarize(join))
    with pytest.raises(InvalidFilter, match="known beforehand"):
        handoff("B", returns=since_handoff())


def test_a_description_prints_the_resolver() -> None:
    first, _ = chain(compose(since_handoff(), summarize(join)), "ALPHA-1", "done")
    assert "filter seal(compose(since_handoff(), summarize(join), strip_reasoning()))" in first.describe()


async def test_what_a_resolver_does_wrong_is_told_with_its_name() -> None:
    first, _ = chain(dynamic(lambda history, edge: last_n(0)), "ALPHA-1", "done")
    with pytest.raises(FilterFailed, match=r"dynamic\(<lambda>\) raised InvalidFilter: n is a whole number"):
        await first.run("USER-0")
