"""A thousand runs at once, each model call answered after ten milliseconds.

How long such a run is was not said where the limits were set; the floors took 87 and 146 µs a run there. Here, with the
pace of the machine taken out (`paces.py`), they take about that where each run calls five tools, and a quarter of it
where it calls one. Both are measured.
"""

import asyncio
import json
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from benchmarks.floors import bare, typed
from benchmarks.measuring import alternate, clocked
from benchmarks.memory import apart, peak
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import add, asking
from handrail import agent, filters
from handrail.agent.kernel import ChatRequest

RUNS = 1_000
LATENCY = 0.01
CALLS = (5, 1)
"""Tool calls in one run."""
Crowd: TypeAlias = Callable[[int], Awaitable[object]]
"""So many runs at once."""


def bare_crowd(calls: int) -> Crowd:
    async def model(messages: Sequence[bare.Message]) -> bare.Message:
        await asyncio.sleep(LATENCY)
        return bare.answer("done") if len(messages) > 2 * calls else bare.asking(1)

    return lambda runs: asyncio.gather(*[bare.run(model, "go") for _ in range(runs)])


def typed_crowd(calls: int) -> Crowd:
    async def model(request: typed.ChatRequest) -> typed.Answer:
        await asyncio.sleep(LATENCY)
        return typed.answer("done") if len(request.messages) > 2 * calls else typed.asking(1)

    floor = typed.Agent(model, listeners=[deque[typed.Event](maxlen=1).append])
    return lambda runs: asyncio.gather(*[floor.run("go") for _ in range(runs)])


def our_crowd(calls: int) -> Crowd:
    async def model(request: ChatRequest) -> filters.Message:
        await asyncio.sleep(LATENCY)
        return filters.assistant("done") if len(request.messages) > 2 * calls else asking(1)

    ours = agent.Agent("Clerk", model=agent.FunctionModel(model), tools=[add])
    return lambda runs: asyncio.gather(*[ours.run("go") for _ in range(runs)])


CROWDS = {"ours": our_crowd, "bare": bare_crowd, "typed": typed_crowd}


@row("crowd")
def crowd(scale: Scale) -> Iterator[Result]:
    for calls in CALLS:
        subjects = {name: clocked(partial(make(calls), RUNS)) for name, make in CROWDS.items()}
        times = asyncio.run(alternate(scale.rounds(20), subjects))
        what = f"1,000 runs at once, tool calls in each: {calls}"
        yield Result(
            what,
            RUNS / times.least("ours"),
            "runs/s",
            1 / times.ratio("ours", "typed"),
            Target(0.7, "× typed", at_least=True),
            {name: RUNS / times.least(name) for name in ("bare", "typed")},
        )
        above = {name: min([apart(__name__, name, str(calls)) for _ in range(3)]) / 1e6 for name in CROWDS}
        yield Result(
            "the same: peak memory above idle",
            above["ours"],
            "MB",
            above["ours"],
            Target(12, "MB"),
            {name: above[name] for name in ("bare", "typed")},
        )


async def _above_idle(name: str, calls: int) -> int:
    # One run by itself first: what is loaded at first use belongs to idle.
    crowd = CROWDS[name](calls)
    await crowd(1)
    idle = peak()
    await crowd(RUNS)
    return peak() - idle


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_above_idle(sys.argv[1], int(sys.argv[2])))))
