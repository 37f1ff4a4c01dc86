"""Clocks: things measured in turn, so that what disturbs the machine disturbs all of them."""

import gc
from collections.abc import Awaitable, Callable, Mapping
from statistics import median
from time import perf_counter
from typing import TypeAlias

import msgspec

Sample: TypeAlias = Callable[[], Awaitable[float]]
"""Does its work once and gives the seconds it took."""


def clocked(work: Callable[[], Awaitable[object]], times: int = 1) -> Sample:
    """A sample of work that needs nothing made ready before it: the seconds of one time, over several in a row."""

    async def sample() -> float:
        start = perf_counter()
        for _ in range(times):
            await work()
        return (perf_counter() - start) / times

    return sample


class Times(msgspec.Struct, frozen=True):
    """The seconds of each subject, round by round: the same place in two lists is the same round."""

    rounds: Mapping[str, list[float]]

    def least(self, name: str) -> float:
        """The seconds of one subject in its least disturbed round."""
        return min(self.rounds[name])

    def ratio(self, name: str, other: str) -> float:
        """How many times as long as `other` a subject takes: the median over the rounds."""
        return median([a / b for a, b in zip(self.rounds[name], self.rounds[other], strict=True)])

    def more(self, name: str, other: str) -> float:
        """How many seconds longer than `other` a subject takes, both in their least disturbed rounds."""
        return self.least(name) - self.least(other)

    def typically_more(self, name: str, other: str) -> float:
        """How many seconds longer than `other` a subject takes: the median over the rounds."""
        return median([a - b for a, b in zip(self.rounds[name], self.rounds[other], strict=True)])


async def alternate(rounds: int, subjects: Mapping[str, Sample]) -> Times:
    """Measures every subject once a round, in an order that turns from round to round; one round before is not kept.

    The collector runs before each sample and is on during it, as it is in an application.
    """
    names = list(subjects)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            gc.collect()
            seconds = await subjects[name]()
            if number >= 0:
                times[name].append(seconds)
    return Times(times)
