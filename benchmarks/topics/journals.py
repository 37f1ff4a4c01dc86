"""What a session file adds to a step."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import our_journal, our_run

LENGTHS = (100, 400, 4_000)
IO = Path("/proc/self/io")


def writes() -> int:
    """How many times this process called write(2) so far."""
    line = next(line for line in IO.read_text().splitlines() if line.startswith("syscw:"))
    return int(line.split()[1])


def bare_writes(steps: int, folder: Path) -> Callable[[], Awaitable[object]]:
    """Two lines of JSON a step (the answer and its call, then the result), each with a write of its own."""
    said = {"role": "assistant", "tool_calls": [{"id": "c", "name": "add", "arguments": '{"a":1,"b":2}'}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "3"}

    async def work() -> None:
        file = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for _ in range(steps):
            os.write(file, json.dumps(said).encode() + b"\n")
            os.write(file, json.dumps(result).encode() + b"\n")
        os.close(file)

    return work


@row("journal")
def journal(scale: Scale) -> Iterator[Result]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for calls in LENGTHS:
            times = max(1, 400 // calls)
            subjects = {
                "journal": clocked(our_journal(calls, folder), times),
                "run": clocked(our_run(calls), times),
                "bare": clocked(bare_writes(calls, folder), times),
            }
            found = asyncio.run(alternate(scale.rounds(60 if calls <= 400 else 15), subjects))
            yield Result(
                f"a step with a session file, {calls:,} steps",
                found.least("journal") / calls * 1e6,
                "µs",
                found.more("journal", "run") / calls * 1e6,
                Target(20, "µs more a step"),
                {"without": found.least("run") / calls * 1e6, "two bare lines": found.least("bare") / calls * 1e6},
            )
        if IO.exists():
            yield written(folder)


def written(folder: Path) -> Result:
    """Writes a step, as the system counts them: those of a long run less those of a short one."""

    async def count(calls: int) -> int:
        run, before = our_journal(calls, folder), writes()
        await run()
        return writes() - before

    long, short = asyncio.run(count(500)), asyncio.run(count(100))
    each = (long - short) / 400
    return Result("writes a step with a session file", each, "writes", each, Target(2, "writes a step"))
