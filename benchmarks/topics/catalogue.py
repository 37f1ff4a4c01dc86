"""What each layer of the catalogue costs a step: one model call and one tool call, short messages, nothing found."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TypeAlias

from benchmarks.floors import typed
from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from benchmarks.subjects import our_run, our_stream, typed_run
from handrail.agent.kernel import Middleware
from handrail.agent.middleware import (
    Approval,
    HoldRelease,
    Logging,
    Memory,
    Safeguard,
    SchemaValidation,
    Timeout,
    TokenRedact,
    ToolSearch,
    Validation,
)

STEPS = 100
Entry: TypeAlias = tuple[str, Callable[[], Middleware], float, bool]
"""What it is called, what makes one, the limit in µs a step, and whether it is measured while somebody listens."""


def _quiet() -> Logging:
    logging.getLogger("handrail.quiet").setLevel(logging.CRITICAL)
    return Logging("handrail.quiet")


ENTRIES: tuple[Entry, ...] = (
    ("Logging, its level off", _quiet, 5, False),
    ("Safeguard, 1,000 words", lambda: Safeguard([f"word-{number}" for number in range(1_000)]), 60, False),
    ("Timeout of model and tool", lambda: Timeout(model=60, tool=60), 30, False),
    (
        "Approval, a function says that there is nothing to ask",
        lambda: Approval(lambda request: True, tools=lambda tool: False),
        20,
        False,
    ),
    ("Validation", lambda: Validation(lambda output: True), 2, False),
    ("SchemaValidation", lambda: SchemaValidation(True, on_exhausted="return", retries=0), 5, False),
    ("Memory, no conversation", lambda: Memory(), 2, False),
    ("ToolSearch", lambda: ToolSearch(), 15, False),
    ("TokenRedact, streamed", lambda: TokenRedact(["email"]), 30, True),
    ("HoldRelease, streamed", lambda: HoldRelease(lambda text: True), 30, True),
)


@row("catalogue")
def catalogue(scale: Scale) -> Iterator[Result]:
    for what, make, limit, streamed in ENTRIES:
        run = our_stream if streamed else our_run
        subjects = {
            "with": clocked(run(STEPS, [make()]), 2),
            "without": clocked(run(STEPS), 2),
            "typed with": clocked(typed_run(STEPS, [typed.passing, typed.passing]), 2),
            "typed without": clocked(typed_run(STEPS), 2),
        }
        times = asyncio.run(alternate(scale.rounds(30), subjects))
        more = times.more("with", "without") * 1e6 / STEPS
        yield Result(
            f"{what}: a step",
            more,
            "µs",
            more,
            Target(limit, "µs more a step"),
            {"a typed layer": times.more("typed with", "typed without") * 1e6 / STEPS},
        )
