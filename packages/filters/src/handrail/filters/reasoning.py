"""Taking what a model thought out of what it said."""

import json
import re

import msgspec

from handrail.filters.base import Filter
from handrail.filters.messages import (
    Audio,
    File,
    Image,
    Message,
    Messages,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    is_empty,
)
from handrail.filters.registry import constructor, filter_kind

# What a provider puts on a part besides its content and that is known to hold no reasoning. Anything else may be a
# signature, an encrypted item or a thought signature, and stays with the agent that has it.
HARMLESS_EXTRAS = frozenset({"cache_control", "detail", "format", "title", "context", "citations"})

_OPEN = re.compile(r"<think>", re.IGNORECASE)
_CLOSE = re.compile(r"</think>", re.IGNORECASE)


@filter_kind("strip-reasoning")
class StripReasoning(Filter, frozen=True):
    """No reasoning parts on any role, no reasoning data in provider extras, no `<think>…</think>` in assistant text.

    An unclosed `<think>` takes the rest of its part, a `</think>` that was never opened takes what stands before it.
    A message left empty goes; a tool result keeps an empty text.
    """

    def __call__(self, history: Messages) -> Messages:
        return tuple([left for message in history if (left := without_reasoning(message)) is not None])

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def reason(self, message: Message) -> str:
        """Says that reasoning does not cross."""
        return "reasoning stays with the agent that thought it"


@constructor
def strip_reasoning() -> StripReasoning:
    """Leaves out what a model thought; `compose` always ends with it.

    >>> from handrail.filters import assistant, user
    >>> said = assistant("<think>He looks risky.</think>Let me check.")
    >>> [message.text for message in strip_reasoning()((user("Raise my limit."), said))]
    ['Raise my limit.', 'Let me check.']
    """
    return StripReasoning()


def without_reasoning(message: Message) -> Message | None:
    """The message without reasoning (the same object where it has none), or None where nothing is left of it."""
    thinks = message.role == "assistant"
    for part in message.content:
        kind = type(part)
        if kind is Text:
            if part.extra is not None or (thinks and "<" in part.text):  # type: ignore[union-attr]  # a Text has both
                break
        elif kind is not Refusal and (kind is not ToolCall or part.extra is not None):  # type: ignore[union-attr]
            break
    else:
        return message
    return _without(message, thinks)


def _without(message: Message, thinks: bool) -> Message | None:
    content = message.content
    parts = [left for part in content if (left := _stripped(part, thinks)) is not None]
    if message.role == "tool" and content and not parts:
        parts.append(Text(""))
    if len(parts) == len(content) and all([new is old for new, old in zip(parts, content, strict=True)]):
        return message
    left_over = msgspec.structs.replace(message, content=tuple(parts))
    return None if message.role != "tool" and is_empty(left_over) else left_over


def _stripped(part: Part, thinks: bool) -> Part | None:
    if isinstance(part, Reasoning) or (isinstance(part, Opaque) and part.family == "reasoning"):
        return None
    if isinstance(part, Text | ToolCall | Image | Audio | File) and part.extra is not None:
        harmless = _harmless(part.extra)
        part = part if harmless == part.extra else msgspec.structs.replace(part, extra=harmless)
    if thinks and isinstance(part, Text) and "<" in part.text:
        said = spoken(part.text)
        if said != part.text:
            return msgspec.structs.replace(part, text=said) if said.strip() else None
    return part


def _harmless(extra: str) -> str | None:
    try:
        fields = json.loads(extra)
        kept = {name: value for name, value in fields.items() if name in HARMLESS_EXTRAS}
        if len(kept) == len(fields):
            return extra
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else None
    except (ValueError, AttributeError, RecursionError):
        return None


def spoken(text: str) -> str:
    """The text without `<think>…</think>`; in linear time, and with no tag left in what it returns."""
    for _ in range(3):
        cut = _pass(text)
        if cut == text:
            return text
        text = cut
    # What is joined by a cut can read as a tag again. Text that still does after three passes was made to deceive.
    tag = min([found.start() for found in (_OPEN.search(text), _CLOSE.search(text)) if found], default=len(text))
    return text[:tag]


def _pass(text: str) -> str:
    said: list[str] = []
    place = 0
    while (opened := _OPEN.search(text, place)) is not None:
        said.append(text[place : opened.start()])
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            return "".join(said)
        place = closed.end()
    return _after_stray_close("".join(said) + text[place:])


def _after_stray_close(text: str) -> str:
    end = 0
    for closed in _CLOSE.finditer(text):
        end = closed.end()
    return text[end:]
