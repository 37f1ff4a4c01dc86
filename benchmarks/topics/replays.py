"""What it takes to run a recorded session again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import Countdown, clerk, our_journal, our_run
from handrail.agent.replay import rerun
from handrail.sessions import verify

STEPS = 400


def our_rerun(path: Path) -> Callable[[], Awaitable[object]]:
    """The session run again, read from its file each time."""
    ours = clerk(Countdown(0))

    async def run() -> None:
        replay = await rerun(path, ours)
        assert replay.ok, str(replay)
        assert replay.model_calls > STEPS

    return run


@row("rerun")
def rerunning(scale: Scale) -> Iterator[Result]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(_recorded(folder))
        path = folder / "session.jsonl"

        async def checked() -> None:
            assert verify(path, integrity_only=True).ok

        subjects = {"rerun": clocked(our_rerun(path)), "run": clocked(our_run(STEPS)), "chain": clocked(checked)}
        found = asyncio.run(alternate(scale.rounds(40), subjects))
        yield Result(
            f"a session of {STEPS} steps run again",
            found.least("rerun") * 1e3,
            "ms",
            found.least("rerun") * 1e3,
            Target(50, "ms"),
            {"the run itself": found.least("run") * 1e3, "its chain alone": found.least("chain") * 1e3},
        )


async def _recorded(folder: Path) -> None:
    await our_journal(STEPS, folder)()
