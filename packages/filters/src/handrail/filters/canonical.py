"""Canonical JSON (RFC 8785) for JSON that others wrote.

Our own structs hold only strings, booleans and small integers, whose sorted encoding is canonical as it stands;
foreign JSON takes the path here. What RFC 8785 cannot carry becomes `{"$handrail": [kind, text]}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, TypeAlias

import msgspec

from handrail.filters.patterns import lazy

OWN_KEY = "$handrail"
LARGEST_EXACT = 2**53 - 1
DEEPEST = 100
"""Levels of lists and objects that are read. It is part of what a digest means: the interpreter's own limit would make
one depend on who asks for it."""
JSON: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool | None

_encoder = msgspec.json.Encoder(order="sorted")
_encode = msgspec.json.encode
_encode_sorted = _encoder.encode


@cache
def _exact() -> msgspec.json.Decoder[Any]:
    """What reads JSON that is encoded as RFC 8785 would: no fractions, no whole number that a float cannot hold, and
    not too deep."""
    flat = str | bool | Annotated[int, msgspec.Meta(ge=-LARGEST_EXACT, le=LARGEST_EXACT)] | None
    low = flat | list[flat] | dict[str, flat]
    middle = flat | list[low] | dict[str, low]
    return msgspec.json.Decoder(flat | list[middle] | dict[str, middle])


# A text that never ends is read to its end, so that each character is looked at once.
_BRACKETS = lazy(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)


class _Number(str):
    """A whole number too long for the interpreter to read, kept as its digits."""

    __slots__ = ()


class _Pairs(dict[str, Any]):
    """An object whose keys repeat, or that uses our own key: kept as its pairs."""

    __slots__ = ("pairs",)
    pairs: list[tuple[str, Any]]


def canonical_text(text: str) -> str:
    """The canonical form of a JSON text; `{}` for an empty text, the text itself where it is not JSON or is nested
    deeper than `DEEPEST` levels.

    Raises `RecursionError` where the caller has left the interpreter no room to read so many.
    """
    if not text or text.isspace() or text == "{}":
        return "{}"
    quick = _quick(text)
    if quick is not None:
        return quick
    if _is_deep(text):
        return text
    import json

    try:
        return canonical(json.loads(text, object_pairs_hook=_object, parse_int=_integer)).decode()
    except ValueError:
        return text


def not_canonical(texts: Sequence[str]) -> Sequence[int]:
    """The places of the texts that `canonical_text` may change, by one look at all of them; the others stay."""
    if not texts:
        return ()
    # No value holds a line's end, so a line that comes out as it went in is the canonical form of a whole value.
    text = "".join([f"{each or '{}'}\n" for each in texts])
    if OWN_KEY in text or not (text.isascii() or max(text) <= "\ud7ff"):
        return range(len(texts))
    try:
        lines = _encoder.encode_lines(_exact().decode_lines(text)).decode().split("\n")
    except msgspec.DecodeError:
        return range(len(texts))
    if len(lines) <= len(texts):
        # A blank text has left no line, so what stands at a place may be another's.
        return range(len(texts))
    return [place for place, each in enumerate(texts) if lines[place] != each]


def canonical(value: Any) -> bytes:
    """The canonical JSON of a Python value, with what RFC 8785 cannot carry as `{"$handrail": [kind, text]}`.

    Raises `RecursionError` where the value is nested deeper than the interpreter goes.
    """
    import rfc8785

    return rfc8785.dumps(_carried(value))


def _quick(text: str) -> str | None:
    # A text that decodes and encodes to itself has lost nothing on the way: no key twice, no odd number, no
    # needless escape. Anything else takes the slow way, also what lies beyond the basic plane, where the orders differ.
    if OWN_KEY in text or not (text.isascii() or max(text) <= "\ud7ff"):
        return None
    try:
        value = _exact().decode(text)
    except msgspec.DecodeError:
        return None
    ordered = _encode_sorted(value).decode()
    if ordered == text:
        return text
    again = _encode(value).decode()
    return ordered if again == text or again == msgspec.json.format(text, indent=-1) else None


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        sign = text[found.start()]
        if sign in "[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif sign in "]}":
            depth -= 1
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs) and OWN_KEY not in plain and not any(map(_broken, plain)):
        return plain
    return _pairs(pairs)


def _pairs(pairs: list[tuple[Any, Any]]) -> _Pairs:
    kept = _Pairs()
    kept.pairs = [(str(key), value) for key, value in pairs]
    return kept


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) < 400 else _Number(digits)


def _broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _own(kind: str, text: str) -> JSON:
    return {OWN_KEY: [kind, text]}


def _carried(value: Any) -> JSON:
    if isinstance(value, _Number):
        return _own("integer", str(value))
    if isinstance(value, str):
        return _own("text", _quoted(value)) if _broken(value) else value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= LARGEST_EXACT else _own("integer", _digits(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else _own("number", repr(value))
    if isinstance(value, bytes):
        return _own("bytes", value.hex())
    if isinstance(value, _Pairs):
        return _own("object", _written(value))
    if isinstance(value, dict):
        return _carried(_pairs(list(value.items()))) if _odd(value) else {k: _carried(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(item) for item in value]
    return _own(type(value).__name__, value.isoformat() if hasattr(value, "isoformat") else str(value))


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)


def _written(value: Any) -> str:
    # One text for all that stands within, however deep: a text within a text would grow with every level.
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, _Pairs) else [(str(key), item) for key, item in value.items()]
        ordered = sorted(pairs, key=lambda pair: pair[0])
        return "{" + ",".join([f"{_quoted(key)}:{_written(item)}" for key, item in ordered]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _digits(value)
    return canonical(value).decode()


def _odd(value: dict[Any, Any]) -> bool:
    return OWN_KEY in value or any(not isinstance(key, str) or _broken(key) for key in value)


def _digits(value: int) -> str:
    return hex(value) if abs(value).bit_length() > 10_000 else str(value)
