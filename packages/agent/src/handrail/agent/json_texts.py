"""JSON as a model writes it: read strictly, from a whole text or out of a code fence in it."""

import json
import math
from typing import Any, NamedTuple, NoReturn

from handrail.filters.messages import whole
from handrail.filters.patterns import lazy

DEEPEST = 100
"""How many objects and arrays may stand within one another."""

_FENCE = lazy(r"```([\w+#-]*)")


class NotJson(ValueError):
    """A text that is not the JSON of one value; the message says to its writer what is wrong."""


class JsonText(NamedTuple):
    """A value, and its JSON as it was written."""

    value: Any
    text: str


def read_json(text: str, *, fence: bool = True) -> JsonText:
    """The one JSON value of a text. With `fence` it may stand in a code fence (plain or `json`, in any case) with words
    around it: the first such fence counts.

    Raises `NotJson` for anything else: text beside the value, a key given twice in one object, NaN, a number that a
    float cannot hold, more than 100 levels.
    """
    text = text.strip().removeprefix("\ufeff").lstrip()
    try:
        read = _read(text, "")
    except NotJson:
        # A fence within an object or array is within one of its texts.
        inside = _fenced(text) if fence and not text.startswith(("{", "[")) else None
        if inside is None:
            raise
        read = _read(inside, "```")
    # A bracket within a text counts too, so this only says whether to look.
    if read.text.count("[") + read.text.count("{") > DEEPEST and levels(read.value) > DEEPEST:
        raise NotJson(f"it is nested deeper than {DEEPEST} levels")
    if "\\u" in read.text:
        # Half a surrogate pair is no character; it becomes U+FFFD here as everywhere, so two keys may become one.
        return read._replace(value=_DECODER.decode(whole(json.dumps(read.value, ensure_ascii=False))))
    return read


def _fenced(text: str) -> str | None:
    """What follows the opening of the first plain or json fence; one of another language is skipped."""
    opening = _FENCE.search(text)
    while opening is not None and opening[1].lower() not in ("", "json"):
        closing = text.find("```", opening.end())
        opening = _FENCE.search(text, closing + 3) if closing >= 0 else None
    return text[opening.end() :].lstrip() if opening is not None else None


def _read(text: str, closing: str) -> JsonText:
    if not text:
        raise NotJson("it is empty, and JSON is wanted")
    try:
        value, end = _DECODER.raw_decode(text)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" at")
        raise NotJson(f"it is not JSON: {problem} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson(f"it is nested deeper than {DEEPEST} levels") from None
    except ValueError:
        raise NotJson("it has a number with more digits than can be read") from None
    rest = text[end:].lstrip()
    if rest and not (closing and rest.startswith(closing)):
        raise NotJson("there is other text after the JSON")
    return JsonText(value, text[:end])


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise NotJson(f"the key {json.dumps(key)} stands twice in one object")
        made[key] = value
    return made


def _constant(text: str) -> NoReturn:
    raise NotJson(f"{text} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NotJson(f"the number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def levels(value: Any) -> int:
    """How many objects and arrays stand within one another in a value."""
    deepest, level = 0, _containers([value])
    while level:
        deepest += 1
        level = [inner for each in level for inner in _containers(each.values() if type(each) is dict else each)]
    return deepest


def _containers(values: Any) -> list[Any]:
    return [value for value in values if type(value) in (dict, list)]
