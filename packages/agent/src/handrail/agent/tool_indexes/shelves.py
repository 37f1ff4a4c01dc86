"""A list of tools as it is shown to a model: some always, some only once they were found."""

from collections.abc import Container, Sequence

from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes.indexes import fingerprint

MOST = 64
"""How many lists are kept ready; beyond that they are made anew."""


class Shelf:
    """One offered list: the tools that are `shown` always, and by name those that are `kept` back until found.

    A list once made is given again as it is, so that who encodes lists may know it by its identity.
    """

    __slots__ = ("_lists", "kept", "mark", "offered", "shown")

    def __init__(self, offered: Sequence[ToolSpec], kept: Container[str], never: Container[str], search: str) -> None:
        self.offered = offered
        self.kept = {spec.name: spec for spec in offered if spec.name in kept}
        # Where nothing is kept back there is nothing to search for.
        absent = {*self.kept} if self.kept else {search}
        self.shown = tuple([spec for spec in offered if spec.name not in absent and spec.name not in never])
        self.mark = fingerprint(tuple(self.kept.values()))
        self._lists: dict[tuple[str, ...], Sequence[ToolSpec]] = {}

    def showing(self, found: Sequence[str]) -> Sequence[ToolSpec]:
        """The tools shown always, as they stood, then those that were found, in the order of these names."""
        names = tuple(found)
        known = self._lists.get(names)
        if known is None:
            if len(self._lists) >= MOST:
                self._lists.clear()
            known = (*self.shown, *[self.kept[name] for name in names if name in self.kept])
            self._lists[names] = known
        return known


class Shelves:
    """The lists that one agent was offered: the names of its tools that are `kept` back, and those `never` shown."""

    __slots__ = ("_by_mark", "_by_specs", "_last", "_search", "_whole", "kept", "never", "owner")

    def __init__(
        self, owner: object, specs: Sequence[ToolSpec], kept: frozenset[str], never: frozenset[str], search: str
    ) -> None:
        self.owner = owner
        self.kept = kept
        self.never = never
        self._whole = specs
        self._search = search
        self._by_specs: dict[tuple[int, ...], Shelf] = {}
        self._by_mark: dict[str, Shelf] = {}
        self._last: Shelf | None = None

    def of(self, offered: Sequence[ToolSpec]) -> Shelf:
        """The shelf of a list that is offered now."""
        last = self._last
        # The list of a shelf is a tuple, so nobody has changed one that is the same.
        if last is not None and last.offered is offered:
            return last
        key = tuple(map(id, offered))
        shelf = self._by_specs.get(key)
        if shelf is None:
            if len(self._by_specs) >= MOST:
                self._by_specs.clear()
            # The shelf holds the specs, so that their ids stay theirs.
            shelf = self._by_specs[key] = Shelf(tuple(offered), self.kept, self.never, self._search)
        # The newest last, so that the set a run is about to search is not the one to go.
        self._by_mark.pop(shelf.mark, None)
        self._by_mark[shelf.mark] = self._last = shelf
        if len(self._by_mark) > MOST:
            self._by_mark.pop(next(iter(self._by_mark)), None)
        return shelf

    def marked(self, mark: str) -> Shelf:
        """The shelf with this mark; that of all the agent's tools where none was offered here, as after a restart."""
        return self._by_mark.get(mark) or self.of(self._whole)
