"""Taking what a model thought out of what it said."""

from __future__ import annotations

import math
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
from handrail.filters.patterns import lazy
from handrail.filters.registry import constructor, filter_kind

# What a provider puts on a part besides its content and that is known to hold no reasoning, where it is a plain value
# or a list of them. Anything else may be a signature, an encrypted item or a thought signature, and so may whatever an
# object holds; it stays with the agent that has it.
HARMLESS_EXTRAS = frozenset({"detail", "format", "title", "context", "citations"})

_NAMES = r"(?:\w{1,20}:)?think(?:ing)?(?:\s[^<>]*)?>"
_OPEN = lazy(rf"<\s*{_NAMES}", re.IGNORECASE)
_CLOSE = lazy(rf"<\s*/\s*{_NAMES}", re.IGNORECASE)
_WORDS = Text | Refusal


@filter_kind("strip-reasoning")
class StripReasoning(Filter, frozen=True):
    """No reasoning parts on any role, no reasoning data in provider extras, no `<think>…</think>` in assistant text.

    The texts and refusals of an assistant message are read as one: an unclosed `<think>` takes the rest of them, a
    `</think>` that was never opened takes what stands before it. `<thinking>`, a prefix as in `<x:think>`, spaces and
    attributes make no difference. Calls and media between the texts stay. A message left empty goes; a tool result
    keeps an empty text.
    """

    def __call__(self, history: Messages) -> Messages:
        # Words alone in which nothing can be hidden are most of what crosses, and are seen to be so here.
        left = [
            message
            if len(content := message.content) == 1
            and type(only := content[0]) is Text
            and only.extra is None
            and ("<" not in only.text or message.role != "assistant")
            else without_reasoning(message)
            for message in history
        ]
        return tuple([message for message in left if message is not None])

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


def spoken_only(history: Messages) -> Messages:
    """The messages without reasoning; the same object where there is none."""
    left = [without_reasoning(message) for message in history]
    if all([new is old for new, old in zip(left, history, strict=True)]):
        return history
    return tuple([message for message in left if message is not None])


def without_thoughts(message: Message) -> Message:
    """The message without `<think>…</think>` in its words; reasoning parts stay."""
    if message.role != "assistant":
        return message
    said = _spoken_parts(message.content)
    return message if said is message.content else msgspec.structs.replace(message, content=said)


def without_reasoning(message: Message) -> Message | None:
    """The message without reasoning (the same object where it has none), or None where nothing is left of it."""
    thinks = message.role == "assistant"
    for part in message.content:
        kind = type(part)
        if kind is Text:
            if part.extra is not None or (thinks and "<" in part.text):  # type: ignore[union-attr]  # a Text has both
                break
        elif kind is Refusal:
            if thinks and "<" in part.text:  # type: ignore[union-attr]  # a Refusal has a text
                break
        elif kind is not ToolCall or part.extra is not None:  # type: ignore[union-attr]
            break
    else:
        return message
    return _without(message, thinks)


def _without(message: Message, thinks: bool) -> Message | None:
    content = message.content
    said = _spoken_parts(content) if thinks else content
    parts = [left for part in said if (left := _stripped(part)) is not None]
    if message.role == "tool" and content and not parts:
        parts.append(Text(""))
    if len(parts) == len(content) and all([new is old for new, old in zip(parts, content, strict=True)]):
        return message
    left_over = msgspec.structs.replace(message, content=tuple(parts))
    return None if message.role != "tool" and is_empty(left_over) else left_over


def _spoken_parts(content: tuple[Part, ...]) -> tuple[Part, ...]:
    texts = [part.text for part in content if isinstance(part, _WORDS)]
    said = _spoken_pieces(texts)
    if said is texts:
        return content
    left = iter(said)
    parts: list[Part] = []
    for part in content:
        if isinstance(part, _WORDS) and (text := next(left)) != part.text:
            if not text:
                continue
            part = msgspec.structs.replace(part, text=text)
        parts.append(part)
    return tuple(parts)


def _stripped(part: Part) -> Part | None:
    if isinstance(part, Reasoning) or (isinstance(part, Opaque) and part.family == "reasoning"):
        return None
    if isinstance(part, Text | ToolCall | Image | Audio | File) and part.extra is not None:
        harmless = _harmless(part.extra)
        return part if harmless == part.extra else msgspec.structs.replace(part, extra=harmless)
    return part


def _harmless(extra: str) -> str | None:
    import json

    try:
        # Objects are read as their pairs: a name that is written twice hides nothing.
        fields = json.loads(extra, object_pairs_hook=tuple)
        if type(fields) is not tuple:
            return None
        kept = {name: value for name, value in fields if name in HARMLESS_EXTRAS and _is_plain(value)}
        if len(kept) == len(fields):
            return extra
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else None
    except (ValueError, RecursionError):
        return None


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all([_is_plain(item) and not isinstance(item, list) for item in value])
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def spoken(text: str) -> str:
    """The text without `<think>…</think>`; in linear time, and with no tag left in what it returns."""
    return _spoken_pieces([text])[0]


def _spoken_pieces(pieces: list[str]) -> list[str]:
    """As `spoken`, of a text that stands in pieces; the same list where nothing goes."""
    text = "".join(pieces)
    for _ in range(3):
        kept = _kept(text)
        if kept == [(0, len(text))]:
            return pieces
        pieces = _cut(pieces, kept)
        text = "".join(pieces)
    # What is joined by a cut can read as a tag again. Text that still does after three passes was made to deceive.
    tag = min([found.start() for found in (_OPEN.search(text), _CLOSE.search(text)) if found], default=len(text))
    return _cut(pieces, [(0, tag)])


def _kept(text: str) -> list[tuple[int, int]]:
    """The stretches of a text that one pass leaves."""
    said: list[tuple[int, int]] = []
    place = 0
    while (opened := _OPEN.search(text, place)) is not None:
        said.append((place, opened.start()))
        closed = _CLOSE.search(text, opened.end())
        if closed is None:
            return said
        place = closed.end()
    said.append((place, len(text)))
    strays = [closed.end() for start, end in said for closed in _CLOSE.finditer(text, start, end)]
    after = max(strays, default=0)
    return [(max(start, after), end) for start, end in said if end > after or not strays]


def _cut(pieces: list[str], kept: list[tuple[int, int]]) -> list[str]:
    """What these stretches of the joined text leave of each of its pieces; nothing where that is only space."""
    left: list[str] = []
    number = begin = 0
    for piece in pieces:
        end = begin + len(piece)
        said: list[str] = []
        while number < len(kept) and kept[number][0] < end:
            start, stop = kept[number]
            said.append(piece[max(start - begin, 0) : stop - begin])
            if stop > end:
                break
            number += 1
        text = "".join(said)
        # A part that holds only space goes, and what stood around it is then joined without it.
        left.append(text if text == piece or text.strip() else "")
        begin = end
    return left
