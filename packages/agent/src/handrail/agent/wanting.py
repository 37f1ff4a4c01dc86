"""Handoffs by code: what hooks and the calls of a response ask for, until one of them is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.errors import HandoffRefused, RunError, UnknownTarget
from handrail.agent.handing import Asked
from handrail.agent.handoffs import handoff
from handrail.filters import Message, ToolCall
from handrail.filters.sensitivity import highest

if TYPE_CHECKING:
    from handrail.agent.turns import TurnState


def request_handoff(turn: TurnState, target: str, reason: str, input: Any, call_id: str, batch: int) -> None:
    """A handoff by code: the first of a step wins; one that a tool's call asks for counts when the call has not
    failed.

    Raises `UnknownTarget`, `HandoffRefused` or `InvalidArguments`.
    """
    if turn.context.turn is not turn:
        raise RunError(f"the turn of {turn.bound.name} has ended; nothing takes up a handoff to {target} any more")
    if target not in turn.run.graph.agents or target == turn.bound.name:
        others = sorted(set(turn.run.graph.agents) - {turn.bound.name})
        raise UnknownTarget(target, turn.bound.name, others)
    if turn.scope.path(target) in turn.scope.waiting:
        raise HandoffRefused(f"{target} waits for an answer; answer it in place of handing over")
    edges = [edge for name, edge in turn.bound.handoffs.items() if turn.bound.targets[name] == target]
    edge = edges[0] if edges else handoff(target)
    if call_id and (batch != turn.batch or call_id in turn.finished):
        raise RunError(f"the call {call_id} has ended; nothing takes up its handoff to {target} any more")
    if turn.wanted is None:
        turn.wanted = {}
    if turn.requested is None and call_id not in turn.wanted:
        tools = [turn.bound.tools.get(call.name) for call in turn.calls if call_id and call.id == call_id]
        label = highest(*[tool.output_sensitivity for tool in tools if tool is not None])
        asked = Asked(edge, target, edge.given(reason, input, input is not None), label=label)
        if call_id:
            turn.wanted[call_id] = asked
        else:
            turn.requested = asked


def forget_wanted(turn: TurnState, call_id: str) -> None:
    """The handoff that a call asked for by code, if it did, is not wanted any more."""
    if turn.wanted is not None:
        turn.wanted.pop(call_id, None)


def take_wanted(turn: TurnState, calls: Sequence[ToolCall], results: Mapping[str, Message]) -> None:
    """Of the handoffs that calls asked for by code, the first in call order whose call has not failed counts."""
    wanted, turn.wanted = turn.wanted or {}, None
    for call in calls:
        if turn.requested is None and call.id in wanted and call.id in results and not results[call.id].is_error:
            turn.requested = wanted[call.id]
