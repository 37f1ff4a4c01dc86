"""Ids and times as a recorded run had them."""

from collections import Counter
from collections.abc import Sequence
from itertools import count

from handrail.filters import Clock, IdSource, View


class RecordedIds(IdSource):
    """The ids that a run drew, counted on from its own, without those that its views held.

    `branches` says how often a branch of each name was taken before.
    """

    __slots__ = ("_held", "_last")

    def __init__(
        self, prefix: str, last: int = 0, held: Sequence[View] = (), branches: Counter[str] | None = None
    ) -> None:
        super().__init__(prefix)
        self._last = last
        self._held = held
        self._branches = dict(branches) if branches else None

    def next(self) -> str:
        """The next id."""
        made, self._last = self._after(self._last)
        return made

    def foretell(self, many: int) -> list[str]:
        """The ids that come next, without drawing them."""
        made, last = [], self._last
        for _ in range(many):
            name, last = self._after(last)
            made.append(name)
        return made

    def _after(self, last: int) -> tuple[str, int]:
        for number in count(last + 1):
            made = f"{self.prefix}-{number}"
            if not any([view.held(made) for view in self._held]):
                return made, number
        raise AssertionError("numbers do not end")

    def branch(self, name: str) -> "RecordedIds":
        """The source of a branch, as the run had it."""
        return RecordedIds(super().branch(name).prefix, 0, self._held)


class RecordedClock(Clock):
    """The time of what is being replayed: of the record that was last looked at."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def see(self, at: int | None) -> None:
        """It is so late now."""
        if at:
            self.now = at
