"""Messages as a transcript that a person reads and a tool compares: the text of a `.hand` file.

One message a block. At the margin stands what a message is and what it does, indented what it says:

    [assistant] m2 by triage, secret, pinned
      Let me look.
    → find_payments(invoice="1042") #c1

    [tool] m3
    ← find_payments #c1: Two payments on 7 March.

The same messages give the same text, and other messages another one (`created_at` is left out).
"""

import json
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import assert_never

import msgspec

from handrail.filters.messages import Audio, File, Image, Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from handrail.filters.sensitivity import TIERS

_INDENT = "  "
_PLAIN_NAME = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\"#,:()\[\]]+")
# What a line cannot show, or what a reader of lines would take for the end of one.
_NOT_SHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def hand(messages: Iterable[Message]) -> str:
    """The transcript of these messages.

    >>> from handrail.filters import user
    >>> print(hand((user("I was charged twice.", id="m1"),)), end="")
    [user] m1
      I was charged twice.
    """
    blocks = ["\n".join(_block(message)) for message in messages]
    return "\n\n".join(blocks) + "\n" if blocks else "(no messages)\n"


def _block(message: Message) -> Iterator[str]:
    yield _head(message)
    parts = message.content
    if message.role == "tool":
        yield from _result(message)
        if _is_plain(parts):
            return
    before: Part | None = None
    for part in parts:
        yield from _part(part, bare=not isinstance(before, Text | Reasoning | Refusal))
        before = part


def _head(message: Message) -> str:
    who = [name(message.id)] if message.id else []
    who += [f"by {name(message.agent)}"] if message.agent is not None else []
    marks = [_label(message.sensitivity)] if message.sensitivity is not None else []
    marks += [mark for mark in ("pinned", "synthetic") if getattr(message, mark)]
    marks += ["error"] if message.is_error else []
    if message.role != "tool":
        marks += [
            f"{field} {name(value)}" for field in ("call_id", "name") if (value := getattr(message, field)) is not None
        ]
    return " ".join([f"[{message.role}]", *who]) + "".join([f", {mark}" for mark in marks])


def _label(label: str) -> str:
    return label if label in TIERS else f"label {json_text(label)}"


def _result(message: Message) -> Iterator[str]:
    of = f" {name(message.name)}" if message.name is not None else ""
    line = f"←{of} #{name(message.call_id)}" if message.call_id is not None else f"←{of}"
    part = message.content[0] if _is_plain(message.content) else None
    yield f"{line}: {_one_line(part.text)}" if isinstance(part, Text) else f"{line}:" if message.content else line


def _is_plain(parts: tuple[Part, ...]) -> bool:
    """Whether a result is one short text, which stands on the line of its mark."""
    part = parts[0] if len(parts) == 1 else None
    return isinstance(part, Text) and "\n" not in part.text and part.sensitivity is None and part.extra is None


def _part(part: Part, *, bare: bool) -> Iterator[str]:
    match part:
        case Text():
            if not bare or part.sensitivity is not None or part.extra is not None:
                yield f"+ text{_more(part)}"
            yield from _said(part.text)
        case ToolCall():
            transfer = ", transfer" if part.transfer else ""
            yield f"→ {name(part.name)}{_arguments(part.arguments)} #{name(part.id)}{transfer}{_more(part)}"
        case Reasoning():
            provider = f", {name(part.provider)}" if part.provider is not None else ""
            yield f"* reasoning{provider}{_data(part.data)}{_more(part)}"
            yield from _said(part.text)
        case Refusal():
            yield f"* refusal{_more(part)}"
            yield from _said(part.text)
        case Opaque():
            what = f"{name(part.provider)} {name(part.type)} of the {part.family} family"
            yield f"* opaque, {what}{_more(part)}: {_one_line(part.data)}"
        case Image() | Audio() | File():
            kind = type(part).__name__.lower()
            fields = [(field, getattr(part, field)) for field in ("name", "media_type", "url", "digest")]
            told = "".join([f", {field} {json_text(value)}" for field, value in fields if value is not None])
            yield f"* {kind}{told}{_data(part.data)}{_more(part)}"
        case _:
            assert_never(part)


def _more(part: Part) -> str:
    extra = None if isinstance(part, Reasoning | Refusal | Opaque) else part.extra
    label = f", {_label(part.sensitivity)}" if part.sensitivity is not None else ""
    return label if extra is None else f"{label}, extra {_one_line(extra)}"


def _data(data: str | None) -> str:
    if data is None:
        return ""
    return f", data of {len(data)} characters {sha256(data.encode(errors='replace')).hexdigest()[:12]}"


def _arguments(text: str) -> str:
    """`(name=value, …)`, each value as it was written; the whole text as a string where it is no plain object."""
    if not text or text.isspace():
        return "()"
    try:
        compact = msgspec.json.format(text, indent=-1)
        pairs = msgspec.json.decode(compact, type=dict[str, msgspec.Raw])
        shown = [(key, bytes(value).decode()) for key, value in pairs.items()]
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return f"({json_text(text)})"
    again = ",".join([f"{msgspec.json.encode(key).decode()}:{value}" for key, value in shown])
    # A key that stands twice is lost on the way, and must be seen.
    if f"{{{again}}}" != compact or _NOT_SHOWN.search(compact):
        return f"({json_text(text)})"
    return "(" + ", ".join([f"{name(key)}={value}" for key, value in shown]) + ")"


def _said(text: str) -> Iterator[str]:
    if not text or _NOT_SHOWN.search(text):
        yield json_text(text)
        return
    yield from [f"{_INDENT}{line}" if line else "" for line in text.split("\n")]


def _one_line(text: str) -> str:
    shown = text and "\n" not in text and not text.startswith('"') and text == text.strip()
    return text if shown and not _NOT_SHOWN.search(text) else json_text(text)


def name(text: str) -> str:
    """A name as it is where it reads as one word, else as a JSON string."""
    return text if _PLAIN_NAME.fullmatch(text) else json_text(text)


def json_text(text: str) -> str:
    """The text as a JSON string on one line, with nothing in it that a line cannot show."""
    written = json.dumps(text, ensure_ascii=False)
    return _NOT_SHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
