"""The filter that leaves the spoken text without its tools."""

from __future__ import annotations

import msgspec

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages, Opaque, Part, ToolCall, is_empty
from handrail.filters.registry import constructor, filter_kind


@filter_kind("strip-tool-calls")
class StripToolCalls(Filter, frozen=True):
    """No tool calls, no hosted tool parts, no tool messages; a message left empty goes."""

    def __call__(self, history: Messages) -> Messages:
        return tuple([left for message in history if (left := _without_tools(message)) is not None])

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def reason(self, message: Message) -> str:
        """Says that tools are not part of the conversation."""
        return "tool calls and their results do not cross"


@constructor
def strip_tool_calls() -> StripToolCalls:
    """Leaves out tool calls, hosted tool parts and tool results, and messages that held nothing else.

    >>> from handrail.filters import assistant, call, tool_result
    >>> asked = call("track", call_id="c1", parcel="8841")
    >>> history = (assistant("Let me look.", asked), tool_result(asked, "in Porto"), assistant("It is in Porto."))
    >>> [message.text for message in strip_tool_calls()(history)]
    ['Let me look.', 'It is in Porto.']
    """
    return StripToolCalls()


def _without_tools(message: Message) -> Message | None:
    if message.role == "tool":
        return None
    parts = tuple([part for part in message.content if not _is_tool(part)])
    if len(parts) == len(message.content):
        return message
    left = msgspec.structs.replace(message, content=parts)
    return None if is_empty(left) else left


def _is_tool(part: Part) -> bool:
    return isinstance(part, ToolCall) or (isinstance(part, Opaque) and part.family == "tool")
