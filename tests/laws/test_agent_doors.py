"""Whatever models, tools and limits do, the doors to a run end alike and fail alike."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from agent.desks import tasks
from handrail.agent import Limits
from handrail.agent.events import MessageDone, RunEnd, RunStart, Text, ToolEnd, ToolStart, TurnEnd, TurnStart
from handrail.filters import breaches
from handrail.sessions import Session, read, verify
from laws.scripts import desk, fixed, limits, ran, scripts, streamed


@given(scripts, limits)
async def test_run_and_stream_end_alike_and_fail_alike(script: list[Any], limit: Limits) -> None:
    by_run = await ran(desk(script), limits=limit)
    by_stream, _ = await streamed(desk(script), limits=limit)
    assert by_run == by_stream
    assert tasks() == set()


@given(scripts, limits)
async def test_what_a_run_leaves_is_lawful_however_it_ended(script: list[Any], limit: Limits) -> None:
    ended = await ran(desk(script), limits=limit)
    assert breaches(ended.messages) == []
    named = [message.id for message in ended.new_messages]
    assert all(named)
    assert len(set(named)) == len(named)


@given(scripts, limits)
async def test_what_is_told_of_a_run_begins_and_ends_and_joins_to_what_was_said(
    script: list[Any], limit: Limits
) -> None:
    _, events = await streamed(desk(script), limits=limit)
    kinds = [type(event) for event in events]
    assert (kinds[0], kinds[-1], kinds.count(RunEnd)) == (RunStart, RunEnd, 1)
    assert kinds.count(TurnStart) == kinds.count(TurnEnd)
    assert kinds.count(ToolEnd) <= kinds.count(ToolStart)
    for done in [event for event in events if isinstance(event, MessageDone)]:
        deltas = [event.text for event in events if isinstance(event, Text) and event.message_id == done.message.id]
        assert "".join(deltas) == done.message.text


@settings(max_examples=50)
@given(scripts, limits)
async def test_a_run_is_written_down_the_same_whichever_its_door(script: list[Any], limit: Limits) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "run.jsonl", Path(folder) / "stream.jsonl"]
        written = []
        for path, door in zip(paths, (ran, streamed), strict=True):
            with Session(path, fsync="never", **fixed()) as session:
                await door(desk(script), limits=limit, session=session)
            assert verify(path).state == "intact"
            views = Session(path).views
            assert all(breaches(view.history) == [] for view in views.values())
            written.append(([*read(path).records()], {name: tuple(view.history) for name, view in views.items()}))
        assert written[0] == written[1]
