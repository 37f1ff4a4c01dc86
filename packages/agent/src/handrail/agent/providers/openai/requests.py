"""The body of a request: messages as they were encoded once, joined, and what goes beside them."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.models import Settings, ToolSpec
from handrail.filters.messages import Message, Opaque, Part, Reasoning, ToolCall, is_empty, whole
from handrail.sessions.formats.openai_chat import encode_message

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest

PROVIDER = "openai-chat"
# What a request says of itself, and no setting may say in its place.
_OWN = frozenset({"messages", "model", "stream", "tools"})
# A message keeps its encoded form under this name.
_KEPT = "openai-chat"


def encode_request(name: str, request: "ChatRequest", own: Settings, *, stream: bool, public: bool) -> bytes:
    """The JSON body of a request to the model `name`, whose `own` settings the request's override.

    The instructions' blocks are joined by blank lines into the first system message. `public` says that the public
    service is asked, which knows a limit on tokens by its newer name only. Raises `BuildError` for settings that
    cannot be sent.
    """
    fields: dict[str, Any] = {"model": name, **_settings(own, request.settings, public, bool(request.tools))}
    if request.tools:
        fields["tools"] = [_tool(spec) for spec in request.tools]
    if stream:
        fields["stream"] = True
        fields.setdefault("stream_options", {"include_usage": True})
    messages = [message.__dict__.get(_KEPT) or encode(message) for message in request.messages]
    blocks = [block for block in request.instructions.values() if block]
    if blocks:
        messages.insert(0, _json({"role": "system", "content": whole("\n\n".join(blocks))}))
    return b'%s,"messages":[%s]}' % (_json(fields)[:-1], b",".join(filter(None, messages)))


def encode(message: Message) -> bytes:
    """A message as this provider sends it, kept on the message; nothing where no part of it may be sent.

    Reasoning and opaque parts of other providers stay behind, a call without arguments says `{}`.
    """
    parts = tuple([_sent(part) for part in message.content if _ours(part)])
    sent = message if parts == message.content else message.replace(content=parts)
    hollow = sent is not message and sent.role in ("assistant", "user") and is_empty(sent)
    encoded = message.__dict__[_KEPT] = b"" if hollow else encode_message(sent)
    return encoded


def _ours(part: Part) -> bool:
    return not isinstance(part, Reasoning | Opaque) or part.provider == PROVIDER


def _sent(part: Part) -> Part:
    if isinstance(part, ToolCall) and part.arguments.isspace():
        return msgspec.structs.replace(part, arguments="")
    return part


def _settings(own: Settings, asked: Settings, public: bool, tools: bool) -> dict[str, Any]:
    extra = {**own.extra, **asked.extra}
    if not _OWN.isdisjoint(extra):
        names = ", ".join(sorted(_OWN.intersection(extra)))
        raise BuildError(f"settings.extra may not hold {names}: a request says that itself; change the request")
    fields: dict[str, Any] = {}
    for name in ("temperature", "top_p", "seed", "stop"):
        value = _either(own, asked, name)
        if value not in (None, ()):
            fields[name] = value
    limit = _either(own, asked, "max_tokens")
    if limit is not None:
        fields["max_completion_tokens" if public else "max_tokens"] = limit
    # The service refuses both where there is no tool to choose.
    if tools:
        fields.update(_choice(_either(own, asked, "tool_choice"), _either(own, asked, "parallel_tool_calls")))
    return {**fields, **extra}


def _either(own: Settings, asked: Settings, name: str) -> Any:
    value = getattr(asked, name)
    return getattr(own, name) if value is None or value == () else value


def _choice(choice: str | None, parallel: bool | None) -> Mapping[str, Any]:
    fields: dict[str, Any] = {}
    if choice in ("auto", "none", "required"):
        fields["tool_choice"] = choice
    elif choice is not None:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    if parallel is not None:
        fields["parallel_tool_calls"] = parallel
    return fields


def _tool(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return whole(json.dumps(value, ensure_ascii=False)).encode()
    except TypeError as error:
        raise BuildError(f"the settings or a tool's schema cannot be written as JSON: {error}") from error
