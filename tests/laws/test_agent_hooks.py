"""State hooks that change nothing change nothing, and whatever they do the record is sound."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.desks import ids, tasks
from handrail.agent import Limits
from handrail.agent.events import StepEnd, StepStart
from handrail.agent.kernel import Middleware, append, jump, overwrite, remove, replace
from handrail.filters import assistant, breaches, call, user
from handrail.sessions import MessageRecord, Session, ToolResultRecord, read, verify
from laws.scripts import Ended, desk, fixed, limits, ran, scripts, streamed

HOOKS = ("before_agent", "before_model", "after_model", "after_agent")


class Hooked(Middleware):
    """Does in each state hook what it is told to, one thing after the other, and then nothing more."""

    jumps = {hook: ["end", "model", "tools"] for hook in HOOKS}  # noqa: RUF012  # nobody changes it

    def __init__(self, name: str, does: list[str]) -> None:
        self.name = name
        self.does = iter(does)

    def _act(self, state: Any) -> Any:
        return ACTS[next(self.does, "nothing")](state)

    async def before_agent(self, state: Any, run: Any) -> Any:
        return self._act(state)

    async def before_model(self, state: Any, run: Any) -> Any:
        return self._act(state)

    async def after_model(self, state: Any, run: Any) -> Any:
        return self._act(state)

    async def after_agent(self, state: Any, run: Any) -> Any:
        return self._act(state)


def reworded(state: Any) -> Any:
    """Other words for the first message that is somebody's words alone."""
    first = next((message for message in state.messages if message.role == "user"), None)
    return {"messages": replace(first.replace(content="other words"))} if first is not None else None


BROUGHT = append(assistant(call("ok", call_id="c9", n=9)))
IDLE = ("nothing", "empty", "the same messages")
ACTS: dict[str, Any] = {
    "nothing": lambda state: None,
    "empty": lambda state: {},
    "the same messages": lambda state: {"messages": overwrite(state.messages)},
    "append": lambda state: {"messages": user("more")},
    "replace": reworded,
    "remove the first": lambda state: {"messages": remove(state.messages[0].id)} if len(state.messages) > 1 else None,
    "keep the last two": lambda state: {"messages": overwrite(state.messages[-2:])},
    "to the end": lambda state: jump("end"),
    "to the model": lambda state: jump("model"),
    "to the tools": lambda state: jump("tools"),
    "bring a call": lambda state: jump("tools", {"messages": BROUGHT}),
}


def layers(names: Any) -> Any:
    """Up to three layers, each with what it does in turn."""
    return st.lists(st.lists(st.sampled_from(names), max_size=8), max_size=3)


def made(does: list[list[str]]) -> list[Middleware]:
    return [Hooked(f"{number}", each) for number, each in enumerate(does)]


@given(scripts, limits, layers(IDLE))
async def test_state_hooks_that_change_nothing_change_no_end(
    script: list[Any], limit: Limits, does: list[list[str]]
) -> None:
    assert await ran(desk(script, made(does)), limits=limit) == await ran(desk(script), limits=limit)


@settings(max_examples=200)
@given(scripts, limits, layers([*ACTS]))
async def test_whatever_state_hooks_do_the_doors_end_alike_and_the_record_is_sound(
    script: list[Any], limit: Limits, does: list[list[str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ends: list[Ended] = []
        for door in ("run", "stream"):
            path = Path(folder) / f"{door}.jsonl"
            with Session(path, fsync="never", **fixed()) as session:
                if door == "run":
                    ends.append(await ran(desk(script, made(does)), limits=limit, session=session))
                else:
                    ended, events = await streamed(desk(script, made(does)), limits=limit, session=session)
                    ends.append(ended)
                views = {name: tuple(view.history) for name, view in session.views.items()}
            assert verify(path).state == "intact", str(verify(path))
            assert {name: tuple(view.history) for name, view in Session(path).views.items()} == views
            assert [breach for view in views.values() for breach in breaches(view)] == []
            assert all(len(set(ids(view))) == len(view) for view in views.values())
            records = read(path).records()
            stored = [each.message.id for each in records if isinstance(each, MessageRecord | ToolResultRecord)]
            assert len(set(stored)) == len(stored)
        assert ends[0] == ends[1]
        if not ends[1].error:
            kinds = [type(event) for event in events]
            assert kinds.count(StepStart) == kinds.count(StepEnd)
        assert tasks() == set()
