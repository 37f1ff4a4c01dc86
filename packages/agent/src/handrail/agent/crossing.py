"""Crossing a boundary: a handoff, or the call of a sub-agent. One order everywhere, and one seal."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from handrail.agent.errors import InvalidAnswer, LimitExceeded
from handrail.agent.events import HandoffEnd, HandoffStart
from handrail.agent.kernel.requests import HandoffRequest, HandoffResponse, ToolResponse
from handrail.agent.limits import Budget
from handrail.agent.reports import Crossing
from handrail.agent.scopes import Scope
from handrail.agent.subagents import AgentTool
from handrail.filters import (
    Edge,
    FilterError,
    History,
    Message,
    Note,
    NothingToHandOver,
    Seal,
    ToolCall,
    digest,
    edge_history,
    full,
    seal,
    tool_result,
)
from handrail.filters.messages import Messages
from handrail.filters.seals import made_by
from handrail.sessions import HandoffRecord, SessionError, SubagentRecord, ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.graphs import Bound
    from handrail.agent.loop import Turn

NO_ANSWER = "The agent gave no answer."
NOT_RUN = "not run"


class Boundary:
    """One crossing while it is under way: what the innermost layer was given, and what it made of it."""

    __slots__ = ("edge", "notes", "sealed", "used")

    def __init__(self, edge: Edge, used: Seal, notes: tuple[Note, ...]) -> None:
        self.edge = edge
        self.used = used
        self.notes = notes
        self.sealed: Messages | None = None


async def cross(request: HandoffRequest) -> HandoffResponse:
    """The innermost layer: the seal."""
    boundary: Boundary = request.boundary
    if request.filter is not boundary.used.filter:
        boundary.used = seal(request.filter)
    boundary.notes = _notes(request)
    boundary.sealed = boundary.used.hand_over(boundary.edge.messages, boundary.notes, boundary.edge.view)
    return HandoffResponse(boundary.sealed)


def _notes(request: HandoffRequest) -> tuple[Note, ...]:
    notes = (("reason", request.reason), ("input", request.input))
    return tuple([Note(label, text) for label, text in notes if text])  # type: ignore[arg-type]  # both are labels


async def hand_over(
    turn: "Turn",
    transfers: Sequence[ToolCall],
    ids: Mapping[str, str],
    results: dict[str, Message],
    ordinary: Sequence[str],
) -> bool:
    """The first valid transfer wins; the others get a result that says so. False where none is valid."""
    said: dict[str, tuple[str, bool]] = {}
    winner: ToolCall | None = None
    reason = ""
    for call in transfers:
        if winner is not None:
            said[call.id] = (f"Not run: the conversation goes to {turn.bound.targets[winner.name]}.", True)
            continue
        read = _reason(call)
        if read is None:
            said[call.id] = (
                f"The arguments are not an object with an optional text, reason: {call.arguments[:200]}",
                True,
            )
        else:
            winner, reason = call, read
    if winner is None:
        _record_results(turn, transfers, ids, results, said, ())
        return False
    run, scope = turn.run, turn.scope
    target = run.graph.agents[turn.bound.targets[winner.name]]
    turn.budget.take_handoff([*run.way, target.name])
    view = turn.history.extend([results[call_id] for call_id in ordinary]) if ordinary else turn.history
    filter = turn.bound.handoffs[winner.name].filter
    crossing = await _cross(turn, "handoff", target, view, winner, filter, reason=reason)
    target_path = scope.path(target.name)
    known = scope.views.get(target_path)
    entered = known.new(crossing.seed) if known is not None else History(crossing.seed)
    said[winner.id] = (f"The conversation goes to {target.name}.", False)
    record = (HandoffRecord(**_fields(turn, crossing, view, target_path)),) if run.log.on else ()
    _record_results(turn, transfers, ids, results, said, record)
    turn.passed = (target, entered)
    return True


def _record_results(
    turn: "Turn",
    transfers: Sequence[ToolCall],
    ids: Mapping[str, str],
    results: dict[str, Message],
    said: Mapping[str, tuple[str, bool]],
    before: Sequence[HandoffRecord],
) -> None:
    for call in transfers:
        text, is_error = said[call.id]
        results[call.id] = tool_result(
            call, text, id=ids[call.id], agent=turn.bound.name, created_at=turn.run.clock(), is_error=is_error
        )
    if turn.run.log.on:
        turn.run.log.write(*before, *[ToolResultRecord(path=turn.path, message=results[call.id]) for call in transfers])


def _reason(call: ToolCall) -> str | None:
    try:
        arguments = call.parse()
    except (ValueError, RecursionError):
        return None
    if arguments is None:
        return ""
    if not isinstance(arguments, dict) or not set(arguments) <= {"reason"}:
        return None
    reason = arguments.get("reason") or ""
    return reason if isinstance(reason, str) else None


async def _cross(
    turn: "Turn",
    kind: Literal["handoff", "subagent"],
    target: "Bound",
    view: History,
    call: ToolCall,
    filter: Seal,
    *,
    reason: str = "",
    input: str = "",
) -> Crossing:
    run, bound = turn.run, turn.bound
    edge = edge_history(view, call.id, kind=kind)
    if run.emit is not None:
        run.emit(HandoffStart(run.id, turn.path, bound.name, target.name, call.id))
    boundary = Boundary(edge, filter, ())
    request = HandoffRequest(
        run=turn.context,
        kind=kind,
        source=bound.name,
        target=target.name,
        history=edge.messages,
        filter=filter.filter,
        reason=reason,
        input=input,
        boundary=boundary,
    )
    response = await bound.crossing(request)
    if type(response) is not HandoffResponse:
        raise InvalidAnswer(f"the handoff chain of {bound.name} gave {type(response).__name__}, not a HandoffResponse")
    seed, edited = _resealed(boundary, response.seed)
    crossing = Crossing(
        kind=kind,
        source=bound.name,
        target=target.name,
        path=turn.path,
        call_id=call.id,
        filter=boundary.used,
        notes=boundary.notes,
        edge=edge,
        seed=seed,
        edited=edited,
    )
    run.crossings.append(crossing)
    if run.emit is not None:
        run.emit(HandoffEnd(run.id, turn.path, bound.name, target.name, call.id, tuple(seed), len(edge.messages)))
    return crossing


def _resealed(boundary: Boundary, seed: Messages) -> tuple[Messages, str | None]:
    # What a layer returns in the seal's place passes the seal again: no hook can hand over what the seal would not.
    sealed = boundary.sealed
    if sealed is not None and seed is sealed:
        return seed, None
    if not isinstance(seed, tuple | list | History) or not all([type(message) is Message for message in seed]):
        raise InvalidAnswer("the handoff chain gave a seed that is not messages")
    named = [message if message.id else made_by(0, place, message) for place, message in enumerate(seed)]
    checked = seal(full()).hand_over(named, (), boundary.edge.view)
    if sealed is None:
        return checked, NOT_RUN
    return (sealed, None) if tuple(checked) == tuple(sealed) else (checked, digest(sealed))


def _fields(turn: "Turn", crossing: Crossing, view: History, target_path: str) -> dict[str, Any]:
    return {
        "path": turn.path,
        "source": crossing.source,
        "target": crossing.target,
        "target_path": target_path,
        "call_id": crossing.call_id,
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
    }


async def call_agent(turn: "Turn", tool: AgentTool, call: ToolCall, input: str) -> ToolResponse:
    """Runs a sub-agent in a scope of its own. One that does not complete is a tool error, never an empty success."""
    from handrail.agent.loop import converse

    run = turn.run
    child = run.graph.agents[tool.child.name]
    scope = turn.scope.within(turn.path, call.id)
    budget = Budget(child.agent.limits, turn.budget) if child.agent.limits is not None else turn.budget
    ends: dict[str, Any] = {}
    try:
        crossing = await _cross(turn, "subagent", child, turn.history, call, tool.filter, input=input)
    except NothingToHandOver as error:
        return _failed(turn, tool, ends, scope, f"The agent {child.name} was not asked: {error}")
    try:
        if run.log.on:
            ends = _fields(turn, crossing, turn.history, scope.path(child.name))
            run.log.write(SubagentRecord(event="start", **ends))
        result, _ = await converse(run, scope, child, History(crossing.seed), seeded=True, budget=budget)
        answer = _answer_of(tool, result.message) if result.status == "completed" else None
    except (asyncio.CancelledError, SessionError, FilterError):
        raise
    except LimitExceeded as error:
        if _within(turn.budget, error.budget):
            raise
        return _failed(turn, tool, ends, scope, f"The agent {child.name} reached {error.limit}={error.value}.")
    except Exception as error:  # noqa: BLE001  # to the agent that asked, a failed agent is a failed tool
        return _failed(turn, tool, ends, scope, f"The agent {child.name} failed: {type(error).__name__}: {error}")
    if answer is None:
        return _failed(turn, tool, ends, scope, f"The agent {child.name} did not complete: {result.status}.")
    _end(turn, tool, ends, scope, "completed", answer)
    return ToolResponse(answer)


def _within(budget: Budget | None, found: object) -> bool:
    while budget is not None:
        if budget is found:
            return True
        budget = budget.outer
    return False


def _answer_of(tool: AgentTool, message: Message | None) -> str:
    back = tool.returns.back((message,)) if message is not None else ()
    return "\n\n".join([each.text for each in back if each.text]) or NO_ANSWER


def _failed(turn: "Turn", tool: AgentTool, ends: dict[str, Any], scope: Scope, text: str) -> ToolResponse:
    _end(turn, tool, ends, scope, "failed", text)
    return ToolResponse(content=text, is_error=True, error_class="failed")


def _end(turn: "Turn", tool: AgentTool, ends: dict[str, Any], scope: Scope, status: str, answer: str) -> None:
    if not ends:
        return
    same = ("path", "source", "target", "target_path", "call_id", "step")
    turn.run.log.write(
        SubagentRecord(
            event="end",
            status=status,
            answer=answer,
            at=turn.run.clock(),
            usage=scope.usage,
            returns=tool.returns.descriptor,
            **{name: ends[name] for name in same},
        )
    )
