"""The resolver that asks a function which filter it is to be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Messages
from handrail.filters.resolvers import EdgeInfo, Resolved, Resolver, check_timeout, in_time, name_of


class Dynamic(Resolver, frozen=True):
    """What the function says at the boundary; awaited for at most `timeout` seconds."""

    kind: ClassVar[str] = "resolver/dynamic"

    fn: Callable[[Messages, EdgeInfo], Any]
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.fn) or isinstance(self.fn, type):
            raise InvalidFilter(f"dynamic takes a function of (history, edge), not {self.fn!r}")
        check_timeout(self.timeout)

    def resolve(self, history: Messages, edge: EdgeInfo) -> Resolved | Awaitable[Resolved]:
        """What the function gives."""
        given: Any = self.fn(history, edge)
        return in_time(given, self.timeout) if isinstance(given, Awaitable) else given

    def __repr__(self) -> str:
        return f"dynamic({name_of(self.fn)})"


def dynamic(fn: Callable[[Messages, EdgeInfo], Any], *, timeout: float | None = None) -> Dynamic:
    """A filter that is chosen at the boundary: `fn(history, edge)`, sync or async, returns it, or another resolver.

    What it returns is what runs, is recorded and is replayed. One that raises, that takes longer than `timeout`
    seconds (as far as it awaits), or that returns no filter stops the handoff with `FilterFailed`.

    >>> import asyncio
    >>> from handrail.filters import EdgeInfo, full, last_n, resolve
    >>> choose = dynamic(lambda history, edge: full() if edge.target == "Auditor" else last_n(3))
    >>> asyncio.run(resolve(choose, (), EdgeInfo(source="Triage", target="Auditor")))
    full()
    """
    return Dynamic(fn, timeout)
