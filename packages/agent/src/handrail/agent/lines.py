"""What a log line says of requests and responses: where they are, how large, how they ended, and what they cost."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from handrail.agent.errors import tell
from handrail.agent.executing import Arguments
from handrail.agent.kernel.requests import (
    ChatRequest,
    ChatResponse,
    HandoffRequest,
    HandoffResponse,
    Request,
    ToolRequest,
    ToolResponse,
    TurnRequest,
    TurnResult,
)
from handrail.filters import Message, ToolCall
from handrail.filters.messages import Part, Reasoning, Refusal, Text
from handrail.filters.sensitivity import highest, judge, token, token_tier
from handrail.sessions import Usage

if TYPE_CHECKING:
    from handrail.agent.tools import Tool

Facts: TypeAlias = dict[str, str | int | float]
"""What a line says, by name; no name is one of a log record's own."""


def before(request: Request, cut: int) -> Facts:
    """What is known of a request: its place, its size, and with a `cut` above 0 so many characters of its content."""
    run = request.run
    facts: Facts = {"run_id": run.run_id, "agent_path": run.path, "step": run.step, "attempt": run.attempt}
    if isinstance(request, TurnRequest):
        return {**facts, "messages": len(request.messages), **_last_of(request.messages, cut)}
    if isinstance(request, ChatRequest):
        facts |= {"model": request.model.name, "purpose": request.purpose}
        sizes: Facts = {"messages": len(request.messages), "tools": len(request.tools)}
        return {**facts, **sizes, **_last_of(request.messages, cut)}
    if isinstance(request, ToolRequest):
        facts |= {"call_id": request.call.id, "tool": request.tool.name}
        return {**facts, **_text(_call(request), cut)} if cut else facts
    if isinstance(request, HandoffRequest):
        facts |= {"kind": request.kind, "source": request.source, "target": request.target}
        return {**facts, "messages": len(request.history)}
    return facts


def after(request: Request, response: object, cut: int) -> Facts:
    """What is known of a response."""
    facts: Facts = {"status": "completed", "attempt": request.run.attempt, "step": request.run.step}
    if isinstance(response, TurnResult):
        facts |= {"status": response.status, "steps": response.steps, "calls": len(response.tool_calls)}
        said = _text(response.message, cut)
        return {**facts, "finish_reason": response.finish_reason, **_spent(response.usage), **said}
    if isinstance(response, ChatResponse):
        message = response.message
        facts |= {"characters": len(message.text), "calls": len(message.tool_calls)}
        # The loop labels an answer when it accepts it, which is outside every layer.
        label = highest(message.sensitivity, request.run.turn.label()) if cut else None
        said = _text(message.replace(sensitivity=label), cut) if cut else {}
        return {**facts, "finish_reason": response.finish_reason, **_spent(response.usage), **said}
    if isinstance(response, ToolResponse) and isinstance(request, ToolRequest):
        if response.is_error:
            facts |= {"status": "failed", "error_class": response.error_class}
        shown = response.value if response.content is None else response.content
        size: Facts = {"characters": len(shown)} if isinstance(shown, str) else {}
        return {**facts, **size, **(_text(_result(request.tool, response, shown), cut) if cut else {})}
    return {**facts, "crossed": len(response.seed)} if isinstance(response, HandoffResponse) else facts


def failure(request: Request, error: BaseException, cut: int) -> Facts:
    """What is known of what was raised: its type, and with a `cut` above 0 what an error of Handrail's own says."""
    status = "cancelled" if isinstance(error, asyncio.CancelledError) else "failed"
    facts: Facts = {"status": status, "attempt": request.run.attempt, "error": type(error).__name__}
    said = tell(error)["message"] if cut else ""
    # It may quote what the agent saw.
    return (
        {**facts, "text": token("secret") if _quotes_secrets(request, error, said) else _cut(said, cut)}
        if said
        else facts
    )


def _quotes_secrets(request: Request, error: BaseException, said: str) -> bool:
    """Whether what an error says may be of something secret: whatever is at hand where it was raised."""
    run = request.run
    at_hand: list[Message] = [*run.messages, *getattr(error, "messages", ())]
    tools = run.turn.bound.tools
    called = {call.name for message in run.messages for call in message.tool_calls}
    labels = [run.turn.label(), token_tier(said), *[tools[name].output_sensitivity for name in called & tools.keys()]]
    if isinstance(request, TurnRequest | ChatRequest):
        at_hand += request.messages
    elif isinstance(request, HandoffRequest):
        at_hand += request.history
    elif isinstance(request, ToolRequest):
        at_hand.append(_call(request))
        labels.append(request.tool.output_sensitivity)
    return highest(*labels) == "secret" or any([_is_secret(message) for message in at_hand])


def _is_secret(message: Message) -> bool:
    return any([judge(message, part) == "secret" for part in message.content])


def _spent(usage: Usage) -> Facts:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _last_of(messages: Sequence[Message], cut: int) -> Facts:
    return _text(messages[-1], cut) if cut and messages else {}


def _text(message: Message | None, cut: int) -> Facts:
    if message is None or not cut:
        return {}
    said = [_words(message, part, cut) for part in message.content if type(part) is not Reasoning]
    return {"text": _cut(" ".join(said), cut)}


def _words(message: Message, part: Part, cut: int) -> str:
    if judge(message, part) == "secret":
        return token("secret")
    if isinstance(part, Text | Refusal):
        return part.text[: cut + 1]
    return f"{part.name}({part.arguments[: cut + 1]})" if isinstance(part, ToolCall) else f"<{type(part).__name__}>"


def _cut(text: str, cut: int) -> str:
    return text if len(text) <= cut else f"{text[:cut]}…"


def _call(request: ToolRequest) -> Message:
    # The call as the tool gets it, with the label of the answer that it stands in.
    given = request.arguments
    text = given.text if isinstance(given, Arguments) else json.dumps(dict(given), ensure_ascii=False, default=str)
    caller = next((message for message in reversed(request.run.messages) if message.role == "assistant"), None)
    label = caller.sensitivity if caller is not None else None
    return Message("assistant", (msgspec.structs.replace(request.call, arguments=text),), sensitivity=label)


def _result(tool: "Tool", response: ToolResponse, shown: object) -> Message:
    label = highest(tool.output_sensitivity, response.sensitivity)
    parts = shown if isinstance(shown, list | tuple) else (shown,)
    content = [part if isinstance(part, Part) else Text(part) for part in parts if isinstance(part, Part | str)]
    # Other values may hold labels anywhere; the request that they are sent with tells them, labelled.
    whole = len(content) == len(parts)
    return Message("tool", tuple(content) if whole else (Text(f"<{type(shown).__name__}>"),), sensitivity=label)
