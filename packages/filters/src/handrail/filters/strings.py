"""Every text that a part holds, to be read or rewritten: words, names, addresses, and the strings within JSON.

JSON is rewritten string by string where it stands: keys, their order, spaces and the digits of numbers stay as they
were written, so that what parsed still parses. It is lexed and not parsed, in linear time, however deep it is nested.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from handrail.filters.hashes import sha256
from handrail.filters.messages import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    whole,
)
from handrail.filters.patterns import lazy

DEEPEST = 8
"""How many times a JSON text may stand in a string of a JSON text and still be read as JSON."""

Change: TypeAlias = Callable[[str, str], str]
"""Called with a text and the key that it stands under (empty where there is none); returns what becomes of it."""
Across: TypeAlias = Callable[[str], Sequence[tuple[int, int]]]
"""Called with a JSON text as it is written; returns the stretches in it that may reach over several of its values."""

_TOKEN = lazy(
    r'[ \t\r\n]*(?:(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<value>(?:[+-]?[0-9.][0-9.eE+-]*|-?Infinity|NaN|true|false|null)\b)|(?P<sign>[][{}:,]))",
    re.DOTALL,
)
_ESCAPE = lazy(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_COLON = lazy(r"[ \t\r\n]*:")
_TEXTUAL = lazy(r"text/|application/(?:[\w.-]{1,40}\+)?(?:json|xml|yaml)\b", re.IGNORECASE)


class Token(msgspec.Struct, frozen=True, gc=False):
    """A string, number or word of a JSON text: where it stands, what it says, the key before it, and the number of the
    object or list that holds it."""

    start: int
    end: int
    text: str
    key: str
    is_key: bool
    is_text: bool
    holder: int


def json_tokens(text: str) -> list[Token] | None:
    """The strings, numbers and words of a JSON text in order, or None where it does not read as JSON."""
    found: list[Token] = []
    place, key = 0, ""
    holders, opened = [0], 0
    while (match := _TOKEN.match(text, place)) is not None:
        place = match.end()
        kind = match.lastgroup or ""
        if kind == "sign":
            sign = match["sign"]
            key = key if sign == ":" else ""
            if sign in "{[":
                opened += 1
                holders.append(opened)
            elif sign in "}]" and len(holders) > 1:
                holders.pop()
            continue
        said = _decoded(match[kind]) if kind == "text" else match[kind]
        if said is None:
            return None
        is_key = kind == "text" and _COLON.match(text, place) is not None
        found.append(Token(*match.span(kind), said, "" if is_key else key, is_key, kind == "text", holders[-1]))
        key = said if is_key else ""
    return None if text[place:].strip() else found


def rewrite_json(text: str, change: Change, across: Across, depth: int = 0, *, keys: bool = True) -> str:
    """The JSON text with each string, and each number or word that `change` does not leave alone, put in a string.

    What `across` finds beyond the bounds of one string is put to `change` as well, and stands for each value that it
    touches. Keys that would become the same key stay distinct; without `keys` they stay as they are, but for those of
    JSON within a string. A text that is not JSON is changed as plain text, its escapes undone where they hide
    something.
    """
    import json

    read = json_tokens(text) if depth < DEEPEST else None
    if read is None:
        # What an escape hides in broken JSON is found once it is undone; nothing that parsed is lost by that.
        hidden = [said for said in _unescaped(text) if change(said, "") != said]
        return change(hidden[-1] if hidden else text, "")
    renamed = (
        _renamed([token for token in read if token.is_key], lambda key: _changed(key, change, across, depth))
        if keys
        else {}
    )
    spans = list(across(text))
    said: list[str] = []
    place = number = 0
    for token in read:
        while number < len(spans) and spans[number][1] <= token.start:
            number += 1
        touched = number < len(spans) and spans[number][0] < token.end and not _within(spans[number], token)
        if token.is_key:
            new = renamed.get((token.holder, token.text), token.text)
        else:
            new = _changed(token, change, across, depth)
        if touched and not token.is_key and new == token.text:
            new = change(text[slice(*spans[number])], "")
        if new != token.text:
            said += (text[place : token.start], json.dumps(new, ensure_ascii=False))
            place = token.end
    return "".join([*said, text[place:]]) if said else text


def _renamed(keys: Sequence[Token], change: Callable[[Token], str]) -> dict[tuple[int, str], str]:
    """What becomes of each key that is changed, by the object that it stands in: no key that another has there."""
    changed: dict[tuple[int, str], str] = {}
    taken: set[tuple[int, str]] = set()
    for token in keys:
        new = change(token)
        if new == token.text:
            taken.add((token.holder, new))
        else:
            changed[token.holder, token.text] = new
    counts: dict[tuple[int, str], int] = {}
    for (holder, old), new in changed.items():
        name = new
        while (holder, name) in taken:
            counts[holder, new] = number = counts.get((holder, new), 1) + 1
            name = f"{new} {number}"
        taken.add((holder, name))
        changed[holder, old] = name
    return changed


def rewrite(text: str, change: Change, across: Across) -> str:
    """The text changed: as JSON where it is a JSON object or list, as words where not."""
    return rewrite_json(text, change, across) if looks_like_json(text) else change(text, "")


def looks_like_json(text: str) -> bool:
    """Whether a text reads as a JSON object or list."""
    start = text[:64].lstrip()
    return start[:1] in ("{", "[") and not start.startswith("[REDACTED") and json_tokens(text) is not None


def rewrite_part(part: Part, change: Change, across: Across, *, keys: bool = True) -> Part:
    """The part with every text in it changed; the same object where nothing is. Without `keys` those of its arguments
    and data stay."""

    def words(text: str | None) -> str | None:
        return rewrite(text, change, across) if text else text

    def data(text: str | None) -> str | None:
        return rewrite_json(text, change, across, keys=keys) if text else text

    if isinstance(part, Text):
        return _with(part, text=words(part.text), extra=data(part.extra))
    if isinstance(part, Refusal):
        return _with(part, text=words(part.text))
    if isinstance(part, Reasoning):
        return _with(part, text=words(part.text), data=data(part.data))
    if isinstance(part, ToolCall):
        return _with(part, arguments=data(part.arguments), extra=data(part.extra))
    if isinstance(part, Opaque):
        return _with(part, data=data(part.data))
    fields = {"name": words(part.name), "url": words(part.url), "extra": data(part.extra)}
    inline = inline_text(part)
    if inline is not None and (new := rewrite(inline, change, across)) != inline:
        raw = new.encode()
        fields["data"] = base64.b64encode(raw).decode()
        if part.digest is not None:
            fields["digest"] = sha256(raw).hexdigest()
    return _with(part, **fields)


def strings(part: Part) -> Iterator[tuple[str, str]]:
    """Every text in a part with the key it stands under, JSON undone, strings within strings too."""
    if isinstance(part, Text | Refusal):
        yield from _words(part.text)
    elif isinstance(part, Reasoning):
        yield from _words(part.text)
        yield from _data(part.data)
    elif isinstance(part, ToolCall):
        yield (part.name, "")
        yield from _data(part.arguments)
    elif isinstance(part, Opaque):
        yield from _data(part.data)
    else:
        yield from ((text, "") for text in (part.name, part.url) if text)
        yield from _words(inline_text(part) or "")
    if isinstance(part, Text | ToolCall | Image | Audio | File):
        yield from _data(part.extra)


def message_strings(message: Message) -> Iterator[str]:
    """Every text in the parts of a message."""
    return (text for part in message.content for text, _ in strings(part))


def inline_bytes(part: Image | Audio | File) -> int:
    """How many bytes stand in a media part itself; 0 for one that is only an address."""
    data = part.data or ""
    return len(data) * 3 // 4 - data[-2:].count("=")


def inline_text(part: Image | Audio | File) -> str | None:
    """The text that stands in a media part itself, where its media type says that it is one; else None."""
    if not part.data or not _TEXTUAL.match(part.media_type or ""):
        return None
    try:
        return base64.b64decode(part.data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _with(part: Part, **fields: str | None) -> Part:
    changed = {name: value for name, value in fields.items() if value != getattr(part, name)}
    return msgspec.structs.replace(part, **changed) if changed else part


def _words(text: str) -> Iterator[tuple[str, str]]:
    yield (text, "")
    if looks_like_json(text):
        yield from _data(text)


def _data(text: str | None, depth: int = 0) -> Iterator[tuple[str, str]]:
    if not text:
        return
    read = json_tokens(text) if depth < DEEPEST else None
    if read is None:
        yield from ((said, "") for said in (text, *_unescaped(text)))
        return
    for token in read:
        yield (token.text, token.key)
        if token.is_text and looks_like_json(token.text):
            yield from _data(token.text, depth + 1)


def _changed(token: Token, change: Change, across: Across, depth: int) -> str:
    if token.is_text and looks_like_json(token.text):
        return rewrite_json(token.text, change, across, depth + 1)
    return change(token.text, token.key)


def _within(span: tuple[int, int], token: Token) -> bool:
    return token.is_text and token.start < span[0] and span[1] < token.end


def _decoded(literal: str) -> str | None:
    import json

    try:
        said: str = json.loads(literal, strict=False)
    except ValueError:
        return None
    return said


def _unescaped(text: str) -> Iterator[str]:
    """The text with the escapes of JSON undone, as often as there are some: what broken JSON may hide."""
    for _ in range(DEEPEST):
        if "\\" not in text:
            return
        text = whole(_ESCAPE.sub(_meant, text))
        yield text


def _meant(match: "re.Match[str]") -> str:
    return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])
