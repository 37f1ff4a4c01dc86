"""What is measured, built the same way for Handrail and for both floors: one tool, and a model in the process."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.floors import bare, typed
from handrail import agent, filters, sessions
from handrail.agent.kernel import ChatRequest, Middleware

Run: TypeAlias = Callable[[], Awaitable[object]]
NO_LIMIT = agent.Limits(max_steps=None)


class Countdown:
    """How many tool calls a model still asks for before it answers."""

    def __init__(self, calls: int) -> None:
        self.calls = self.left = calls

    def again(self) -> None:
        self.left = self.calls

    def more(self) -> bool:
        self.left -= 1
        return self.left >= 0


def bare_run(calls: int) -> Run:
    """A run of the *bare* floor with so many tool calls, one a step."""
    countdown = Countdown(calls)

    async def model(messages: Sequence[bare.Message]) -> bare.Message:
        return bare.asking(countdown.left) if countdown.more() else bare.answer("done")

    def run() -> Awaitable[object]:
        countdown.again()
        return bare.run(model, "go")

    return run


def typed_run(calls: int, layers: Sequence[Any] = (typed.passing,)) -> Run:
    """The same on the *typed* floor, with a listener that gets every event."""
    countdown = Countdown(calls)

    async def model(request: typed.ChatRequest) -> typed.Answer:
        return typed.asking(countdown.left) if countdown.more() else typed.answer("done")

    floor = typed.Agent(model, chat_layers=layers, listeners=[deque[typed.Event](maxlen=1).append])

    def run() -> Awaitable[object]:
        countdown.again()
        return floor.run("go")

    return run


@agent.tool(side_effects="pure")
async def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


def asking(number: int) -> filters.Message:
    """An answer that calls the tool."""
    return filters.assistant(filters.ToolCall(f"call_{number}", "add", '{"a":1,"b":2}'))


def clerk(countdown: Countdown, middleware: Sequence[Middleware] = ()) -> agent.Agent:
    """An agent whose model asks for as many tool calls as the countdown has left."""

    def model(request: ChatRequest) -> filters.Message | str:
        return asking(countdown.left) if countdown.more() else "done"

    return agent.Agent("Clerk", model=agent.FunctionModel(model), tools=[add], middleware=middleware, limits=NO_LIMIT)


def our_run(calls: int, middleware: Sequence[Middleware] = ()) -> Run:
    """The same with Handrail, through `run`."""
    countdown = Countdown(calls)
    ours = clerk(countdown, middleware)

    def run() -> Awaitable[object]:
        countdown.again()
        return ours.run("go")

    return run


def our_stream(calls: int, middleware: Sequence[Middleware] = ()) -> Run:
    """The same through `stream`, every event read."""
    countdown = Countdown(calls)
    ours = clerk(countdown, middleware)

    async def run() -> None:
        countdown.again()
        async with ours.stream("go") as stream:
            async for _ in stream:
                pass

    return run


def our_journal(calls: int, folder: Path) -> Run:
    """The same through `run` with a new session file each time, which stays open until the run has ended."""
    countdown = Countdown(calls)
    ours = clerk(countdown)
    path = folder / "session.jsonl"

    async def run() -> None:
        countdown.again()
        path.unlink(missing_ok=True)
        with sessions.Session(path, fsync="never") as session:
            await ours.run("go", session=session)

    return run
