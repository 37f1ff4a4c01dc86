"""Answering the calls of one response: tools side by side, results in call order, then at most one handoff."""

import asyncio
import contextlib
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.contexts import RunContext
from handrail.agent.delegating import call_agent
from handrail.agent.errors import InvalidAnswer, LimitExceeded
from handrail.agent.events import ToolEnd, ToolStart
from handrail.agent.handing import hand_over
from handrail.agent.kernel.blame import wrong_return
from handrail.agent.kernel.requests import ToolRequest, ToolResponse
from handrail.agent.stating import NO_CONTEXTS, Contexts, contexts_of, fold_calls
from handrail.agent.subagents import AgentTool
from handrail.agent.teams import TeamTool
from handrail.agent.threads import ended, raise_first
from handrail.agent.tools import InvalidArguments, Tool, has_effects
from handrail.filters import Message, Text, ToolCall, tool_result
from handrail.filters.messages import Part, whole
from handrail.filters.sensitivity import highest
from handrail.sessions import SessionError, ToolCallRecord, ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

_as_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# Below this length no number is too long for the interpreter, and no nesting too deep.
_SHORT = 500


class Arguments(Mapping[str, Any]):
    """The arguments of a call, parsed when first looked at. They are read-only: give changed ones with `replace`."""

    __slots__ = ("_parsed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed: dict[str, Any] | None = None

    def parsed(self) -> dict[str, Any]:
        """The arguments as a dict."""
        if self._parsed is None:
            self._parsed = json.loads(self.text) if self.text.strip() else {}
        return self._parsed

    def __getitem__(self, name: str) -> Any:
        return self.parsed()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parsed())

    def __len__(self) -> int:
        return len(self.parsed())

    def __repr__(self) -> str:
        return f"Arguments({self.text!r})"


async def answer_calls(turn: "Turn", calls: Sequence[ToolCall]) -> bool:
    """Gives every call its result, in call order; true where one of them handed the conversation over.

    Whatever is raised, every call has a result in the view and the record before it travels on.
    """
    turn.calls.extend(calls)
    handoffs, acceptance = turn.bound.handoffs, turn.acceptance
    transfers = [call for call in calls if call.name in handoffs] if handoffs else []
    outputs = [call for call in calls if call.name in acceptance.plan.tools] if acceptance is not None else []
    apart = {call.id for call in (*transfers, *outputs)}
    ordinary = [call for call in calls if call.id not in apart] if apart else calls
    results: dict[str, Message] = {}
    ids = {call.id: turn.scope.ids.next() for call in calls}
    handed_over = False
    try:
        granted, refusal = turn.budget.take_tool_calls(len(ordinary)) if ordinary else (0, None)
        turn.contexts = contexts = contexts_of(turn, ordinary[:granted]) if granted > 1 else NO_CONTEXTS
        if granted == 1:
            results[ordinary[0].id] = await _answer(turn, ordinary[0], ids, contexts)
        elif granted:
            await _side_by_side(turn, ordinary[:granted], ids, results, contexts)
        if contexts or turn.writes:
            fold_calls(turn, ordinary[:granted], contexts)
        if refusal is not None:
            _refuse(turn, ordinary[granted:], ids, results, refusal)
            raise refusal
        handoffs_before = turn.budget.handoffs
        if transfers or turn.requested is not None:
            handed_over = await hand_over(turn, transfers, ids, results, [call.id for call in ordinary])
        if outputs and acceptance is not None:
            acceptance.answer_calls(outputs, ids, results, handed_over=turn.budget.handoffs > handoffs_before)
    except BaseException as error:
        _close(turn, calls, ids, results, error)
        raise
    turn.hear([results[call.id] for call in calls])
    return handed_over


async def call_once(turn: "Turn", call: ToolCall) -> ToolResponse:
    """One tool call outside the loop, through the tool chain."""
    granted, refusal = turn.budget.take_tool_calls(1)
    if refusal is not None and not granted:
        raise refusal
    return await _respond(turn, call, turn.context)


def close_calls(turn: "Turn", calls: Sequence[ToolCall], text: str = "Not run: the turn went on without it.") -> None:
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


def cut_off(turn: "Turn", calls: Sequence[ToolCall], error: BaseException) -> None:
    """Answers calls that were still to run when an error ended the turn."""
    if calls:
        _close(turn, calls, {call.id: turn.scope.ids.next() for call in calls}, {}, error)


def _refuse(
    turn: "Turn", calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], limit: LimitExceeded
) -> None:
    for call in calls:
        text = f"Not run: the limit {limit.limit}={limit.value} was reached."
        results[call.id] = _message(turn, call, ids[call.id], ToolResponse(content=text, is_error=True))
        turn.run.log.write(ToolResultRecord(path=turn.path, message=results[call.id]))


def _close(
    turn: "Turn", calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], error: BaseException
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
    turn: "Turn", calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], contexts: Contexts
) -> None:
    gate = asyncio.Semaphore(turn.budget.limits.max_parallel_tools)

    async def one(call: ToolCall) -> None:
        async with gate:
            results[call.id] = await _answer(turn, call, ids, contexts)

    for group in _groups(turn, calls):
        if len(group) == 1:
            results[group[0].id] = await _answer(turn, group[0], ids, contexts)
        else:
            await _all([one(call) for call in group])


def _groups(turn: "Turn", calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
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


async def _all(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs all at once. The first to raise stops the others, which are awaited; the first in order is raised."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await ended(tasks)
    results = [asyncio.CancelledError() if task.cancelled() else task.exception() for task in tasks]
    errors = [error for error in results if error is not None]
    raise_first([error for error in errors if not isinstance(error, asyncio.CancelledError)] or errors)


async def _answer(turn: "Turn", call: ToolCall, ids: Mapping[str, str], contexts: Contexts) -> Message:
    run, bound = turn.run, turn.bound
    if turn.emit is not None:
        turn.tell(ToolStart, call)
    response = await _respond(turn, call, contexts[call.id] if contexts else turn.context)
    if response.writes and not response.is_error:
        turn.writes[call.id] = response.writes
    tool = bound.tools.get(call.name)
    message = _shown(turn, call, ids[call.id], response, tool)
    if run.log.on:
        edited = bool(turn.answered) and turn.answered.pop(call.id, "") not in message.text
        run.log.write(ToolResultRecord(path=turn.path, message=message, edited=edited))
    if turn.emit is not None:
        turn.tell(ToolEnd, call, message)
    return message


async def _respond(turn: "Turn", call: ToolCall, context: RunContext[Any]) -> ToolResponse:
    bound = turn.bound
    tool = bound.tools.get(call.name)
    if tool is None:
        return _unknown(turn, call.name)
    if turn.scope.read_only and has_effects(tool):
        return _error("denied", f"{tool.name} changes something, and only reading is allowed here.")
    if bound.around_tool and not _is_object(call.arguments):
        return _broken(call.arguments)
    request = ToolRequest(run=context, tool=tool, call=call, arguments=Arguments(call.arguments))
    response = await bound.tool(request)
    if type(response) is not ToolResponse:
        raise InvalidAnswer(wrong_return(bound.layers, bound.name, "around_tool", response, "ToolResponse"))
    return response


async def run_tool(request: ToolRequest) -> ToolResponse:
    """The innermost layer: the arguments are checked, the start is marked, and the tool runs."""
    turn: Turn = request.run.turn
    tool, call, given = request.tool, request.call, request.arguments
    text = given.text if type(given) is Arguments else json.dumps(dict(given), ensure_ascii=False)
    prepared = tool.prepare()
    try:
        arguments = prepared.check(text)
    except InvalidArguments as error:
        return _broken(text) if not _is_object(text) else _error("invalid_arguments", f"Invalid arguments: {error}")
    except (ValueError, RecursionError):
        return _broken(text)
    log = turn.run.log
    if log.on:
        log.write(ToolCallRecord(path=turn.path, call_id=call.id, name=tool.name, arguments=text))
    if type(tool) is AgentTool:
        return await call_agent(turn, tool, call, arguments["input"])
    if isinstance(tool, TeamTool):
        return await tool.answer(turn, call, arguments["input"])
    if log.on and tool.side_effects in ("side_effecting", "external"):
        log.before_effect()
    context = request.run.for_call(call.id) if prepared.context_name else turn.context
    try:
        if tool.timeout is None:
            return _response(await tool.call(arguments, context))
        async with asyncio.timeout(tool.timeout) as deadline:
            return _response(await tool.call(arguments, context))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _error("cancelled", f"{tool.name} was cancelled.")
    except Exception as error:  # noqa: BLE001  # whatever a tool raises, the model is told
        if tool.timeout is not None and isinstance(error, TimeoutError) and deadline.expired():
            return _error("timeout", f"{tool.name} did not end within {tool.timeout} seconds.")
        return _error(_class(error), f"{type(error).__name__}: {error}")


def _response(value: Any) -> ToolResponse:
    return value if type(value) is ToolResponse else ToolResponse(value)


def _class(error: Exception) -> str:
    return "transient" if isinstance(error, TimeoutError | ConnectionError) else "failed"


def _error(error_class: str, text: str) -> ToolResponse:
    return ToolResponse(content=text, is_error=True, error_class=error_class)


def _unknown(turn: "Turn", name: str) -> ToolResponse:
    import difflib

    outputs = turn.acceptance.plan.tools if turn.acceptance is not None else ()
    known = [*turn.bound.tools, *turn.bound.handoffs, *outputs]
    near = difflib.get_close_matches(name, known, 1, 0.4)
    hint = f"Did you mean {near[0]}? " if near else ""
    return _error("invalid_arguments", f"There is no tool {name!r}. {hint}The tools are: {', '.join(known) or 'none'}.")


def _broken(text: str) -> ToolResponse:
    return _error("invalid_arguments", f"The arguments are not a JSON object: {text[:200]}")


def _is_object(text: str) -> bool:
    if not text or text.isspace():
        return True
    if len(text) < _SHORT:
        try:
            _as_object(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            pass
        else:
            return True
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _shown(turn: "Turn", call: ToolCall, message_id: str, response: ToolResponse, tool: Tool | None) -> Message:
    try:
        return _message(turn, call, message_id, response, tool)
    except Exception as error:  # noqa: BLE001  # the value is the tool's own, and so is what its text may raise
        problem = f"What {call.name} gave cannot be shown: {type(error).__name__}."
        return _message(turn, call, message_id, _error("failed", problem), tool)


def _message(
    turn: "Turn", call: ToolCall, message_id: str, response: ToolResponse, tool: Tool | None = None
) -> Message:
    shown = response.value if response.content is None else response.content
    return Message(
        "tool",
        _content(shown),
        id=message_id,
        agent=turn.bound.name,
        created_at=turn.run.clock(),
        sensitivity=_label(response, tool),
        call_id=call.id,
        name=call.name,
        is_error=response.is_error,
    )


def _label(response: ToolResponse, tool: Tool | None) -> str | None:
    shown = response.value if response.content is None else response.content
    given = tool.output_sensitivity if tool is not None else None
    if response.sensitivity is None and not isinstance(shown, list | tuple | dict):
        return given
    return highest(given, response.sensitivity, *_labels_within(shown))


def _labels_within(value: Any, depth: int = 20) -> Iterator[str | None]:
    # Parts and messages that stand within other values are shown as text, and their labels would be lost with them.
    if isinstance(value, Part | Message):
        yield value.sensitivity
        value = getattr(value, "content", ())
    if depth and isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _labels_within(item, depth - 1)


def _content(value: Any) -> tuple[Part, ...]:
    if type(value) is str:
        return (Text(value),)
    if value is None:
        return (Text(""),)
    if type(value) is int:
        return (Text(str(value)),)
    if isinstance(value, Part):
        return (value,)
    several = isinstance(value, list | tuple) and all(isinstance(item, Part | str) for item in value)
    if several and any(isinstance(item, Part) for item in value):
        return tuple([Text(item) if isinstance(item, str) else item for item in value])
    return (Text(_as_text(value)),)


def _as_text(value: Any) -> str:
    from pydantic_core import PydanticSerializationError, to_json

    if isinstance(value, str):
        return str(value)
    try:
        if isinstance(value, msgspec.Struct):
            return msgspec.json.encode(value).decode()
        return to_json(value).decode()
    except (PydanticSerializationError, UnicodeEncodeError, ValueError, TypeError):
        if isinstance(value, dict | list | tuple):
            return whole(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))
        return whole(str(value))
