"""Telling those who listen: events are built and handed over, those of a sub-agent as far as they are forwarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from handrail.agent.events import LIFECYCLE, Event

if TYPE_CHECKING:
    from handrail.agent.scopes import Scope

Forward: TypeAlias = Literal["all", "lifecycle", "none"]
LEAD = 1000
"""How many events a run may be ahead of its listener before it waits."""


class Emit:
    """Who listens to a run: `take` is handed each event. It may be another function from one event to the next, since
    a listener that waits has to be woken by the first; so it is looked up each time."""

    __slots__ = ("take",)

    def __init__(self, take: Callable[[Event], None]) -> None:
        self.take = take

    def __call__(self, event: Event) -> None:
        self.take(event)


def forwarded(emit: Emit | None, forward: Forward) -> Emit | None:
    """Who listens to a sub-agent of whom so much is forwarded; None where nobody does."""
    if emit is None or forward == "none":
        return None
    if forward == "all":
        return emit

    def lifecycle(event: Event) -> None:
        if isinstance(event, LIFECYCLE):
            emit(event)

    return Emit(lifecycle)


def _untold(event: Any, *about: Any) -> None:
    pass


def teller(scope: Scope, path: str) -> Callable[..., None]:
    """What tells those who listen of an event of the agent at this path: `tell(kind, *about)`."""
    return _untold if scope.emit is None else _telling(scope.emit, scope, path)


_NO: Any = object()
"""Nothing more to tell."""


def _telling(emit: Emit, scope: Scope, path: str) -> Callable[..., None]:
    run_id, outer, depth = scope.run_id, scope.outer, scope.depth
    if outer is not None:
        return lambda event, *about: emit.take(event(run_id, path, *about, parent_id=outer.run_id, depth=depth))

    # Each event of a stream passes here: a call that packs and unpacks nothing is the cheapest there is.
    def tell(event: Any, first: Any, second: Any = _NO, third: Any = _NO, fourth: Any = _NO, fifth: Any = _NO) -> None:
        if second is _NO:
            emit.take(event(run_id, path, first))
        elif third is _NO:
            emit.take(event(run_id, path, first, second))
        elif fourth is not _NO and fifth is _NO:
            emit.take(event(run_id, path, first, second, third, fourth))
        else:
            about = [each for each in (first, second, third, fourth, fifth) if each is not _NO]
            emit.take(event(run_id, path, *about))

    return tell
