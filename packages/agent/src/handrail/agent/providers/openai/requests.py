"""The body of a request: messages as they were encoded once, joined, and what goes beside them."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.models import OutputSchema, Settings, ToolSpec
from handrail.agent.strictness import strict_schema
from handrail.filters.messages import Message, Opaque, Part, Reasoning, ToolCall, is_empty, whole
from handrail.sessions.formats.openai_chat import encode_message

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest

PROVIDER = "openai-chat"
# What a request says of itself, and no setting may say in its place.
_OWN = frozenset({"messages", "model", "stream", "tools"})
# A message keeps its encoded form under this name.
_KEPT = "openai-chat"


def encode_request(
    name: str, request: "ChatRequest", own: Settings, *, stream: bool, public: bool, strict_tools: bool = False
) -> bytes:
    """The JSON body of a request to the model `name`, whose `own` settings the request's override.

    The instructions' blocks are joined by blank lines into the first system message. `public` says that the public
    service is asked, which knows a limit on tokens by its newer name only; `strict_tools` that it can be held to the
    schemas of tools. Raises `BuildError` for settings that cannot be sent.
    """
    fields: dict[str, Any] = {"model": name, **_settings(own, request.settings, public, bool(request.tools))}
    if request.tools:
        fields["tools"] = [_tool(spec, strict_tools) for spec in request.tools]
    if request.output is not None:
        if "response_format" in fields:
            raise BuildError("settings.extra says response_format, and so does the agent's output type; leave one out")
        fields["response_format"] = _format(request.output)
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


def _tool(spec: ToolSpec, strict: bool) -> msgspec.Raw:
    # Like a message it keeps its encoded form: whether its schema can be made strict is worked out once.
    kept = f"{_KEPT}:strict" if strict else _KEPT
    known: msgspec.Raw | None = spec.__dict__.get(kept)
    if known is None:
        function: dict[str, Any] = {"name": spec.name, "description": spec.description}
        made = strict_schema(spec.parameters) if strict else None
        if made is not None:
            function |= {"parameters": made, "strict": True}
        else:
            # The service takes no schema but an object's.
            function["parameters"] = spec.parameters or {"type": "object", "properties": {}}
        known = spec.__dict__[kept] = msgspec.Raw(_json({"type": "function", "function": function}))
    return known


def _format(output: OutputSchema) -> msgspec.Raw:
    known: msgspec.Raw | None = output.__dict__.get(_KEPT)
    if known is None:
        made = strict_schema(output.schema) if output.strict else None
        schema = {"name": output.name, "schema": output.schema if made is None else made, "strict": made is not None}
        known = msgspec.Raw(_json({"type": "json_schema", "json_schema": schema}))
        output.__dict__[_KEPT] = known
    return known


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return whole(json.dumps(value, ensure_ascii=False)).encode()
    except TypeError as error:
        raise BuildError(f"the settings or a tool's schema cannot be written as JSON: {error}") from error
