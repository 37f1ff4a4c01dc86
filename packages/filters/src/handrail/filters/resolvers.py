"""Resolvers: what crosses, where that can only be said at the boundary itself.

A filter is pure and synchronous. What needs the edge (who hands over to whom, why, the application's own object, a
model, the clock), or must await, is a resolver. It is asked once at the boundary, and gives the filter that runs, is
recorded, and is replayed.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from handrail.filters.base import Filter
from handrail.filters.composition import Compose
from handrail.filters.custom import as_filter
from handrail.filters.errors import FilterFailed, InvalidFilter, UnresolvedFilter
from handrail.filters.histories import History
from handrail.filters.messages import Messages
from handrail.filters.seals import Seal, run_step

DEEPEST = 10
"""How often what a resolver gives may be a resolver again."""


class EdgeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a resolver is told of the boundary.

    `source` and `target` are agents' names; `reason` and `input` what the handoff or the call brings along; `deps` the
    application's own object; `now` the time in milliseconds since 1970 (UTC); `target_tools` the names of the tools
    that the target has; `model` the source's model, as its agent has it. `said` holds the ids of the messages that
    came after the source got control over a boundary, or is None where it never did.
    """

    source: str
    target: str
    kind: Literal["handoff", "subagent"] = "handoff"
    reason: str = ""
    input: str = ""
    deps: Any = None
    now: int = 0
    target_tools: tuple[str, ...] = ()
    model: Any = None
    said: frozenset[str] | None = None


class Resolver(Filter, frozen=True):
    """A filter that is not known before the boundary. A subclass implements `resolve`, sync or async.

    It stands wherever a filter does; run as one, away from a boundary, it raises `UnresolvedFilter`. Its descriptor is
    for people to read: what is recorded is the filter that it gives.
    """

    kind: ClassVar[str] = "resolver"

    def resolve(self, history: Messages, edge: EdgeInfo) -> Resolved | Awaitable[Resolved]:
        """The filter for these messages (what the steps before left) at this boundary."""
        raise TypeError(f"{type(self).__name__} does not say what it becomes: it has no resolve")

    def __call__(self, history: Messages) -> Messages:
        raise UnresolvedFilter(repr(self))

    @property
    def descriptor(self) -> dict[str, Any]:
        """Its kind, and those of its settings that are JSON."""
        params: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, Filter):
                params[name] = value.descriptor
            elif value is None or isinstance(value, str | int | float | bool | tuple):
                params[name] = msgspec.to_builtins(value)
        described: dict[str, Any] = {"kind": self.kind, "version": self.version}
        return {**described, "params": params} if params else described


Resolved: TypeAlias = Filter | Callable[[Messages], Any]
"""What a resolver gives: a filter, a plain function, or another resolver."""


def unresolved(filter: Filter) -> bool:
    """Whether the filter, or a step of it, is a resolver."""
    return any([isinstance(step, Resolver) for step in filter.flat])


async def resolve(filter: Filter, history: Messages, edge: EdgeInfo, origin: History | None = None) -> Filter:
    """The filter with every resolver among its steps replaced by what it gives; the same one where there is none.

    Steps resolve from left to right, each given what the steps before it left. `origin` is the view that the history
    was taken from. Raises `FilterFailed` naming a resolver that raised, took too long, or gave no filter.
    """
    if not unresolved(filter):
        return filter
    if isinstance(filter, Seal):
        return Seal(await resolve(filter.filter, history, edge, origin))
    waiting = [(step, 0) for step in filter.flat]
    steps: list[Filter] = []
    while waiting:
        step, depth = waiting.pop(0)
        if isinstance(step, Resolver):
            if depth == DEEPEST:
                raise FilterFailed(repr(step), f"is what a resolver gave that another gave, {DEEPEST} times")
            given = await _given(step, history, edge)
            waiting[:0] = [(each, depth + 1) for each in _open(given, closing=not waiting)]
            continue
        steps.append(step)
        if any([isinstance(later, Resolver) for later, _ in waiting]):
            history = run_step(len(steps), step, history, origin)
    return steps[0] if len(steps) == 1 and not isinstance(filter, Compose) else Compose(tuple(steps))


def _open(given: Filter, closing: bool) -> tuple[Filter, ...]:
    # A composition within another one loses its closing strip, as it does in any compose.
    return given.steps[:-1] if isinstance(given, Compose) and not closing else given.flat


async def _given(resolver: Resolver, history: Messages, edge: EdgeInfo) -> Filter:
    try:
        given: Any = resolver.resolve(history, edge)
        if inspect.isawaitable(given):
            given = await given
    except FilterFailed:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise FilterFailed(repr(resolver), "was cancelled, and not with the run") from error
    except Exception as error:
        raise FilterFailed(repr(resolver), f"raised {type(error).__name__}: {error}") from error
    try:
        return as_filter(given)
    except InvalidFilter as error:
        raise FilterFailed(repr(resolver), f"gave what is no filter: {type(given).__name__}") from error


async def in_time(given: Awaitable[Any], timeout: float | None) -> Any:
    """What is awaited, if it comes within so many seconds. Raises `TimeoutError` that says how many they were."""
    within = asyncio.timeout(timeout)
    try:
        async with within:
            return await given
    except TimeoutError:
        if within.expired():
            raise TimeoutError(f"it took longer than {timeout:g} s") from None
        raise


def check_timeout(timeout: float | None) -> None:
    """Raises `InvalidFilter` for what is no number of seconds above 0."""
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout > 0):
        raise InvalidFilter(f"timeout is a number of seconds above 0, or None, not {timeout!r}")


def name_of(fn: Any) -> str:
    """What a function is called, for a person to read."""
    return str(getattr(fn, "__name__", type(fn).__name__))
