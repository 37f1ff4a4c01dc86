"""The lanes of a page: one for each agent path, in columns that are used again once a sub-agent has ended."""

from handrail.cli.viewer.shapes import Lane
from handrail.sessions.paths import is_top, name_of

COLUMNS = 8
"""How many columns there are at most; what finds none shares the last."""


class Lanes:
    """The lanes of the rows so far. Agents of the session keep their columns, those of a call give theirs back."""

    def __init__(self) -> None:
        self._lanes: list[Lane] = []
        self._places: dict[str, int] = {}
        self._taken: set[int] = set()

    def place(self, path: str, row: int) -> int:
        """The place of a path's lane, which is there from this row on if it was not before."""
        known = self._places.get(path)
        if known is None:
            free = [column for column in range(COLUMNS) if column not in self._taken]
            column = free[0] if free else COLUMNS - 1
            self._taken.add(column)
            known = self._places[path] = len(self._lanes)
            self._lanes.append(Lane(path, name_of(path), column, row, row, path.count("/")))
        self._lanes[known].last = row
        return known

    def end(self, scope: str, row: int) -> None:
        """The call of a sub-agent is over: the lanes at this path, and within it, end here."""
        for path, place in list(self._places.items()):
            if path == scope or path.startswith(f"{scope}/"):
                self._lanes[place].last = row
                self._taken.discard(self._lanes[place].column)
                del self._places[path]

    def __getitem__(self, place: int) -> Lane:
        return self._lanes[place]

    def done(self, rows: int) -> list[Lane]:
        """All lanes; those of the session's own agents last to its end."""
        for lane in self._lanes:
            if is_top(lane.path):
                lane.last = max(rows - 1, lane.first)
        return self._lanes

    def renumber(self, left: list[int]) -> None:
        """Rows were taken out: `left` holds, by the place of each row, how many of those before it are left."""
        for lane in self._lanes:
            lane.first, lane.last = left[lane.first], max(left[min(lane.last, len(left) - 2)], left[lane.first])
