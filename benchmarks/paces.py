"""How fast this machine is beside the one that the limits of time were set on."""

import asyncio
from collections.abc import Mapping

from benchmarks.measuring import alternate, clocked
from benchmarks.subjects import bare_run, typed_run

SET_AT: Mapping[str, float] = {"bare": 3e-6, "typed": 17e-6}
"""Seconds that one step of each floor took where the limits were set."""
STEPS = 100


def pace() -> float:
    """How many times as long as there the floors take here, now: of the two the lesser, which is the stricter."""
    floors = {"bare": bare_run(STEPS), "typed": typed_run(STEPS)}
    times = asyncio.run(alternate(20, {name: clocked(run) for name, run in floors.items()}))
    return min([times.least(name) / STEPS / SET_AT[name] for name in floors])
