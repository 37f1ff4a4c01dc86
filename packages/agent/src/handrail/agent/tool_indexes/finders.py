"""Searching the shelf of an agent, with an index that is built once for a set of tools."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from handrail.agent.errors import BuildError
from handrail.agent.tool_indexes.indexes import Hit, ToolIndex
from handrail.agent.tool_indexes.keywords import KeywordIndex
from handrail.agent.tool_indexes.patterns import RegexIndex
from handrail.agent.tool_indexes.shelves import MOST, Shelf

NAMED = {"keyword": KeywordIndex, "regex": RegexIndex}


class Finder:
    """Finds at most `limit` tools of a shelf. Raises `BuildError` for what is no index."""

    def __init__(self, layer: str, index: Literal["keyword", "regex"] | ToolIndex[Any], limit: int) -> None:
        if isinstance(index, str) and index in NAMED:
            index = NAMED[index]()
        missing = [part for part in ("hint", "build", "search") if not hasattr(index, part)]
        if isinstance(index, str) or missing:
            possible = f"{', '.join(NAMED)}, or has hint, build and search"
            raise BuildError(f"the index of {layer} is one of {possible}, not {index!r}")
        if type(limit) is not int or limit < 1:
            raise BuildError(f"max_results of {layer} is a whole number, at least 1, not {limit!r}")
        self.index = index
        self.limit = limit
        self._built: dict[str, Any] = {}

    async def find(self, shelf: Shelf, query: str) -> Sequence[Hit]:
        """The tools of the shelf that fit the query, each once, the best first. Raises what the index does."""
        if shelf.mark not in self._built:
            if len(self._built) >= MOST:
                self._built.clear()
            self._built[shelf.mark] = self.index.build(tuple(shelf.kept.values()))
        found = self.index.search(self._built[shelf.mark], query, self.limit)
        hits: dict[str, Hit] = {}
        for hit in await found if inspect.isawaitable(found) else found:
            if hit.name in shelf.kept:
                hits.setdefault(hit.name, hit)
        return list(hits.values())[: self.limit]
