"""What is otherwise in a what-if: filters, instructions, a model and layers, from some place of the session on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from handrail.agent.errors import ReplayRefused
from handrail.agent.graphs import Graph
from handrail.agent.kernel.middlewares import AROUND, CallChat, CallHandoff, Middleware, defines, layer_name
from handrail.agent.kernel.requests import ChatRequest, HandoffRequest, HandoffResponse
from handrail.agent.models import ChatResponse, Model
from handrail.filters import Filter
from handrail.filters.custom import as_filter

At: TypeAlias = int | str | None
"""A boundary of the session by its number, a model call as `step:7`, or None: the beginning. Both count from 1."""
Begun: TypeAlias = Callable[[Any], bool]
"""Whether the place of this request is at or after the one from which on things are otherwise."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What is otherwise: filters by edge (`triage->billing`), instructions by agent, a model for all of them."""

    filters: Mapping[str, Filter] = {}
    instructions: Mapping[str, str] = {}
    model: Model | None = None


def changes(
    graph: Graph,
    filters: Mapping[str, Any] | None,
    instructions: str | Mapping[str, str] | None,
    model: Model | None,
) -> Changes:
    """What is otherwise, checked against the agents that there are; instructions as a text are the root's. Raises
    `ReplayRefused` for an edge or an agent that is not there, and `InvalidFilter`."""
    blocks = {graph.root: instructions} if isinstance(instructions, str) else dict(instructions or {})
    for name in blocks:
        if name not in graph.agents:
            raise ReplayRefused(f"there is no agent {name!r}; there are {', '.join(sorted(graph.agents))}")
    known = _edges(graph)
    made = {}
    for edge, filter in (filters or {}).items():
        name = "->".join([end.strip() for end in edge.split("->")])
        if name not in known:
            raise ReplayRefused(f"there is no edge {edge!r}; there are {', '.join(sorted(known)) or 'none'}")
        made[name] = as_filter(filter)
    return Changes(filters=made, instructions=blocks, model=model)


def _edges(graph: Graph) -> set[str]:
    edges = set()
    for bound in graph.agents.values():
        edges |= {f"{bound.name}->{target}" for target in bound.targets.values()}
        edges |= {f"{bound.name}->{each.child.name}" for tool in bound.tools.values() for each in tool.children}
    return edges


class Otherwise(Middleware):
    """Puts what is otherwise in the place of what the agents have, outside all their own layers."""

    name = "what_if"

    def __init__(self, changes: Changes, begun: Begun) -> None:
        self._changes = changes
        self._begun = begun

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Other instructions, and another model."""
        changes = self._changes
        if self._begun(request):
            words = changes.instructions.get(request.run.agent)
            if words is not None and request.purpose == "answer":
                request = request.replace(instructions={**request.instructions, "agent": words})
            if changes.model is not None:
                request = request.replace(model=changes.model)
        return await call_next(request)

    async def around_handoff(self, request: HandoffRequest, call_next: CallHandoff) -> HandoffResponse:
        """Another filter."""
        filter = self._changes.filters.get(f"{request.source}->{request.target}")
        if self._begun(request) and filter is not None:
            request = request.replace(filter=filter)
        return await call_next(request)


def from_there(layers: Sequence[Middleware], begun: Begun, at: At) -> list[Middleware]:
    """The layers as they take part from the place on. Raises `ReplayRefused` for one that cannot begin in the middle:
    one with hooks other than those around model calls, tools and handoffs, or with tools or instructions."""
    if at is None:
        return list(layers)
    for layer in layers:
        others = [hook for hook in _NOT_LATE if defines(layer, hook)]
        if others or layer.tools or layer.instructions or layer.channels is not None:
            brings = ", ".join(others) or "tools, instructions or channels"
            raise ReplayRefused(f"{layer_name(layer)} has {brings}, so it takes part from the beginning or not at all")
    return [_late(layer, begun) for layer in layers]


_LATE = tuple(hook for hook in AROUND if hook != "around_turn")
_NOT_LATE = ("around_turn", "before_agent", "after_agent", "before_model", "after_model", "init_state")


def _late(layer: Middleware, begun: Begun) -> Middleware:
    def late(hook: str) -> Any:
        own = getattr(layer, hook)

        async def around(self: Middleware, request: Any, call_next: Any) -> Any:
            return await (own if begun(request) else _past)(request, call_next)

        return around

    hooks: dict[str, Any] = {hook: late(hook) for hook in _LATE if defines(layer, hook)}
    made: Middleware = type(type(layer).__name__, (Middleware,), {**hooks, "name": layer_name(layer)})()
    return made


async def _past(request: Any, call_next: Any) -> Any:
    return await call_next(request)
