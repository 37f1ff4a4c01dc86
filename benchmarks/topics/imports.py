"""What it costs to import Handrail, in fresh processes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measuring import Sample, alternate, clocked
from benchmarks.rows import Result, Scale, Target, row


def importing(statement: str) -> Sample:
    """A process that runs one statement, less nothing: the start of Python is taken off by the third subject."""
    command = [sys.executable, "-c", statement]
    # What an import costs is what it costs the second time: with its byte code on the disk.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    async def work() -> None:
        subprocess.run(command, check=True, env=environment)

    return clocked(work)


@row("import")
def imports(scale: Scale) -> Iterator[Result]:
    subjects = {
        "ours": importing("import handrail.agent"),
        "floor": importing("import asyncio, msgspec"),
        "nothing": importing("pass"),
    }
    times = asyncio.run(alternate(max(15, scale.rounds(40)), subjects))
    start = times.least("nothing")
    floor = times.least("floor") - start
    ours = times.least("ours") - start
    yield Result(
        "import handrail.agent (the start of Python taken off)",
        ours * 1e3,
        "ms",
        ours / floor,
        Target(1.7, "× asyncio, msgspec"),
        {"asyncio, msgspec": floor * 1e3},
    )
