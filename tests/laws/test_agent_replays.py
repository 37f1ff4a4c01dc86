"""What was just recorded replays without divergence, and one thing that is changed is where the first divergence is."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.desks import pause
from handrail.agent import Agent, Limits, Tool
from handrail.agent.kernel import ChatRequest, Middleware, ToolRequest, ToolResponse
from handrail.agent.models import ChatResponse
from handrail.agent.replay import rerun
from handrail.filters import (
    Filter,
    FilterError,
    FixedIds,
    HandrailError,
    Text,
    digest,
    full,
    last_n,
    last_user,
    none,
    seal,
)
from handrail.sessions import Boundary, ModelCallRecord, ToolResultRecord, crossings, read
from handrail.sessions.paths import name_of
from handrail.sessions.records import asked_by
from laws.scripts import desk, limits, scripts
from laws.strategies import filters
from laws.walks import EDGES, Walk, go_on


class Marking(Middleware):
    """Changes what is asked, what is answered and what tools give, and waits now and then."""

    async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
        asked = request.replace(instructions={**request.instructions, "mark": f"step {request.run.step}"})
        response = await call_next(asked)
        await pause()
        said = response.message
        if len(said.content) % 2:
            said = said.replace(content=(*said.content, Text(" -- marked")))
        return response.replace(message=said)

    async def around_tool(self, request: ToolRequest, call_next: Any) -> ToolResponse:
        response = await call_next(request)
        await pause()
        return response if response.is_error else response.replace(content=f"<{response.value}>")


class Twice(Middleware):
    """Asks a second time, and takes the second answer."""

    async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
        first = await call_next(request)
        if request.run.step % 2:
            return first
        return await call_next(request.replace(messages=request.messages[-3:]))


layers = st.sampled_from([(), (Marking(),), (Twice(), Marking())])


async def record(path: Path, agent: Agent, words: Sequence[str], **options: Any) -> None:
    for said in words:
        try:
            await agent.run(said, session=str(path), **options)
        except (HandrailError, RuntimeError):
            continue


@settings(max_examples=150)
@given(scripts, limits, layers, st.booleans(), st.integers(1, 3))
async def test_what_was_just_recorded_replays_without_divergence(
    script: list[Any], bounds: Limits, outer: Sequence[Middleware], fixed: bool, runs: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        ids: dict[str, Any] = {"ids": FixedIds("m")} if fixed else {}
        await record(path, desk(script, outer), ["go", "on", "further"][:runs], limits=bounds, **ids)
        replay = await rerun(path, desk((), outer))
        assert replay.ok, str(replay)


words = st.sampled_from(["text", "ok", "bad", "child", "transfer_to_a", "transfer_to_b", "transfer_to_c"])
moves = st.lists(st.lists(words, max_size=3), max_size=6)
walks = st.lists(moves, min_size=1, max_size=3)
chosen = st.lists(filters, min_size=len(EDGES), max_size=len(EDGES))


@settings(max_examples=60)
@given(chosen, walks)
async def test_a_walk_replays_without_divergence(filters: list[Filter], walk: list[list[list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "walk.jsonl")
        for moves in walk:
            await go_on(path, filters, moves)
        replay = await rerun(path, Walk(filters, []).root)
        assert replay.ok, str(replay)


def first_call(path: Path, wanted: Callable[[ModelCallRecord], bool]) -> tuple[str, int] | None:
    """Where the first model call of this kind is: path and step."""
    calls = [each for each in read(path).records() if isinstance(each, ModelCallRecord)]
    return next(((each.path, each.step) for each in calls if wanted(each)), None)


class Speaking(Middleware):
    """Adds to the instructions of one agent at one step."""

    def __init__(self, agent: str, step: int) -> None:
        self.agent, self.step = agent, step

    async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
        if (request.run.agent, request.run.step) == (self.agent, self.step):
            request = request.replace(instructions={**request.instructions, "more": "Speak up."})
        response: ChatResponse = await call_next(request)
        return response


@settings(max_examples=60)
@given(scripts, st.sampled_from(["A", "B", "C", "Child"]), st.integers(1, 4))
async def test_one_request_that_is_otherwise_is_where_the_first_divergence_is(
    script: list[Any], agent: str, step: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        await record(path, desk(script), ["go", "on"])
        found = (await rerun(path, desk(()), middleware=[Speaking(agent, step)])).divergence
        expected = first_call(path, lambda each: (name_of(each.path), each.step) == (agent, step))
        assert (None if found is None else (found.path, found.step)) == expected
        if found is not None:
            assert (found.what, [each.where for each in found.differences]) == ("request", ["instructions more"])


@settings(max_examples=60)
@given(scripts, st.sampled_from(["ok", "bad", "slow", "direct"]))
async def test_a_tool_of_another_name_is_missed_at_the_first_request_that_offered_it(
    script: list[Any], name: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        await record(path, desk(script), ["go"])
        offers = [agent for agent, bound in desk(()).graph().agents.items() if name in bound.tools]
        found = (await rerun(path, renamed(name))).divergence
        expected = first_call(path, lambda each: name_of(each.path) in offers)
        assert (None if found is None else (found.path, found.step)) == expected


def renamed(name: str) -> Agent:
    """The desk, with one tool of another name."""
    agent = desk(())
    for bound in agent.graph().agents.values():
        tools = [other(each) if each.name == name else each for each in bound.agent.tools]
        object.__setattr__(bound.agent, "tools", tuple(tools))
    object.__setattr__(agent, "_graph", None)
    return agent


def other(tool: Tool) -> Tool:
    return Tool(name="other", description=tool.description, fn=tool.fn, return_direct=tool.return_direct)


@settings(max_examples=60)
@given(filters, st.sampled_from([none(), last_user(), last_n(1), full()]), walks)
async def test_another_filter_diverges_at_the_first_boundary_that_it_changes(
    filter: Filter, other: Filter, walk: list[list[list[str]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "walk.jsonl")
        for moves in walk:
            await go_on(path, [filter] * len(EDGES), moves)
        edges = [each for each in crossings(path) if each.edge is not None]
        expected = next((each.record.path for each in edges if changes(other, each)), None)
        found = (await rerun(path, Walk([other] * len(EDGES), [], returns=filter).root)).divergence
        if found is not None and "is not in the record" in str(found):
            assert found.path in refused(path)  # what was not handed over then crosses now
        else:
            assert (None if found is None else found.path) == expected


def refused(path: str) -> set[str]:
    """Where a boundary was asked for and not crossed."""
    results = [record for record in read(path).records() if isinstance(record, ToolResultRecord)]
    return {record.path for record in results if record.message.is_error and record.message.name not in ("ok", "bad")}


def changes(other: Filter, crossed: Boundary) -> bool:
    """Whether another seed, or none, would have crossed through this filter."""
    record, edge = crossed.record, crossed.edge
    assert edge is not None
    try:
        seed = seal(other).hand_over(edge.messages, record.notes, edge.view, asked_by=asked_by(record))
    except FilterError:
        return True
    return digest(seed) != record.seed
