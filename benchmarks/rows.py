"""Rows: what is measured, and the registry that a topic enters its own into."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeAlias

import msgspec


class Target(msgspec.Struct, frozen=True):
    """A limit, and what it limits: `Target(1.2, "× typed")`, `Target(20, "µs more a step")`."""

    limit: float
    unit: str
    at_least: bool = False

    @property
    def is_time(self) -> bool:
        """Whether it is in µs or ms of Python's, which are others on another machine; ratios and sizes are not."""
        return self.unit.startswith(("µs", "ms"))

    def met(self, figure: float) -> bool:
        return figure >= self.limit if self.at_least else figure <= self.limit


class Result(msgspec.Struct, frozen=True):
    """One line of the table: what it took and what the floors took, in `unit`, and the `figure` the target limits."""

    what: str
    value: float
    unit: str
    figure: float
    target: Target
    floors: Mapping[str, float] = {}

    def judged(self, pace: float) -> float:
        """The figure that is held against the limit, where the machine takes `pace` times as long as the one that the
        limits were set on."""
        return self.figure / pace if self.target.is_time else self.figure

    def ok(self, pace: float) -> bool:
        """Whether the target is met at that pace."""
        return self.target.met(self.judged(pace))


class Scale(msgspec.Struct, frozen=True):
    """How thoroughly to measure: `quick` takes fewer rounds and the smaller sizes."""

    quick: bool = False

    def rounds(self, many: int) -> int:
        return max(5, many // 4) if self.quick else many


Measure: TypeAlias = Callable[[Scale], Iterator[Result]]
_rows: dict[str, Measure] = {}


def row(name: str) -> Callable[[Measure], Measure]:
    """Enters a function that measures one row of the table, or several that belong together, under a name."""

    def register(measure: Measure) -> Measure:
        _rows[name] = measure
        return measure

    return register


def all_rows() -> Mapping[str, Measure]:
    """Every row, in the order of the topics' names and of each topic's own lines."""
    from benchmarks import topics

    for module in sorted(iter_modules(topics.__path__), key=lambda found: found.name):
        import_module(f"{topics.__name__}.{module.name}")
    return _rows
