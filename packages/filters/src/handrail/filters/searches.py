"""Every text of a message, wherever it stands: what somebody who looks for a word has to look at."""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from handrail.filters.messages import Message, Part

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_DEEPEST = 20
"""How many JSON texts may stand within one another before they are taken as they are."""


def texts(message: Message) -> Iterator[tuple[str, str]]:
    """Each text of a message, with where it stands: names, words, and what is nested in JSON, escapes undone."""
    for field in ("id", "agent", "sensitivity", "call_id", "name"):
        if value := getattr(message, field):
            yield field, value
    words = [part.text for part in message.content if hasattr(part, "text")]
    if len(words) > 1:
        yield "all its text", "".join(words)
    for number, part in enumerate(message.content, 1):
        for where, text in _of_part(part):
            yield f"part {number} ({type(part).__name__}), {where}", text


def _of_part(part: Part) -> Iterator[tuple[str, str]]:
    for field in part.__struct_fields__:
        value = getattr(part, field)
        if not isinstance(value, str) or not value:
            continue
        yield field, value
        if field == "url":
            yield field, unquote(value)
        elif field == "data" and hasattr(part, "media_type"):
            yield from [(f"{field}, decoded", text) for text in _decoded(value)]
        elif field in ("arguments", "data", "extra"):
            yield from _nested(field, value)


def _nested(field: str, text: str) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[str, str, int]] = [(field, text, 0)]
    while waiting:
        where, written, depth = waiting.pop()
        try:
            value = json.loads(written, object_pairs_hook=_Pairs, parse_int=str)
        except (ValueError, RecursionError):
            if "\\u" in written:
                yield where, _ESCAPE.sub(lambda found: chr(int(found[1], 16)), written)
            continue
        for place, inner in _strings(where, value):
            yield place, inner
            if depth < _DEEPEST and inner.lstrip()[:1] in ("{", "[", '"'):
                waiting.append((place, inner, depth + 1))


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, so that a key that stands twice hides nothing."""


def _strings(where: str, value: Any) -> Iterator[tuple[str, str]]:
    waiting = [(where, value)]
    while waiting:
        place, each = waiting.pop()
        if isinstance(each, str):
            yield place, each
        elif isinstance(each, _Pairs):
            yield from [(f"a key in {place}", key) for key, _ in each]
            waiting += [(f"{place}.{key[:40]}", inner) for key, inner in each]
        elif isinstance(each, list):
            waiting += [(f"{place}[{number}]", inner) for number, inner in enumerate(each)]


def _decoded(data: str) -> list[str]:
    try:
        body = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        return []
    return [body.decode(errors="replace")]
