"""What becomes of a tool's response: the message that a model is shown, with its label, or the answer itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import StateError
from handrail.agent.events import MessageDone
from handrail.agent.events import Text as TextHeard
from handrail.agent.kernel.requests import ToolResponse
from handrail.agent.kernel.states import as_json
from handrail.agent.tools import Tool
from handrail.filters import Message, Text, ToolCall, assistant
from handrail.filters.messages import Part, whole
from handrail.filters.sensitivity import highest
from handrail.sessions import Gave

if TYPE_CHECKING:
    from handrail.agent.loop import Turn


def result_of(turn: Turn, call: ToolCall, message_id: str, response: ToolResponse, tool: Tool | None) -> Message:
    """The message that answers a call; where the response cannot be shown, one that says so."""
    try:
        return _message(turn, call, message_id, response, tool)
    except Exception as error:  # noqa: BLE001  # the value is the tool's own, and so is what its text may raise
        failed = ToolResponse(content=_not_shown(call, error), is_error=True, error_class="failed")
        return _message(turn, call, message_id, failed, tool)


def _not_shown(call: ToolCall, error: Exception) -> str:
    return f"What {call.name} gave cannot be shown: {type(error).__name__}."


def gave_of(turn: Turn, call: ToolCall, response: ToolResponse) -> Gave | None:
    """What a record is to say of what the tool itself gave, where the message that answers its call does not say it."""
    own = turn.gave.pop(call.id, response) if turn.gave else response
    asked = turn.wanted.get(call.id) if turn.wanted else None
    if own is response and asked is None and not response.writes and not response.is_error:
        return None
    changed = own is not response
    given = asked.given if asked is not None else None
    return Gave(
        changed=changed,
        content=_given(call, own) if changed else (),
        is_error=changed and bool(own.is_error),
        sensitivity=_label_of(own) if changed else None,
        error_class=own.error_class if isinstance(own.error_class, str) else "failed",
        writes=_written(turn, own.writes),
        handoff={"target": asked.target, "reason": given.reason, "input": given.input} if asked and given else {},
    )


def _given(call: ToolCall, own: ToolResponse) -> tuple[Part, ...]:
    # Whatever stands in its place may do, so the record of it must not stop the run.
    try:
        return _content(own.value if own.content is None else own.content)
    except Exception as error:  # noqa: BLE001  # as in `result_of`
        return (Text(_not_shown(call, error)),)


def _label_of(own: ToolResponse) -> str | None:
    return own.sensitivity if isinstance(own.sensitivity, str | None) else highest(own.sensitivity)


def _written(turn: Turn, writes: Mapping[str, Any]) -> msgspec.Raw:
    # What JSON cannot carry, or what is private, is in no record; of what is no mapping the state will tell.
    if not writes or not isinstance(writes, Mapping):
        return msgspec.Raw(b"{}")
    told: dict[str, msgspec.Raw] = {}
    for name, value in writes.items():
        if name not in turn.bound.channels or turn.bound.channels[name].how.private:
            continue
        try:
            told[name] = msgspec.Raw(as_json(value, "a tool", name))
        except StateError:
            continue
    return msgspec.Raw(msgspec.json.encode(told))


def is_direct(turn: Turn, calls: Sequence[ToolCall], results: Sequence[Message]) -> bool:
    """Whether these results are the answer: all calls are of tools that return directly, and none failed."""
    tools = [turn.bound.tools.get(call.name) for call in calls]
    succeeded = not any([result.is_error for result in results])
    return succeeded and all([tool is not None and tool.return_direct for tool in tools])


def say_directly(turn: Turn, results: Sequence[Message]) -> Message:
    """Says the results as the agent's answer, as sensitive as the most sensitive of them."""
    labels = [result.sensitivity for result in results] + [
        part.sensitivity for each in results for part in each.content
    ]
    parts: list[Part] = [part for result in results for part in result.content]
    spoken: tuple[Part, ...] = (
        (Text("\n".join([result.text for result in results])),)
        if all([type(part) is Text for part in parts])
        else tuple(parts)
    )
    message = assistant(
        spoken,
        id=turn.scope.ids.next(),
        agent=turn.bound.name,
        created_at=turn.run.clock(),
        sensitivity=highest(turn.label(), *labels),
    )
    turn.finish_reason = "stop"
    turn.say(message)
    if turn.run.log.on:
        turn.run.log.write()
    if turn.emit is not None:
        turn.tell(TextHeard, message.id, message.text)
        turn.tell(MessageDone, message)
    return message


def _message(turn: Turn, call: ToolCall, message_id: str, response: ToolResponse, tool: Tool | None) -> Message:
    shown = response.value if response.content is None else response.content
    return Message(
        "tool",
        (Text(shown),) if type(shown) is str else _content(shown),
        id=message_id,
        agent=turn.bound.name,
        created_at=turn.run.clock(),
        sensitivity=_label(shown, response.sensitivity, tool),
        call_id=call.id,
        name=call.name,
        is_error=response.is_error,
    )


def _label(shown: Any, label: str | None, tool: Tool | None) -> str | None:
    given = tool.output_sensitivity if tool is not None else None
    if label is None and (type(shown) is str or type(shown) is int or not isinstance(shown, list | tuple | dict)):
        return given
    return highest(given, label, *_labels_within(shown))


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
        return (_part(value),)
    several = isinstance(value, list | tuple) and all(isinstance(item, Part | str) for item in value)
    if several and any(isinstance(item, Part) for item in value):
        return tuple([Text(item) if isinstance(item, str) else _part(item) for item in value])
    return (Text(_as_text(value)),)


def _part(part: Part) -> Part:
    # A call would stand in a result without a result of its own: it is shown as any value is.
    return Text(_as_text(part)) if type(part) is ToolCall else part


def _as_text(value: Any) -> str:
    import json

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
