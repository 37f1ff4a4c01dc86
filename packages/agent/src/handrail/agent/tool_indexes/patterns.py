"""Tools by a regular expression over their names and descriptions."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes.indexes import Hit, is_number

LONGEST_SEARCH = 60
"""How many seconds a search may have; nothing else of the process runs meanwhile."""
LONGEST_PATTERN = 256
"""How many characters a pattern may have; a longer one is looked for as it is written."""


@dataclass(frozen=True, slots=True)
class RegexIndex:
    """Finds tools by a regular expression: those whose names it matches, then those whose descriptions, each by name.

    The model writes the expression, so a whole search ends after `timeout` seconds (`TimeoutError`), and what is no
    expression is looked for as it is written.
    """

    case_sensitive: bool = False
    timeout: float = 0.1
    hint: ClassVar[str] = "A regular expression that a name or description of a tool contains."

    def __post_init__(self) -> None:
        if not is_number(self.timeout) or not 0 < self.timeout <= LONGEST_SEARCH:
            possible = f"a number of seconds above 0, at most {LONGEST_SEARCH}"
            raise BuildError(f"the timeout of a RegexIndex is {possible}, not {self.timeout!r}")
        if type(self.case_sensitive) is not bool:
            raise BuildError(f"case_sensitive of a RegexIndex is True or False, not {self.case_sensitive!r}")

    def build(self, tools: Sequence[ToolSpec]) -> Sequence[tuple[str, str]]:
        """Their names and descriptions, in order."""
        return sorted([(tool.name, tool.description) for tool in tools])

    def search(self, built: Sequence[tuple[str, str]], query: str, limit: int) -> list[Hit]:
        """The tools that the expression matches. Raises `TimeoutError` where it takes too long to tell."""
        matches = self._matcher(query)
        by_name = [name for name, _ in built if matches(name)]
        hits = [Hit(name, 1.0, ("name",)) for name in by_name[:limit]]
        if len(hits) < limit:
            named = set(by_name)
            hits += [Hit(name, 0.5, ("description",)) for name, about in built if name not in named and matches(about)]
        return hits[:limit]

    def _matcher(self, query: str) -> Callable[[str], bool]:
        import regex  # type: ignore[import-untyped,unused-ignore]

        flags = regex.V1 if self.case_sensitive else regex.V1 | regex.IGNORECASE
        try:
            pattern = regex.compile(query if len(query) <= LONGEST_PATTERN else regex.escape(query), flags)
        except Exception:  # noqa: BLE001  # whatever the library will not have is no expression
            pattern = regex.compile(regex.escape(query), flags)
        until = time.monotonic() + self.timeout

        def matches(text: str) -> bool:
            left = until - time.monotonic()
            try:
                if left > 0:
                    return pattern.search(text, timeout=left) is not None
            except TimeoutError:
                pass
            raise TimeoutError(f"the pattern took longer than {self.timeout} s; write a simpler one")

        return matches
