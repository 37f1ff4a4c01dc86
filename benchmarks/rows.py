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

    @property
    def ok(self) -> bool:
        return self.target.met(self.figure)


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
