"""Crossing a boundary: a handoff, or the call of a sub-agent. One order everywhere, and one seal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from handrail.agent.errors import InvalidAnswer
from handrail.agent.events import HandoffEnd, HandoffStart
from handrail.agent.kernel.blame import wrong_return
from handrail.agent.kernel.requests import HandoffRequest, HandoffResponse
from handrail.agent.reports import Crossing
from handrail.filters import (
    Edge,
    EdgeInfo,
    Filter,
    FilterFailed,
    History,
    Message,
    Note,
    Seal,
    Tier,
    digest,
    edge_history,
    full,
    resolve,
    seal,
    unresolved,
)
from handrail.filters.custom import as_filter
from handrail.filters.messages import Messages
from handrail.filters.seals import made_by, unsound
from handrail.filters.sensitivity import highest
from handrail.sessions.records import crossing_key

if TYPE_CHECKING:
    from handrail.agent.loop import Turn
    from handrail.filters.policies import Policy

NOT_RUN = "not run"


class Boundary:
    """One crossing while it is under way: what the innermost layer was given, and what it made of it."""

    __slots__ = ("asked_by", "back", "edge", "label", "notes", "sealed", "source", "target", "used")

    def __init__(self, edge: Edge, used: Seal, asked_by: str, back: bool, label: Tier | None) -> None:
        self.asked_by = asked_by
        self.back = back
        self.edge = edge
        self.label = label
        self.used = used
        self.notes: tuple[Note, ...] = ()
        self.sealed: Messages | None = None
        self.source = self.target = ""


async def cross(request: HandoffRequest) -> HandoffResponse:
    """The innermost layer: the seal."""
    boundary: Boundary = request.boundary
    given = boundary.edge.messages, boundary.source, boundary.target
    if request.history is not given[0]:
        raise InvalidAnswer(f"a hook around a handoff of {boundary.source} changes its history, which is read-only")
    if (request.source, request.target) != given[1:]:
        raise InvalidAnswer(f"a hook around a handoff of {boundary.source} changes its ends, which are read-only")
    if not isinstance(request.reason, str) or not isinstance(request.input, str):
        raise InvalidAnswer(f"a hook around a handoff of {request.source} gives a reason or an input that is no text")
    if request.filter is not boundary.used.filter:
        boundary.used = seal(
            await resolved(
                request.run.turn,
                boundary.edge,
                as_filter(request.filter),
                request.kind,
                request.target,
                request.reason,
                request.input,
                boundary.asked_by,
            )
        )
    boundary.notes = _notes(request, boundary.label)
    if boundary.back:
        boundary.sealed = boundary.used.back(boundary.edge.messages)
    else:
        boundary.sealed = boundary.used.hand_over(
            boundary.edge.messages, boundary.notes, boundary.edge.view, asked_by=boundary.asked_by
        )
    return HandoffResponse(boundary.sealed, lambda: boundary.used.explain(boundary.edge.messages))


def _notes(request: HandoffRequest, label: Tier | None) -> tuple[Note, ...]:
    notes: tuple[Note, ...] = (Note("reason", request.reason, label),) if request.reason else ()
    return (*notes, Note("input", request.input, label)) if request.input else notes


async def cross_boundary(
    turn: Turn,
    kind: Literal["handoff", "subagent"],
    target: str,
    view: History,
    call_id: str | None,
    filter: Seal,
    *,
    reason: str = "",
    input: str = "",
    back: bool = False,
    label: Tier | None = None,
    policy: Policy | None = None,
    part: int = 0,
) -> Crossing:
    """What crosses from the turn's agent to the target: the chain, the seal, and the policies, in this order.

    `back` is the way back, where nothing has to be left to answer; `label` is one for the notes, beside the agent's
    own, and `part` says which of the agents that the call asks this is. Raises `FilterError` before the target starts.
    """
    run, bound = turn.run, turn.bound
    edge = edge_history(view, call_id, kind=kind, without=frozenset(turn.rejected))
    if turn.emit is not None:
        turn.tell(HandoffStart, bound.name, target, call_id or "")
    boundary = Boundary(edge, filter, crossing_key(turn.path, call_id, part), back, highest(turn.label(), label))
    seed, edited = await _through_chain(turn, boundary, kind, target, reason, input, call_id)
    enforce(
        turn,
        policy,
        source=bound.name,
        target=target,
        kind=kind,
        filter=boundary.used,
        seed=seed,
        before=edge,
        edited=edited is not None,
    )
    crossing = Crossing(
        kind=kind,
        source=bound.name,
        target=target,
        path=turn.path,
        call_id=call_id or "",
        filter=boundary.used,
        notes=boundary.notes,
        edge=edge,
        seed=seed,
        edited=edited,
        back=back,
        counter=run.counter,
    )
    run.crossings.append(crossing)
    if turn.emit is not None:
        turn.tell(HandoffEnd, bound.name, target, call_id or "", tuple(seed), len(edge.messages))
    return crossing


async def _through_chain(
    turn: Turn,
    boundary: Boundary,
    kind: Literal["handoff", "subagent"],
    target: str,
    reason: str,
    input: str,
    call_id: str | None,
) -> tuple[Messages, str | None]:
    bound, edge = turn.bound, boundary.edge
    known = await resolved(turn, edge, boundary.used.filter, kind, target, reason, input, boundary.asked_by)
    if known is not boundary.used.filter:
        boundary.used = seal(known)
    request = HandoffRequest(
        # One that is crossed within a call shows what that call sees.
        run=turn.contexts.get(call_id or "", turn.context) if kind == "subagent" else turn.context,
        kind=kind,
        source=bound.name,
        target=target,
        history=edge.messages,
        filter=boundary.used.filter,
        reason=reason,
        input=input,
        boundary=boundary,
    )
    boundary.source, boundary.target = bound.name, target
    response = await bound.crossing(request)
    if type(response) is not HandoffResponse:
        wanted = "HandoffResponse"
        raise InvalidAnswer(wrong_return(bound.layers, bound.name, "around_handoff", response, wanted))
    return _resealed(boundary, response.seed)


def enforce(turn: Turn, policy: Policy | None, **crossing: Any) -> None:
    """Asks the policies of the run, of both agents and of the edge. Raises `PolicyViolation`."""
    agents = turn.run.graph.agents
    held = (turn.run.policy, agents[crossing["source"]].agent.policy, agents[crossing["target"]].agent.policy, policy)
    asked: list[Policy] = []
    for rules in held:
        if rules is not None and not any([rules is known for known in asked]):
            asked.append(rules)
            rules.enforce(**crossing)


def _resealed(boundary: Boundary, seed: Messages) -> tuple[Messages, str | None]:
    # What a layer returns in the seal's place passes the seal again: no hook can hand over what the seal would not.
    sealed = boundary.sealed
    if sealed is not None and seed is sealed:
        return seed, None
    if not isinstance(seed, tuple | list | History) or not all([type(message) is Message for message in seed]):
        raise InvalidAnswer(f"a hook around a handoff of {boundary.source} gave a seed that is not messages")
    named = [message if message.id else made_by(0, place, message) for place, message in enumerate(seed)]
    if (problem := unsound(boundary.edge.messages, named, boundary.edge.view)) is not None:
        raise FilterFailed("of a hook around the handoff", problem)
    whole = seal(full())
    checked = whole.back(named) if boundary.back else whole.hand_over(named, (), boundary.edge.view)
    if sealed is None:
        return checked, NOT_RUN
    return (sealed, None) if tuple(checked) == tuple(sealed) else (checked, digest(sealed))


def record_of(turn: Turn, crossing: Crossing, target_path: str) -> dict[str, Any]:
    """The fields that the records of a handoff and of a sub-agent's start share."""
    view = crossing.edge.view
    counted = turn.run.counter is not None
    return {
        "path": turn.path,
        "source": crossing.source,
        "target": crossing.target,
        "target_path": target_path,
        "call_id": crossing.call_id or None,
        "step": turn.context.step,
        "at": turn.run.clock(),
        "notes": crossing.notes,
        "filter": turn.run.log.descriptor(crossing.filter),
        "view": view.digest,
        "view_length": len(view),
        "crossed": crossing.edge.crossed(crossing.seed),
        "seed": digest(crossing.seed),
        "seed_length": len(crossing.seed),
        "edited": crossing.edited,
        "tokens_before": crossing.tokens_before if counted else None,
        "tokens_after": crossing.tokens_after if counted else None,
    }


async def resolved(
    turn: Turn,
    edge: Edge,
    filter: Filter,
    kind: Literal["handoff", "subagent"],
    target: str,
    reason: str,
    input: str,
    asked_by: str,
) -> Filter:
    """The filter that runs at this boundary; the same one where it is no resolver. Raises `FilterFailed`."""
    if not unresolved(filter):
        return filter
    if turn.run.world is not None and (known := turn.run.world.filter(asked_by, filter)) is not None:
        return known
    run, bound, other = turn.run, turn.bound, turn.run.graph.agents[target]
    info = EdgeInfo(
        source=bound.name,
        target=target,
        kind=kind,
        reason=reason,
        input=input,
        deps=turn.context.deps,
        now=run.clock(),
        target_tools=(*other.tools, *other.handoffs),
        model=bound.model,
        said=_said(turn, edge.view),
    )
    return await resolve(filter, edge.messages, info, edge.view)


def _said(turn: Turn, view: History) -> frozenset[str] | None:
    if turn.seeded:
        given = {message.id for message in turn.entered}
        said: list[str] = []
        for message in reversed(view):
            if message.id in given or turn.base.position(message.id) is not None:
                break
            said.append(message.id)
        return frozenset(said)
    start = _began(turn, view)
    return None if start is None else frozenset([message.id for message in view[start:]])


def _began(turn: Turn, view: History) -> int | None:
    # The conversation goes on in a new run. What came over a boundary in an earlier one stands before the agent's
    # first words after it last gave control away, or before its first words of all.
    now = next((place for place in range(len(view) - 1, -1, -1) if view[place].role == "assistant"), 0)
    given_away = [place for place in view.survey().transfers if place < now]
    if not given_away and turn.bound.name == turn.run.graph.root:
        return None
    after = given_away[-1] + 1 if given_away else 0
    own = (p for p in range(after, len(view)) if view[p].role == "assistant" and view[p].agent == turn.bound.name)
    return min(next(own, len(view)), turn.start)
