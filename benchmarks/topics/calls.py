"""One model call on a long conversation."""

import asyncio
import gc
from collections.abc import Iterator, Sequence
from time import perf_counter

from benchmarks.floors import bare, typed
from benchmarks.measuring import Sample, alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from handrail import agent, filters

LENGTH = 10_000


RUNS = 20
"""Runs in one sample."""


def words(place: int) -> str:
    return f"word {place}"


def floors() -> dict[str, Sample]:
    async def bare_model(messages: Sequence[bare.Message]) -> bare.Message:
        return bare.answer("done")

    async def typed_model(request: typed.ChatRequest) -> typed.Answer:
        return typed.answer("done")

    floor = typed.Agent(typed_model)
    dicts = [(bare.answer if place % 2 else bare.user)(words(place)) for place in range(LENGTH)]
    structs = [typed.answer(words(n)).message if n % 2 else typed.user(words(n)) for n in range(LENGTH)]
    return {
        "bare": clocked(lambda: bare.run(bare_model, "go", dicts), RUNS),
        "typed": clocked(lambda: floor.run("go", structs), RUNS),
    }


def known() -> filters.History:
    """A conversation whose laws have been checked, as it is when it comes from a run."""
    history = filters.History(
        [
            filters.assistant(words(n), id=f"m{n}") if n % 2 else filters.user(words(n), id=f"m{n}")
            for n in range(LENGTH)
        ]
    )
    history.survey()
    return history


def going_on(ours: agent.Agent) -> Sample:
    """Run after run, each on the messages of the one before."""

    async def sample() -> float:
        history = known()
        gc.collect()
        start = perf_counter()
        for number in range(RUNS):
            result = await ours.run(history.append(filters.user("go", id=f"go{number}")))
            history = result.messages
        return (perf_counter() - start) / RUNS

    return sample


@row("call")
def call(scale: Scale) -> Iterator[Result]:
    ours = agent.Agent("Clerk", model=agent.FunctionModel(lambda request: "done"))
    history = known()
    subjects = {
        "going on": going_on(ours),
        "again from one place": clocked(lambda: ours.run(history.append(filters.user("go", id="last"))), RUNS),
        **floors(),
    }
    times = asyncio.run(alternate(scale.rounds(60), subjects))
    for name in ("going on", "again from one place"):
        yield Result(
            f"a run of one call on 10,000 messages, {name}",
            times.least(name) * 1e6,
            "µs",
            times.ratio(name, "typed"),
            Target(2, "× typed"),
            {floor: times.least(floor) * 1e6 for floor in ("bare", "typed")},
        )
