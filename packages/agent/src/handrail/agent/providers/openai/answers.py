"""An answer that came whole: its message, usage and end."""

import json
import re
from typing import Any

import msgspec

from handrail.agent.errors import ModelError
from handrail.agent.http.failures import failed_within, told_by, unreadable
from handrail.agent.http.secrets import Where
from handrail.agent.models import ChatResponse, FinishReason
from handrail.filters import HandrailError, Text
from handrail.sessions import Usage
from handrail.sessions.formats.openai_chat import decode_message

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filtered",
}
# Many servers put an empty text before calls; it says nothing, and some refuse to have it back.
_NOTHING = Text("")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class _Choice(msgspec.Struct):
    message: msgspec.Raw
    finish_reason: str | None = None
    error: Any = None


class _Answer(msgspec.Struct):
    choices: tuple[_Choice, ...] | None = None
    usage: Any = None
    error: Any = None


class _Shape(msgspec.Struct):
    """What must be so in a message; the codec reads anything, and keeps what it does not understand."""

    content: str | list[Any] | None = None
    tool_calls: list[dict[str, Any]] | None = None


_decode = msgspec.json.Decoder(_Answer).decode
_check = msgspec.json.Decoder(_Shape).decode


def read_answer(body: bytes, where: Where) -> ChatResponse:
    """The response in a body. Raises `InvalidResponse` for what is none, and the error that a body tells of."""
    answer, problem = None, ""
    try:
        answer = _decode(mended(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        problem = str(error)
    # Outside of the handler, here and below: a parser's error may hold all that it was given.
    if answer is None:
        raise _wrong(body, where, problem)
    if answer.error or (answer.choices and answer.choices[0].error):
        payload = answer.error or (answer.choices or ())[0].error
        raise failed_within(told_by({"error": payload}), where, streaming=False)
    if not answer.choices:
        raise unreadable(where, "it has no choices", body)
    choice = answer.choices[0]
    return response(bytes(choice.message), choice.finish_reason, read_usage(answer.usage), where)


def response(message: bytes, reason: str | None, usage: Usage, where: Where) -> ChatResponse:
    """The response with a message, given as the JSON of it. An answer that asks for tools ended because of them."""
    decoded, problem = None, ""
    try:
        _check(message)
        decoded = decode_message(message)
    except (HandrailError, ValueError, RecursionError) as error:
        problem = str(error)
    if decoded is None:
        raise unreadable(where, f"its message cannot be read ({problem})", message)
    if decoded.role != "assistant":
        raise unreadable(where, f"its message is of the role {decoded.role!r}", message)
    end = _REASONS.get(reason or "", "other")
    if decoded.tool_calls and end in ("stop", "other"):
        end = "tool_calls"
    spoken = tuple([part for part in decoded.content if part != _NOTHING])
    return ChatResponse(decoded.replace(content=spoken), usage, end)


def read_usage(told: Any) -> Usage:
    """What a service tells of tokens; what it does not tell, or tells in no number, counts as nothing."""
    if not isinstance(told, dict):
        return Usage()
    return Usage(
        input_tokens=_count(told, "prompt_tokens"),
        output_tokens=_count(told, "completion_tokens"),
        cached_tokens=_count(told.get("prompt_tokens_details"), "cached_tokens"),
        reasoning_tokens=_count(told.get("completion_tokens_details"), "reasoning_tokens"),
    )


def mended(body: bytes) -> bytes:
    """JSON text in which no escape stands for half a surrogate pair; it is U+FFFD instead. All else stays."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], body)


def _count(told: Any, name: str) -> int:
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _wrong(body: bytes, where: Where, problem: str) -> ModelError:
    """The error for a body that does not decode: what the service tells of a failure, or that it is no answer."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        return unreadable(where, "it is not JSON", body)
    if isinstance(payload, dict) and payload.get("error"):
        return failed_within(told_by(payload), where, streaming=False)
    return unreadable(where, problem, body)
