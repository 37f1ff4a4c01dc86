"""Handing over: which transfer wins, what its results say, and who goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from handrail.agent.crossing import cross_boundary, enforce, record_of
from handrail.agent.ended import let_go
from handrail.agent.errors import HandoffRefused, LimitExceeded
from handrail.agent.handoffs import Given, Handoff
from handrail.agent.limits import Budget
from handrail.agent.outputs import unanswered
from handrail.agent.tools import InvalidArguments
from handrail.filters import (
    FilterError,
    History,
    Message,
    Messages,
    PolicyViolation,
    Seal,
    ToolCall,
    View,
    assistant,
    full,
    last_answer,
    seal,
    tool_result,
)
from handrail.filters.composition import compose
from handrail.filters.sensitivity import Tier, highest
from handrail.sessions import HandoffRecord, SessionError, ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.loop import Turn
    from handrail.filters.policies import Policy

NO_ANSWER = "The agent gave no answer."
KEPT_BACK = "The agent answered, and its answer may not cross."


class Asked(msgspec.Struct, frozen=True):
    """A handoff that somebody asked for: the model by a call, or a tool or hook by code (no call)."""

    edge: Handoff
    target: str
    given: Given
    call: ToolCall | None = None
    label: Tier | None = None


class Back(msgspec.Struct, frozen=True, gc=False):
    """What comes back to the agent that waits: a text, whether it is an error, and how sensitive it is."""

    text: str
    is_error: bool
    label: Tier | None = None


class Refused(Exception):
    """Why a transfer does not take place; the message is for the model."""


async def hand_over(
    turn: Turn,
    transfers: Sequence[ToolCall],
    ids: Mapping[str, str],
    results: dict[str, Message],
    ordinary: Sequence[str],
) -> bool:
    """The first valid handoff wins; the others get a result that says so. False where the turn goes on."""
    said: dict[str, Back] = {}
    asked = turn.requested
    if asked is not None and asked.edge.enabled is not True and not await is_enabled(turn, asked.edge):
        raise HandoffRefused(f"{asked.target} is not available, and was handed the conversation by code")
    for call in transfers:
        if asked is not None:
            said[call.id] = Back(f"Not run: the conversation goes to {asked.target}.", True)
            continue
        try:
            asked = await _asked(turn, call)
        except Refused as refusal:
            said[call.id] = Back(str(refusal), True)
    turn.requested = None
    if asked is None:
        _answer(turn, transfers, ids, results, said)
        return False
    turn.budget.take_handoff(turn.run.way)
    view = turn.history.extend([results[call_id] for call_id in ordinary]) if ordinary else turn.history
    record, entered = await _take_over(turn, asked, view)
    path = turn.scope.path(asked.target)
    base = turn.scope.views.get(path)
    arrived = View(History(entered)) if base is None else View(base.history.extend(entered), base.removed)
    if asked.edge.returns is None:
        if asked.call is not None:
            said[asked.call.id] = Back(f"The conversation goes to {asked.target}.", False)
        _answer(turn, transfers, ids, results, said, record)
        # What the record says has crossed stands in the target's view from here on, whatever becomes of this turn.
        turn.scope.views[path] = arrived
        turn.passed = (turn.run.graph.agents[asked.target], entered, base)
        return True
    if turn.run.log.on:
        turn.run.log.write(*record)
    turn.scope.views[path] = arrived
    answer = await _wait(turn, asked, entered, base)
    if asked.call is not None:
        said[asked.call.id] = answer
    _answer(turn, transfers, ids, results, said)
    return False


async def _asked(turn: Turn, call: ToolCall) -> Asked:
    edge, target = turn.bound.handoffs[call.name], turn.bound.targets[call.name]
    if edge.enabled is not True and not await is_enabled(turn, edge):
        raise Refused(f"{target} is not available.")
    if turn.scope.path(target) in turn.scope.waiting:
        raise Refused(f"{target} waits for this answer; answer it in place of handing over.")
    try:
        return Asked(edge, target, edge.read(call.arguments), call)
    except InvalidArguments as error:
        raise Refused(f"Invalid arguments: {error}") from error


async def is_enabled(turn: Turn, edge: Handoff) -> bool:
    """Whether a handoff is offered now. A gate that raises counts as no."""
    enabled = edge.enabled
    if isinstance(enabled, bool):
        return enabled
    try:
        answer = enabled(turn.context)
        return bool(await answer if inspect.isawaitable(answer) else answer)
    except Exception as error:  # noqa: BLE001  # gates fail closed
        turn.context.note(
            "gate_failed", gate=f"enabled of the handoff {edge.name or 'transfer'}", error=type(error).__name__
        )
        return False


async def _take_over(turn: Turn, asked: Asked, view: History) -> tuple[Sequence[HandoffRecord], Messages]:
    run, scope, edge, call = turn.run, turn.scope, asked.edge, asked.call
    crossing = await cross_boundary(
        turn,
        "handoff",
        asked.target,
        view,
        call.id if call is not None else None,
        edge.filter,
        reason=asked.given.reason,
        input=asked.given.input,
        label=asked.label,
        policy=edge.policy,
    )
    if edge.on_handoff is not None and (run.world is None or run.world.may_tell(edge.tool_name(asked.target))):
        told = edge.on_handoff(turn.context, asked.given.value)
        if inspect.isawaitable(told):
            await told
    path = scope.path(asked.target)
    if edge.deps is not None:
        scope.given[path] = edge.deps(turn.context.deps)
    else:
        scope.given.setdefault(path, turn.context.deps)
    known = scope.views.get(path)
    entered = known.new(crossing.seed) if known is not None else History(crossing.seed)
    if scope.depth == 0 and edge.returns is None and not scope.waiting:
        run.next_turn, run.caller = edge, turn.bound.name
    if not run.log.on:
        return (), entered
    returns = edge.returns.descriptor if edge.returns is not None else {}
    return (HandoffRecord(active=_active(turn, edge), returns=returns, **record_of(turn, crossing, path)),), entered


def _active(turn: Turn, edge: Handoff) -> str:
    # Who has the next turn of the conversation; empty where that is the target itself.
    scope = turn.scope
    if scope.depth:
        return ""
    if scope.waiting:
        return scope.waiting_names[0]
    if edge.returns is not None or edge.next_turn == "caller":
        return turn.bound.name
    return turn.run.graph.root if edge.next_turn == "root" else ""


async def _wait(turn: Turn, asked: Asked, entered: Messages, base: View | None) -> Back:
    """The source waits until the target, or whoever it handed to, answers."""
    from handrail.agent.loop import converse

    run, scope, returns = turn.run, turn.scope, asked.edge.returns
    target = run.graph.agents[asked.target]
    budget = Budget(target.agent.limits, turn.budget) if target.agent.limits is not None else turn.budget
    said: list[Message] = []
    scope.waiting += (turn.path,)
    scope.waiting_names += (turn.bound.name,)
    try:
        answered = converse(run, scope, target, entered, seeded=True, base=base, budget=budget, said=said)
        result, last = await budget.in_time(answered)
        let_go(last)
    except (asyncio.CancelledError, SessionError, FilterError):
        raise
    except LimitExceeded as error:
        if turn.budget.holds(error.budget):
            raise
        return Back(f"{asked.target} reached {error.limit}={error.value}.", True)
    except Exception as error:  # noqa: BLE001  # to the agent that waits, a failed agent is a failed call
        views = [view.history for path, view in scope.views.items() if path not in scope.waiting]
        return failure(turn, asked.target, returns, error, [*views, said], asked.edge.policy)
    finally:
        scope.waiting, scope.waiting_names = scope.waiting[:-1], scope.waiting_names[:-1]
        if scope.depth == 0:
            run.way += (turn.bound.name,)
    if (problem := unanswered(asked.target, result)) is not None:
        views = [view.history for path, view in scope.views.items() if path not in scope.waiting]
        return failure(turn, asked.target, returns, problem, [*views, said], asked.edge.policy)
    if result.status != "completed":
        return Back(f"{asked.target} did not complete: {result.status}.", True)
    assert returns is not None
    return joined(turn, asked.target, returns, said, asked.edge.policy)


def failure(
    turn: Turn, agent: str, returns: Seal | None, error: Exception, views: Iterable[Messages], policy: Policy | None
) -> Back:
    """What is told of an agent that failed: the error's type, and as much of its text as may come back.

    The text may hold anything that the agent saw, so it is as sensitive as the most sensitive of that.
    """
    label = highest(*[labels(messages) for messages in views])
    said = (assistant(str(error), sensitivity=label),)
    text = ""
    if returns is not None and str(error):
        try:
            text = "".join([message.text for message in _back(turn, agent, returns, said, policy)])
        except PolicyViolation:
            text = ""
    told = f"{agent} failed: {type(error).__name__}{': ' if text else '.'}{text}"
    return Back(told, True, label if text else None)


def joined(turn: Turn, source: str, returns: Seal, said: Sequence[Message], policy: Policy | None) -> Back:
    """What comes back of an agent's messages: those that the filter and the seal leave, their words joined, with the
    highest of their labels. Raises `FilterError`, also where a policy does not let it back."""
    back = _back(turn, source, returns, tuple(said), policy)
    text = "\n\n".join([each.text for each in back if each.role == "assistant" and each.text])
    if not text and any([message.role == "assistant" and message.text for message in said]):
        return Back(KEPT_BACK, False, None)
    return Back(text or NO_ANSWER, False, labels(back))


def _back(turn: Turn, source: str, returns: Seal, said: Messages, policy: Policy | None) -> Messages:
    back = returns.back(said)
    enforce(
        turn,
        policy,
        source=source,
        target=turn.bound.name,
        kind="return",
        filter=returns,
        seed=back,
        before=said,
    )
    return back


def labels(messages: Messages) -> Tier | None:
    """The highest label of messages and their parts, or None where there is none."""
    found = [message.sensitivity for message in messages]
    return highest(*found, *[part.sensitivity for message in messages for part in message.content])


def _answer(
    turn: Turn,
    transfers: Sequence[ToolCall],
    ids: Mapping[str, str],
    results: dict[str, Message],
    said: Mapping[str, Back],
    before: Sequence[HandoffRecord] = (),
) -> None:
    label = turn.label()
    for call in transfers:
        back = said[call.id]
        results[call.id] = tool_result(
            call,
            back.text,
            id=ids[call.id],
            agent=turn.bound.name,
            created_at=turn.run.clock(),
            is_error=back.is_error,
            sensitivity=highest(label, back.label),
        )
    if turn.run.log.on:
        turn.run.log.write(*before, *[ToolResultRecord(path=turn.path, message=results[call.id]) for call in transfers])


async def hand_back(turn: Turn) -> None:
    """At the run's end: the answer crosses to the agent that has the next turn, where the last handoff says so."""
    run, scope = turn.run, turn.scope
    edge = run.next_turn
    if edge is None or edge.next_turn == "target":
        return
    target = run.graph.root if edge.next_turn == "root" else run.caller
    if target == turn.bound.name:
        return
    filter = seal(compose(last_answer(), (edge.back or seal(full())).filter))
    crossing = await cross_boundary(turn, "handoff", target, turn.history, None, filter, back=True, policy=edge.policy)
    path = scope.path(target)
    if run.log.on:
        run.log.stage(HandoffRecord(active=target, back=True, **record_of(turn, crossing, path)))
    scope.views[path] = scope.views.get(path, View(History())).enter(crossing.seed)
