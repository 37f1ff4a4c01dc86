"""However agents hand over and back, with whatever filters, in one process or two, the record verifies and no request
holds what it may not."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.desks import ids
from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import Filter, FilterError, History, Note, breaches, call, edge_history, seal, user
from handrail.sessions import Session, verify
from laws.strategies import filters, lawful
from laws.walks import EDGES, go_on

Elsewhere = Callable[[str, list[Filter], list[list[str]]], list[str]]

words = st.sampled_from(["text", "ok", "bad", "child", "transfer_to_a", "transfer_to_b", "transfer_to_c"])
moves = st.lists(st.lists(words, max_size=3), max_size=6)
walks = st.lists(moves, min_size=1, max_size=4)
chosen = st.lists(filters, min_size=len(EDGES), max_size=len(EDGES))


@pytest.fixture(scope="module")
def elsewhere(root: Path) -> Iterator[Elsewhere]:
    """Goes on with a walk in a second process."""
    paths = os.pathsep.join([str(root / "tests"), *sys.path])
    command = [sys.executable, "-m", "laws.walks"]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=root
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asks, tells = process.stdin, process.stdout

        def go_on(path: str, filters: list[Filter], moves: list[list[str]]) -> list[str]:
            print(json.dumps([path, [each.descriptor for each in filters], moves]), file=asks, flush=True)
            wrong: list[str] = json.loads(tells.readline())
            return wrong

        yield go_on


@settings(max_examples=60)
@given(chosen, walks)
async def test_a_walk_that_goes_on_in_a_second_process_verifies_and_every_request_is_clean(
    elsewhere: Elsewhere, filters: list[Filter], walk: list[list[list[str]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "walk.jsonl")
        for number, moves in enumerate(walk):
            wrong = elsewhere(path, filters, moves) if number % 2 else await go_on(path, filters, moves)
            assert wrong == []
        verdict = verify(path)
        assert verdict.state == "intact", str(verdict)
        views = Session(path).views
        assert all(breaches(view.history) == [] for view in views.values())
        assert all(len(set(ids(view.history))) == len(view.history) for view in views.values())


@given(filters, lawful)
async def test_a_childs_first_request_holds_nothing_but_what_its_filter_let_through(
    filter: Filter, history: History
) -> None:
    child = ScriptedModel("fine")
    boss = ScriptedModel(call("child", call_id="t1", input="Help."), "done")
    agent = Agent("Boss", model=boss, tools=[Agent("Child", model=child).to_tool(filter=filter)])
    result = await agent.run([*history, user("Go.", id="go")])
    (request,) = boss.requests[:1]
    expected = through(filter, History(request.messages), Note("input", "Help."), "Boss\0t1")
    got = [tuple(each.messages) for each in child.requests]
    assert got == ([expected] if expected is not None else [])
    assert result.output == "done"


@given(filters, lawful)
async def test_a_targets_first_request_holds_nothing_but_what_its_filter_let_through(
    filter: Filter, history: History
) -> None:
    source, target = ScriptedModel(call("transfer_to_b", call_id="h1", reason="Why.")), ScriptedModel("done")
    agent = Agent("A", model=source, handoffs=[handoff(Agent("B", model=target), filter=filter)])
    try:
        await agent.run([*history, user("Go.", id="go")])
    except FilterError:
        assert target.requests == []
    expected = through(filter, History(source.requests[0].messages), Note("reason", "Why."), "A\0h1")
    assert [tuple(each.messages) for each in target.requests] == ([expected] if expected is not None else [])


def through(filter: Filter, view: History, note: Note, asked_by: str) -> Any:
    """What the filter lets through of a view and a note, or None where it lets nothing start."""
    edge = edge_history(view, kind="handoff")
    try:
        return tuple(seal(filter).hand_over(edge.messages, [note], edge.view, asked_by=asked_by))
    except FilterError:
        return None
