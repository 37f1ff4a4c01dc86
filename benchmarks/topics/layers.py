"""What a middleware costs that only passes through."""

import asyncio
from collections.abc import Iterator
from typing import Any

from benchmarks.floors import typed
from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import our_run, typed_run
from handrail import agent
from handrail.agent.kernel import CallChat, CallTool, ChatRequest, Middleware, State, ToolRequest, ToolResponse

STEPS = 100
LAYERS = 10


class PassChat(Middleware):
    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> agent.ChatResponse:
        return await call_next(request)


class PassTool(Middleware):
    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        return await call_next(request)


class Counting(Middleware):
    def init_state(self) -> dict[str, Any]:
        return {"calls": 0}

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> agent.ChatResponse:
        request.state["calls"] += 1
        return await call_next(request)


class Before(Middleware):
    async def before_model(self, state: State, run: agent.RunContext[Any]) -> None:
        return None


class After(Middleware):
    async def after_model(self, state: State, run: agent.RunContext[Any]) -> None:
        return None


class TypedCounting:
    async def __call__(self, request: typed.ChatRequest, call_next: typed.Chat) -> typed.Answer:
        state = request.states.get(self)
        if state is None:
            state = request.states[self] = {"calls": 0}
        state["calls"] += 1
        return await call_next(request)


KINDS = (
    ("a layer around the model call", PassChat, lambda: typed.passing, 0.3),
    ("a layer around the tool call", PassTool, lambda: typed.passing, 0.3),
    ("a layer with private state", Counting, TypedCounting, 0.5),
    ("a state hook before the model", Before, lambda: typed.passing, 0.4),
    ("a state hook after the model", After, lambda: typed.passing, 0.4),
)


@row("layer")
def layer(scale: Scale) -> Iterator[Result]:
    for what, ours, floor, limit in KINDS:
        layers = [type(f"Layer{number}", (ours,), {})() for number in range(LAYERS)]
        subjects = {
            "with": clocked(our_run(STEPS, layers), 4),
            "without": clocked(our_run(STEPS), 4),
            "typed with": clocked(typed_run(STEPS, [floor() for _ in range(LAYERS + 1)]), 4),
            "typed without": clocked(typed_run(STEPS, [floor()]), 4),
        }
        times = asyncio.run(alternate(scale.rounds(80), subjects))
        each = 1e6 / STEPS / LAYERS
        more = times.more("with", "without") * each
        yield Result(
            f"{what}, a step",
            more,
            "µs",
            more,
            Target(limit, "µs a layer a step"),
            {"typed": times.more("typed with", "typed without") * each},
        )
