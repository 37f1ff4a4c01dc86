"""Hooks that change nothing change nothing, and whatever hooks do the record is sound and the doors end alike."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.desks import ids, tasks
from handrail.agent import Limits, RunError
from handrail.agent.events import StepEnd, StepStart
from handrail.agent.kernel import (
    ChatRequest,
    HandoffRequest,
    HandoffResponse,
    Middleware,
    ToolResponse,
    TurnResult,
    append,
    jump,
    overwrite,
    remove,
    replace,
)
from handrail.agent.models import ChatResponse
from handrail.filters import assistant, breaches, call, last_user, user
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


class Turning(Middleware):
    """Does around each turn what it is told to, one thing after the other, and then passes on."""

    def __init__(self, name: str, does: list[str]) -> None:
        self.name = name
        self.does = iter(does)

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        return await TURNS[next(self.does, "pass")](request, call_next)


async def passes(request: Any, call_next: Any) -> Any:
    return await call_next(request)


async def twice(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    return first if first.status != "completed" else await call_next(request)


async def first_of_two(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    if first.status == "completed":
        second = await call_next(request)
        return first if second.status == "completed" else second
    return first


async def again(request: Any, call_next: Any, keep: bool = False) -> Any:
    result = await call_next(request)
    return (
        await call_next(request.again(result, "Again.", keep_attempts=keep)) if result.status == "completed" else result
    )


async def again_kept(request: Any, call_next: Any) -> Any:
    return await again(request, call_next, keep=True)


async def best(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    if first.status != "completed":
        return first
    second = await call_next(request.again(first, "Better."))
    return first if second.status == "completed" else second


async def other_words(request: Any, call_next: Any) -> Any:
    result = await call_next(request)
    if result.status != "completed" or result.message is None:
        return result
    return result.replace(message=result.message.replace(content="other words"), output="other words")


async def other_answer(request: Any, call_next: Any) -> Any:
    result = await call_next(request)
    return result if result.status != "completed" else result.replace(message=assistant("mine"), output="mine")


async def instead(request: Any, call_next: Any) -> Any:
    return TurnResult(status="completed", message=assistant("mine"), output="mine")


async def forgives(request: Any, call_next: Any) -> Any:
    try:
        return await call_next(request)
    except RunError:
        return await call_next(request)


async def asks_more(request: Any, call_next: Any) -> Any:
    return await call_next(request.replace(messages=(*request.messages, user("more"))))


async def asks_other(request: Any, call_next: Any) -> Any:
    return await call_next(request.replace(messages=(user("other"),), load_history=False))


async def fails(request: Any, call_next: Any) -> Any:
    result = await call_next(request)
    return result if result.status != "completed" else result.replace(status="failed")


TURNS: dict[str, Any] = {
    act.__name__: act
    for act in (
        twice,
        first_of_two,
        again,
        again_kept,
        best,
        other_words,
        other_answer,
        instead,
        forgives,
        asks_more,
        asks_other,
        fails,
    )
}
TURNS["pass"] = passes


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


class Around(Middleware):
    """Does around each model call, tool call and boundary what it is told to, one thing after the other."""

    def __init__(self, name: str, does: list[str]) -> None:
        self.name = name
        self.does = iter(does)

    async def _act(self, request: Any, call_next: Any) -> Any:
        return await CALLS[next(self.does, "on")](request, call_next)

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await self._act(request, call_next)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        return await self._act(request, call_next)

    async def around_handoff(self, request: Any, call_next: Any) -> Any:
        return await self._act(request, call_next)


async def calls_twice(request: Any, call_next: Any) -> Any:
    await call_next(request)
    return await call_next(request)


async def gives_first(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    await call_next(request)
    return first


async def asks_less(request: Any, call_next: Any) -> Any:
    match request:
        case ChatRequest():
            return await call_next(request.replace(messages=request.messages[-1:]))
        case HandoffRequest():
            return await call_next(request.replace(filter=last_user(), reason="because"))
        case _:
            return await call_next(request.replace(arguments={}))


async def gives_other(request: Any, call_next: Any) -> Any:
    response = await call_next(request)
    match request:
        case ChatRequest():
            return response.replace(message=response.message.replace(content="other words"))
        case HandoffRequest():
            return response.replace(seed=(user("before"), *response.seed))
        case _:
            return response.replace(content="other words")


async def gives_own(request: Any, call_next: Any) -> Any:
    match request:
        case ChatRequest():
            return ChatResponse(assistant("mine", call("ok", n=1)))
        case HandoffRequest():
            return HandoffResponse((user("mine"), *request.history))
        case _:
            return ToolResponse("mine", is_error=True)


async def asks_the_same(request: Any, call_next: Any) -> Any:
    return await call_next(request.replace())


CALLS: dict[str, Any] = {"on": passes} | {
    act.__name__: act for act in (calls_twice, gives_first, asks_less, gives_other, gives_own, asks_the_same)
}


def layers(names: Any) -> Any:
    """Up to three layers, each with what it does one after the other."""
    return st.lists(st.lists(st.sampled_from(names), max_size=8), max_size=3)


def made(does: list[list[str]]) -> list[Middleware]:
    kinds = [
        Turning if any(act in TURNS for act in each) else Around if any(act in CALLS for act in each) else Hooked
        for each in does
    ]
    return [kind(f"{number}", each) for number, (kind, each) in enumerate(zip(kinds, does, strict=True))]


@given(scripts, limits, layers(IDLE))
async def test_state_hooks_that_change_nothing_change_no_end(
    script: list[Any], limit: Limits, does: list[list[str]]
) -> None:
    assert await ran(desk(script, made(does)), limits=limit) == await ran(desk(script), limits=limit)


doing = st.lists(
    st.one_of([st.lists(st.sampled_from(names), max_size=8) for names in ([*ACTS], [*TURNS], [*CALLS])]), max_size=3
)


@settings(max_examples=100)
@given(scripts, limits, doing)
async def test_whatever_hooks_do_the_doors_end_alike_and_the_record_is_sound(
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
        if not ends[1].error and not any("forgives" in each for each in does):
            kinds = [type(event) for event in events if event.depth == 0]
            assert kinds.count(StepStart) == kinds.count(StepEnd)
        assert tasks() == set()
