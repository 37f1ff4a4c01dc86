"""A Chat Completions message from its JSON.

What the format has no place for here, and what is not known, is kept as raw JSON: `extra` on a part, or an opaque part
whose type is `message.<field>`.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from handrail.filters.messages import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Role,
    Text,
    ToolCall,
)
from handrail.filters.patterns import lazy
from handrail.sessions.codec import mended
from handrail.sessions.errors import FormatError
from handrail.sessions.formats.openai_chat.wire import (
    FILE,
    LEGACY,
    PROVIDER,
    Raws,
    compact,
    fields_of,
    joined,
    list_of,
    object_of,
    text_of,
)

Notice: TypeAlias = Callable[[str], None]

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")

# Fields that belong to what a message says. Any other that is not known may hold reasoning, and stays with its agent.
_HARMLESS = frozenset({"audio", "annotations"})
_HOSTED = frozenset(
    {"tool_use", "tool_result", "server_tool_use", "web_search_call", "mcp_tool_use", "mcp_tool_result"}
)
_DATA_URL = lazy(r"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/=]*)")


def _ignore(what: str) -> None:
    """Nobody asked."""


def decode_message(raw: bytes | str, notice: Notice = _ignore) -> Message:
    """The message that a Chat Completions JSON object holds; it has no id and no agent yet.

    `notice` is called with a few words for everything that `encode_message` would not write back as it was. Raises
    `FormatError` for what is no such message.
    """
    given = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
    text = mended(given)
    if text != given:
        notice("half of a surrogate pair written as U+FFFD")
    fields = fields_of(text, "it")
    wire_role = text_of(fields.pop("role", None))
    role = ROLES.get(wire_role or "")
    if role is None:
        found = f"its role is {wire_role!r}; possible: {', '.join(ROLES)}"
        raise FormatError("message", "an OpenAI chat message", found)
    parts: list[Part] = [*_thoughts(fields), *_content(fields, role, notice), *_calls(fields, notice)]
    name, call_id = _own_text(fields, "name"), _own_text(fields, "tool_call_id")
    if wire_role == "function":
        call_id = f"{LEGACY}{name}"
    if wire_role != role:
        parts.append(Opaque(PROVIDER, "message.role", f'"{wire_role}"', "other"))
    parts += _rest(fields, notice)
    return Message(role, tuple(parts), call_id=call_id, name=name)


def _own_text(fields: Raws, name: str) -> str | None:
    value = text_of(fields.get(name))
    if value is not None:
        del fields[name]
    return value


def _thoughts(fields: Raws) -> Iterator[Part]:
    for name in THOUGHTS:
        raw = fields.get(name, b"null")
        if raw == b"null":
            continue
        del fields[name]
        said = text_of(raw)
        if said is not None and name == THOUGHTS[0]:
            yield Reasoning(said, PROVIDER)
        else:
            yield Reasoning(_words(raw) if said is None else said, PROVIDER, f'{{"{name}":{compact(raw)}}}')


def _words(raw: bytes) -> str:
    try:
        blocks = msgspec.json.decode(raw, type=list[dict[str, Any]])
    except (msgspec.DecodeError, RecursionError):
        return ""
    words = [block.get("thinking") or block.get("text") or block.get("summary") for block in blocks]
    return "\n".join([word for word in words if isinstance(word, str)])


def _content(fields: Raws, role: Role, notice: Notice) -> list[Part]:
    raw = fields.pop("content", None)
    parts: list[Part] = []
    said = text_of(raw)
    if said is not None:
        parts.append(Text(said))
    elif raw is None or raw == b"null":
        if raw is None or role != "assistant":
            notice(f"{'left-out' if raw is None else 'null'} content written as {_nothing(role)}")
    elif raw.startswith(b"["):
        parts += [_part(part, notice) for part in list_of(raw)]
        _notice_list(parts, role, notice)
    else:
        notice("content that is neither a text nor a list written as a text")
        parts.append(Text(compact(raw)))
    refusal = _own_text(fields, "refusal")
    if refusal is not None:
        if parts:
            notice("refusal beside content written as a part")
        parts.append(Refusal(refusal))
    return parts


def _nothing(role: Role) -> str:
    return "null" if role == "assistant" else "an empty text"


def _notice_list(parts: list[Part], role: Role, notice: Notice) -> None:
    if not parts:
        notice(f"empty content list written as {_nothing(role)}")
    elif len(parts) == 1:
        only = parts[0]
        if type(only) is Text and only.extra is None:
            notice("one-text list written as a string")
        elif type(only) is Refusal and role == "assistant":
            notice("refusal part written as the field refusal")


def _part(raw: bytes, notice: Notice) -> Part:
    said = text_of(raw)
    if said is not None:
        notice("text in a content list written as a text part")
        return Text(said)
    try:
        fields = object_of(raw)
    except msgspec.DecodeError:
        return Opaque(PROVIDER, "", compact(raw))
    kind = text_of(fields.pop("type", None)) or ""
    part = _known_part(kind, fields)
    return (
        part if part is not None else Opaque(PROVIDER, kind, compact(raw), "tool" if kind in _HOSTED else "reasoning")
    )


def _known_part(kind: str, fields: Raws) -> Part | None:
    match kind:
        case "text" if (text := _own_text(fields, "text")) is not None:
            return Text(text, extra=_extra(fields))
        case "refusal" if (text := _own_text(fields, "refusal")) is not None:
            return Refusal(text) if not fields else None
        case "image_url" | "input_audio" | "file" if fields.get(kind, b"").startswith(b"{"):
            inner = object_of(fields.pop(kind))
            return {"image_url": _image, "input_audio": _audio, "file": _file}[kind](inner, fields)
        case _:
            return None


def _image(inner: Raws, fields: Raws) -> Part | None:
    url = _own_text(inner, "url")
    if url is None:
        return None
    if "detail" in inner and "detail" not in fields:
        fields["detail"] = inner.pop("detail")
    extra = _extra(fields, image_url=inner)
    if found := _DATA_URL.fullmatch(url):
        return Image(data=found[2], media_type=found[1], extra=extra)
    return Image(url=url, extra=extra)


def _audio(inner: Raws, fields: Raws) -> Part | None:
    data, form = _own_text(inner, "data"), _own_text(inner, "format")
    if data is None or form is None:
        return None
    return Audio(data=data, media_type=f"audio/{form}", extra=_extra(fields, input_audio=inner))


def _file(inner: Raws, fields: Raws) -> Part | None:
    data, file_id, name = _own_text(inner, "file_data"), _own_text(inner, "file_id"), _own_text(inner, "filename")
    if (data is None) == (file_id is None):
        return None
    extra = _extra(fields, file=inner)
    if data is None:
        return File(url=f"{FILE}{file_id}", name=name, extra=extra)
    if found := _DATA_URL.fullmatch(data):
        return File(data=found[2], media_type=found[1], name=name, extra=extra)
    return File(data=data, name=name, extra=extra)


def _extra(fields: Raws, **nested: Raws) -> str | None:
    """The JSON text of what is left of a part, and of the objects within it."""
    left = fields | {name: joined(inner) for name, inner in nested.items() if inner}
    return compact(joined(left)) if left else None


def _calls(fields: Raws, notice: Notice) -> Iterator[Part]:
    if fields.get("tool_calls", b"").startswith(b"["):
        calls = list_of(fields.pop("tool_calls"))
        if not calls:
            notice("empty field tool_calls left out")
        yield from [_call(call, notice) for call in calls]
    if fields.get("function_call", b"").startswith(b"{"):
        function = object_of(fields.pop("function_call"))
        name = _own_text(function, "name") or ""
        arguments = _arguments(function.pop("arguments", None), notice)
        yield ToolCall(f"{LEGACY}{name}", name, arguments, extra=compact(joined({"function_call": joined(function)})))


def _call(raw: bytes, notice: Notice) -> Part:
    kind, fields = None, {}
    if raw.startswith(b"{"):
        fields = object_of(raw)
        kind = text_of(fields.get("type"))
    within = "custom" if kind == "custom" else "function"
    if kind not in ("function", "custom", None) or not fields.get(within, b"").startswith(b"{"):
        return Opaque(PROVIDER, f"tool_call.{kind or ''}", compact(raw), "tool")
    inner = object_of(fields.pop(within))
    call_id, name = _own_text(fields, "id"), _own_text(inner, "name")
    if kind is None:
        notice("tool call without a type written as a function call")
    if call_id is None or name is None:
        notice("tool call without an id or a name written with an empty one")
    if kind == "custom":
        arguments = _own_text(inner, "input") or ""
        return ToolCall(call_id or "", name or "", arguments, extra=_extra(fields, custom=inner))
    fields.pop("type", None)
    arguments = _arguments(inner.pop("arguments", None), notice)
    return ToolCall(call_id or "", name or "", arguments, extra=_extra(fields, function=inner))


def _arguments(raw: bytes | None, notice: Notice) -> str:
    said = text_of(raw)
    if said:
        return said
    if raw is None or said == "" or raw == b"null":
        notice("empty arguments written as {}")
        return ""
    notice("arguments given as JSON written as text")
    return compact(raw)


def _rest(fields: Raws, notice: Notice) -> Iterator[Part]:
    for name, raw in fields.items():
        value = compact(raw)
        if value in ("null", "[]", "{}", '""'):
            notice(f"{'null' if value == 'null' else 'empty'} field {name} left out")
        else:
            yield Opaque(PROVIDER, f"message.{name}", value, "other" if name in _HARMLESS else "reasoning")
