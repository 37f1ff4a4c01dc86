"""Answering the calls of one response: tools side by side, results in call order, then at most one handoff."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from handrail.agent.contexts import RunContext
from handrail.agent.errors import InvalidAnswer, LimitExceeded, StateError, ToolFailed
from handrail.agent.events import LimitReached, LoopWarning, ToolEnd, ToolStart
from handrail.agent.executing import Arguments, error_response, is_object, why_not
from handrail.agent.handing import hand_over
from handrail.agent.kernel.blame import wrong_return
from handrail.agent.kernel.requests import Status, ToolRequest, ToolResponse
from handrail.agent.limits import Budget
from handrail.agent.results import gave_of, is_direct, result_of, say_directly
from handrail.agent.stating import NO_CONTEXTS, contexts_of, fold_calls, fold_private
from handrail.agent.threads import run_all
from handrail.agent.tools import InvalidArguments, has_effects
from handrail.agent.wanting import take_wanted
from handrail.filters import Message, ToolCall, tool_result
from handrail.sessions import SessionError, ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

CUT = "Not run: the answer reached its length limit in the middle of this call. Say less, or split the work."


class Upshot(msgspec.Struct, frozen=True):
    """What the calls of a response mean for the turn: how it ends by them (None: it goes on), and what was said in the
    place of a model's answer."""

    status: Status | None = None
    message: Message | None = None


GOES_ON = Upshot()
HANDED_OVER = Upshot("handed_over")
STOPPED = Upshot("failed")


async def answer_calls(turn: Turn, calls: Sequence[ToolCall]) -> Upshot:
    """Gives every call its result, in call order, and says what that means for the turn.

    Whatever is raised, every call has a result in the view and the record before it travels on.
    """
    turn.calls.extend(calls)
    acceptance, before = turn.acceptance, turn.budget.handoffs
    results: dict[str, Message] = {}
    next_id = turn.scope.ids.next
    ids = {calls[0].id: next_id()} if len(calls) == 1 else {call.id: next_id() for call in calls}
    upshot = GOES_ON
    try:
        turn.batch += 1
        turn.finished = results
        is_plain = turn.bound.plain and turn.finish_reason != "length"
        transfers, outputs, ordinary = ((), (), calls) if is_plain else _parted(turn, calls, ids, results)
        turn.contexts = NO_CONTEXTS
        granted, refusal = turn.budget.take_tool_calls(len(ordinary)) if ordinary else (0, None)
        if granted == 1:
            call = ordinary[0]
            context = turn.context.for_call(call.id) if turn.bound.around_tool else turn.context
            await _answer(turn, call, ids, results, context)
            if turn.writes:
                fold_calls(turn, ordinary[:1], NO_CONTEXTS)
        elif granted:
            await _side_by_side(turn, ordinary[:granted], ids, results)
        if refusal is not None:
            upshot = _refused(turn, ordinary[granted:], calls, ids, results, refusal)
        if turn.wanted:
            take_wanted(turn, calls, results)
        if (transfers or turn.requested is not None) and upshot is not STOPPED:
            so_far = [call.id for call in calls if call.id in results]
            if await hand_over(turn, transfers, ids, results, so_far):
                upshot = HANDED_OVER
        if outputs and acceptance is not None and upshot is not STOPPED:
            acceptance.answer_calls(outputs, ids, results, handed_over=turn.budget.handoffs > before)
    except BaseException as error:
        _close(turn, calls, ids, results, error)
        raise
    heard = list(results.values()) if len(calls) == 1 else [results[call.id] for call in calls]
    turn.hear(heard)
    return _settled(turn, calls, heard) if calls and upshot is GOES_ON else upshot


Parted: TypeAlias = tuple[Sequence[ToolCall], Sequence[ToolCall], Sequence[ToolCall]]


def _parted(turn: Turn, calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message]) -> Parted:
    """The handoffs among the calls, the answers given as calls, and the ordinary tools. A call in whose middle the
    answer was cut off is none of them, and has its result."""
    handoffs = turn.bound.handoffs
    outputs = turn.acceptance.plan.tools if turn.acceptance is not None else {}
    if turn.finish_reason == "length" and calls and calls[-1].name not in outputs and _is_cut(calls[-1]):
        _give(turn, calls[-1:], ids, results, error_response("invalid_arguments", CUT))
        calls = calls[:-1]
    if not handoffs and not outputs:
        return (), (), calls
    transfers = [call for call in calls if call.name in handoffs]
    answers = [call for call in calls if call.name in outputs]
    return transfers, answers, [call for call in calls if call.name not in handoffs and call.name not in outputs]


def _settled(turn: Turn, calls: Sequence[ToolCall], results: Sequence[Message]) -> Upshot:
    # All calls have their results, and none of them ended the turn: their results may.
    if turn.bound.direct and is_direct(turn, calls, results):
        return Upshot("completed", say_directly(turn, results))
    if turn.repeats is not None:
        warning = turn.repeats.take(calls, results)
        if warning is not None and turn.emit is not None:
            turn.tell(LoopWarning, *warning)
    return GOES_ON


def _is_cut(call: ToolCall) -> bool:
    return not call.arguments.strip() or not is_object(call.arguments)


def _refused(
    turn: Turn,
    over: Sequence[ToolCall],
    calls: Sequence[ToolCall],
    ids: Mapping[str, str],
    results: dict[str, Message],
    limit: LimitExceeded,
) -> Upshot:
    """What calls over a limit mean, as the limits say that refused them. Where the turn ends by it, the other calls of
    the response that are still open, such as a handoff, are refused as well."""
    budget = limit.budget
    how = budget.limits.on_max_tool_calls if isinstance(budget, Budget) else "raise"
    refused = [call for call in calls if call.id not in results] if how == "end" else over
    text = f"Not run: the limit {limit.limit}={limit.value} was reached."
    _give(turn, refused, ids, results, error_response("denied", text))
    if how == "raise":
        raise limit
    if turn.emit is not None:
        turn.tell(LimitReached, limit.limit, limit.value)
    if how == "tell":
        return GOES_ON
    turn.finish_reason, turn.requested, turn.wanted = limit.limit, None, None
    return STOPPED


def _give(
    turn: Turn, calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], said: ToolResponse
) -> None:
    """Calls that are not run get this as their result."""
    for call in calls:
        results[call.id] = result_of(turn, call, ids[call.id], said, None)
        turn.run.log.write(ToolResultRecord(path=turn.path, message=results[call.id]))


async def call_once(turn: Turn, call: ToolCall) -> ToolResponse:
    """One tool call outside the loop, through the tool chain."""
    granted, refusal = turn.budget.take_tool_calls(1)
    if refusal is not None and not granted:
        raise refusal
    begun = _begun(turn, call, turn.context.for_call(call.id))
    response = await turn.bound.tool(begun) if type(begun) is ToolRequest else begun
    if type(response) is not ToolResponse:
        layers, name = turn.bound.layers, turn.bound.name
        raise InvalidAnswer(wrong_return(layers, name, "around_tool", response, "ToolResponse"))
    return response


def close_calls(turn: Turn, calls: Sequence[ToolCall], text: str = "Not run: the turn went on without it.") -> None:
    """Answers calls that a hook jumped past."""
    if not calls:
        return
    results = [
        tool_result(
            call,
            text,
            id=turn.scope.ids.next(),
            agent=turn.bound.name,
            created_at=turn.run.clock(),
            is_error=True,
            synthetic=True,
        )
        for call in calls
    ]
    turn.hear(results)
    turn.run.log.write(*[ToolResultRecord(path=turn.path, message=result) for result in results])


def cut_off(turn: Turn, calls: Sequence[ToolCall], error: BaseException) -> None:
    """Answers calls that were still to run when an error ended the turn."""
    if calls:
        _close(turn, calls, {call.id: turn.scope.ids.next() for call in calls}, {}, error)


def _close(
    turn: Turn, calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], error: BaseException
) -> None:
    text = (
        "The call was cancelled."
        if isinstance(error, asyncio.CancelledError)
        else "The run ended before this call did."
    )
    missing = [call for call in calls if call.id not in results]
    for call in missing:
        results[call.id] = tool_result(
            call,
            text,
            id=ids[call.id],
            agent=turn.bound.name,
            created_at=turn.run.clock(),
            is_error=True,
            synthetic=True,
        )
    turn.hear([results[call.id] for call in calls])
    # The error that is on its way matters more than a record that cannot be written, and may be that very failure.
    with contextlib.suppress(SessionError, OSError):
        turn.run.log.write(*[ToolResultRecord(path=turn.path, message=results[call.id]) for call in missing])


async def _side_by_side(
    turn: Turn, calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message]
) -> None:
    turn.contexts = contexts = contexts_of(turn, calls)
    gate = asyncio.Semaphore(turn.budget.limits.max_parallel_tools)

    async def one(call: ToolCall) -> None:
        async with gate:
            context = contexts[call.id] if contexts else turn.context
            if turn.bound.around_tool and not contexts:
                context = context.for_call(call.id)
            await _answer(turn, call, ids, results, context)

    try:
        for group in _groups(turn, calls):
            await (one(group[0]) if len(group) == 1 else run_all([one(call) for call in group]))
    except BaseException:
        # What calls that have ended did to a layer's memory stays, as their results do.
        with contextlib.suppress(StateError):
            fold_private(turn, [call for call in calls if call.id in results], contexts)
        raise
    if contexts or turn.writes:
        fold_calls(turn, calls, contexts)


def _groups(turn: Turn, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    # A sequential tool is a barrier: what stands before it has ended, what stands after it has not begun.
    group: list[ToolCall] = []
    for call in calls:
        tool = turn.bound.tools.get(call.name)
        if tool is not None and tool.sequential:
            if group:
                yield group
            yield [call]
            group = []
        else:
            group.append(call)
    if group:
        yield group


async def _answer(
    turn: Turn, call: ToolCall, ids: Mapping[str, str], results: dict[str, Message], context: RunContext[Any]
) -> None:
    run, bound = turn.run, turn.bound
    if turn.emit is not None:
        turn.tell(ToolStart, call)
    response = _begun(turn, call, context)
    if type(response) is ToolRequest:
        response = await (bound.tool_kept if run.log.on else bound.tool)(response)
    if type(response) is not ToolResponse:
        raise InvalidAnswer(wrong_return(bound.layers, bound.name, "around_tool", response, "ToolResponse"))
    if response.writes and not response.is_error:
        if turn.writes is None:
            turn.writes = {}
        turn.writes[call.id] = response.writes
    message = result_of(turn, call, ids[call.id], response, bound.tools.get(call.name))
    if run.log.on:
        record = ToolResultRecord(path=turn.path, message=message)
        if turn.answered is not None or turn.gave or turn.wanted or response.writes or response.is_error:
            edited = turn.answered is not None and turn.answered.pop(call.id, "") not in message.text
            record = msgspec.structs.replace(record, edited=edited, gave=gave_of(turn, call, response))
        results[call.id] = message  # a call whose record cannot be made has no result yet: it gets another
        run.log.write(record)
    else:
        results[call.id] = message
    if turn.emit is not None:
        turn.tell(ToolEnd, call, message)
    if response.is_error and response.error_class in bound.raised:
        raise response.error or ToolFailed(call.name, response.error_class, message.text)


def _begun(turn: Turn, call: ToolCall, context: RunContext[Any]) -> ToolRequest | ToolResponse:
    """What the tool chain is asked, or what answers a call that cannot be made."""
    bound = turn.bound
    tool = bound.tools.get(call.name)
    if tool is None:
        return _unknown(turn, call.name)
    if turn.scope.read_only and has_effects(tool):
        return error_response("denied", f"{tool.name} changes something, and only reading is allowed here.")
    arguments = Arguments(call.arguments)
    if bound.around_tool:
        # Layers are not asked about what is no JSON object; what was checked is kept for the tool.
        try:
            arguments.found, arguments.tool = tool.prepared.check(call.arguments), tool
        except (InvalidArguments, ValueError, RecursionError) as error:
            arguments.found, arguments.tool = why_not(call.arguments, error), tool
            if arguments.found.broken:
                return arguments.found.response
    return ToolRequest(run=context, tool=tool, call=call, arguments=arguments)


def _unknown(turn: Turn, name: str) -> ToolResponse:
    import difflib

    # What the model was shown, not what a layer keeps from it.
    known = [spec.name for spec in turn.shown]
    near = difflib.get_close_matches(name, known, 1, 0.4)
    hint = f"Did you mean {near[0]}? " if near else ""
    what = f"There is no tool {name!r}. {hint}The tools are: {', '.join(known) or 'none'}."
    return error_response("invalid_arguments", what)
