"""Running one tool: its arguments are checked, its start is marked, and what it raises is classified."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.attempts import Attempts, TookTooLong, is_transient
from handrail.agent.contexts import RunContext
from handrail.agent.gates import may_run
from handrail.agent.kernel.requests import ToolRequest, ToolResponse
from handrail.agent.tools import ERROR_CLASSES, ErrorClass, InvalidArguments, Prepared, Tool
from handrail.agent.wanting import forget_wanted
from handrail.filters import ToolCall
from handrail.sessions import ToolCallRecord

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

_as_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# Below this length no number is too long for the interpreter, and no nesting too deep.
_SHORT = 500


class CannotRun(Exception):
    """A call cannot be made as it is; `response` says why, for the model."""

    def __init__(self, text: str, error_class: ErrorClass = "invalid_arguments", *, broken: bool = False) -> None:
        self.response = error_response(error_class, text)
        self.broken = broken
        super().__init__(text)


def why_not(text: str, error: Exception) -> CannotRun:
    """Why arguments cannot be taken: they are no JSON object, or they do not fit the tool."""
    if isinstance(error, CannotRun):
        return error
    if isinstance(error, InvalidArguments) and is_object(text):
        return CannotRun(f"Invalid arguments: {error}")
    return CannotRun(f"The arguments are not a JSON object{_where(text)}.", broken=True)


def _where(text: str) -> str:
    import json

    # Where it breaks off, and not what it holds: that may be a secret, and goes to the model again.
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f": {error.msg} at character {error.pos + 1} of {len(text)}"
    except (ValueError, RecursionError):
        return ": a number in it is too long, or it is nested too deep"
    return ""


class Arguments(Mapping[str, Any]):
    """The arguments of a call, parsed when first looked at. They are read-only: give changed ones with `replace`.

    `found` is what a check for `tool` gave, where one was made before the tool runs: the kernel's own.
    """

    __slots__ = ("_parsed", "found", "text", "tool")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parsed: dict[str, Any] | None = None
        self.tool: Tool | None = None
        self.found: dict[str, Any] | CannotRun | None = None

    def take(self, tool: Tool, prepared: Prepared) -> dict[str, Any]:
        """What the tool is called with: each call of it gets values of its own. Raises as `Prepared.check` does, or
        `CannotRun`."""
        found = self.found
        if found is None or self.tool is not tool:
            return prepared.check(self.text)
        if isinstance(found, CannotRun):
            raise found
        self.found = None
        return found

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Arguments:
        """What a layer put in the place of the arguments."""
        import json

        return cls(json.dumps(dict(given), ensure_ascii=False))

    def parsed(self) -> dict[str, Any]:
        """The arguments as a dict."""
        if self._parsed is None:
            import json

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


def is_object(text: str) -> bool:
    """Whether this is the JSON of an object; nothing at all stands for an empty one."""
    if not text or text.isspace():
        return True
    if len(text) < _SHORT:
        try:
            _as_object(text)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            pass
        else:
            return True
    import json

    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def error_response(error_class: ErrorClass, text: str, error: Exception | None = None) -> ToolResponse:
    """What a model is told of a call that failed."""
    return ToolResponse(content=text, is_error=True, error_class=error_class, error=error)


async def run_tool(request: ToolRequest) -> ToolResponse:
    """The innermost layer: the arguments are checked, the start is marked, and the tool runs."""
    turn: Turn = request.run.turn
    tool, call, given = request.tool, request.call, request.arguments
    arguments = given if type(given) is Arguments else Arguments.of(given)
    prepared = tool.prepared
    try:
        # As `take`, without a call of its own: this is on the way of every call.
        checked = arguments.found
        if checked is None:
            found = prepared.check(arguments.text)
        elif type(checked) is dict and arguments.tool is tool:
            found, arguments.found = checked, None
        else:
            found = arguments.take(tool, prepared)
        key = None if prepared.plain else _key(tool, found)
    except (CannotRun, InvalidArguments, ValueError, RecursionError) as error:
        return why_not(arguments.text, error).response
    run = request.run
    is_guarded = tool.needs_approval is not False or run.granted is not None or tool.name != call.name
    if is_guarded and not may_run(request, found):
        return error_response("denied", f"{tool.name} did not run: nobody was asked about it.")
    tries = 1
    if run.call_id:
        # A layer may call on again: that is another try, and counts like any other.
        if run.tries:
            if (refused := _once_more(turn, tool)) is not None:
                return refused.response
            forget_wanted(turn, call.id)  # what a try before asked for, is gone with it
        tries = run.tries = run.tries + 1
    if turn.run.log.on:
        _mark(turn, tool, call, arguments.text, key, tries)
    if not prepared.direct and tool.children:
        return await tool.answer(turn, call, found["input"])
    if turn.run.world is not None:
        stood_in = await turn.run.world.tool(request, arguments.text, key)
        if stood_in is not None:
            return stood_in
    context = turn.context
    if prepared.context_name:
        context = run.for_call(call.id)
        context.tries, context.key = tries, key or ""
    try:
        if prepared.direct:
            value = await tool.fn(**found)
        elif prepared.plain:
            value = await tool.call(found, context)
        elif tool.retries:
            value = await _repeated(turn, tool, call, arguments, found, context, run, key)
        else:
            value = await _in_time(tool, found, context)
        return _own(value) if type(value) is ToolResponse else ToolResponse(value)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return error_response("failed", f"{tool.name} was cancelled.")
    except Exception as error:  # noqa: BLE001  # whatever a tool raises, the model is told
        return _failure(tool, error)


async def run_kept(request: ToolRequest) -> ToolResponse:
    """The same where layers stand around it and there is a record: what the tool itself gave is kept for that."""
    turn: Turn = request.run.turn
    response = await run_tool(request)
    if turn.gave is None:
        turn.gave = {}
    turn.gave[request.call.id] = response
    return response


def _once_more(turn: Turn, tool: Tool) -> CannotRun | None:
    """Counts one more run of a tool, or says why there is none."""
    granted, limit = turn.budget.take_tool_calls(1)
    if granted or limit is None:
        return None
    return CannotRun(f"{tool.name} was not run again: the limit {limit.limit}={limit.value} was reached.", "denied")


def _mark(turn: Turn, tool: Tool, call: ToolCall, text: str, key: str | None, attempt: int = 1) -> None:
    log = turn.run.log
    mark = ToolCallRecord(path=turn.path, call_id=call.id, name=tool.name, arguments=text, attempt=attempt, key=key)
    log.write(mark)
    if tool.side_effects in ("side_effecting", "external") and not tool.children:
        log.before_effect()


def _key(tool: Tool, arguments: dict[str, Any]) -> str | None:
    # Without its key the tool might do its work twice, so it does not run.
    how = tool.idempotency_key
    if how is None:
        return None
    try:
        key = arguments.get(how) if isinstance(how, str) else how(arguments)
    except Exception as error:  # the function is the application's own
        raise CannotRun(
            f"{tool.name} was not run: its key cannot be told ({type(error).__name__}).", "failed"
        ) from error
    if key is None or key == "":
        raise CannotRun(f"{tool.name} was not run: its key is empty.", "failed")
    return str(key)


async def _in_time(tool: Tool, arguments: dict[str, Any], context: RunContext[Any]) -> Any:
    if tool.timeout is None:
        return await tool.call(arguments, context)
    late = f"{tool.name} did not end within {tool.timeout} seconds."
    try:
        async with asyncio.timeout(tool.timeout) as deadline:
            value = await tool.call(arguments, context)
    except TimeoutError as error:
        if deadline.expired():
            raise TookTooLong(late) from error
        raise
    if deadline.expired():
        raise TookTooLong(late)  # it kept the cancel to itself, and what it gives comes too late
    return value


async def _repeated(
    turn: Turn,
    tool: Tool,
    call: ToolCall,
    arguments: Arguments,
    first: dict[str, Any],
    context: RunContext[Any],
    run: RunContext[Any],
    key: str | None,
) -> Any:
    before = run.tries - 1 if run.call_id else 0

    async def attempt(number: int) -> Any:
        if number == 1:
            return await _in_time(tool, first, context)
        if (refused := _once_more(turn, tool)) is not None:
            raise refused
        again = arguments.take(tool, tool.prepared)
        forget_wanted(turn, call.id)
        tried = before + number
        if turn.run.log.on:
            _mark(turn, tool, call, arguments.text, key, tried)
        if context is not turn.context:
            context.tries = tried
        if run.call_id:
            run.tries = tried
        return await _in_time(tool, again, context)

    return await Attempts(tool.retries, tool.retry_on, tool.retry_delay).run(attempt)


def _own(response: ToolResponse) -> ToolResponse:
    if response.is_error and response.error_class not in ERROR_CLASSES:
        return response.replace(error_class="failed")
    return response


def _failure(tool: Tool, error: Exception) -> ToolResponse:
    if isinstance(error, CannotRun):
        return error.response
    if isinstance(error, TookTooLong):
        return error_response("timeout", str(error))
    try:
        told = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  # the error is the tool's own, and so is what its text may raise
        told = type(error).__name__
    return error_response("transient" if is_transient(error) else "failed", told, error)
