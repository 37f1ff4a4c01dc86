"""A model call and a tool call, over and over: through `run` and through `stream`, and that it does not grow."""

import asyncio
from collections.abc import Iterator

from benchmarks.measuring import Times, alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import bare_run, our_run, our_stream, typed_run

LENGTHS = (10, 100, 400, 4_000)


def measure(calls: int, scale: Scale) -> Times:
    """Seconds a step (one model call and one tool call) of everything, in runs of so many steps."""
    times = max(1, 400 // calls)
    subjects = {
        "run": clocked(our_run(calls), times),
        "stream": clocked(our_stream(calls), times),
        "bare": clocked(bare_run(calls), times),
        "typed": clocked(typed_run(calls), times),
    }
    found = asyncio.run(alternate(scale.rounds(60 if calls <= 400 else 15), subjects))
    return Times({name: [seconds / calls for seconds in rounds] for name, rounds in found.rounds.items()})


@row("step")
def step(scale: Scale) -> Iterator[Result]:
    found = {calls: measure(calls, scale) for calls in LENGTHS}
    for door, limit in (("run", 1.2), ("stream", 1.5)):
        for calls, times in found.items():
            yield Result(
                f"a step through {door}, {calls:,} steps",
                times.least(door) * 1e6,
                "µs",
                times.ratio(door, "typed"),
                Target(limit, "× typed"),
                {name: times.least(name) * 1e6 for name in ("bare", "typed")},
            )


@row("growth")
def growth(scale: Scale) -> Iterator[Result]:
    for door, run in (("run", our_run), ("stream", our_stream)):
        subjects = {
            "long": clocked(run(4_000)),
            "short": clocked(run(100), 10),
            "typed long": clocked(typed_run(4_000)),
            "typed short": clocked(typed_run(100), 10),
        }
        times = asyncio.run(alternate(scale.rounds(20), subjects))
        grown = times.ratio("long", "short") / 40
        yield Result(
            f"a step through {door}: 4,000 steps against 100",
            grown,
            "×",
            grown,
            Target(1.15, "× a step of 100"),
            {"typed": times.ratio("typed long", "typed short") / 40},
        )
