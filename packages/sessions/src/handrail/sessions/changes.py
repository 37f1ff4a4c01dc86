"""What differs between two JSON values, or between two messages that stand for each other, field by field."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from handrail.filters.canonical import DEEPEST, canonical, canonical_text
from handrail.filters.messages import Message, Reasoning, ToolCall
from handrail.filters.patterns import lazy
from handrail.sessions.alignments import align
from handrail.sessions.differences import Change

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_PLAIN = lazy(r"[\w-]+")


def json_changes(a: Any, b: Any, field: str = "") -> Iterator[Change]:
    """What differs between two JSON values: objects key by key, lists item by item where their lengths are the same
    and with their items aligned where they are not, anything else as a whole.

    >>> [change.field for change in json_changes({"n": 1, "of": [1, 2]}, {"n": 2, "of": [1, 3]})]
    ['n', 'of[1]']
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *[key for key in b if key not in a]]:
            yield from json_changes(a.get(key, msgspec.UNSET), b.get(key, msgspec.UNSET), _joined(field, key))
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_changes(a, b, field)
    elif type(a) is not type(b) or a != b:
        yield Change(field, a, b)


def _list_changes(a: list[Any], b: list[Any], field: str) -> Iterator[Change]:
    if len(a) == len(b):
        for place, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from json_changes(one, other, f"{field}[{place}]")
        return
    for i, j in aligned([[key(item) for item in a], _kinds(a)], [[key(item) for item in b], _kinds(b)]):
        one = a[i] if i is not None else msgspec.UNSET
        other = b[j] if j is not None else msgspec.UNSET
        yield from json_changes(one, other, f"{field}[{i if i is not None else j}]")


def aligned(first: list[list[Any]], second: list[list[Any]]) -> Iterator[tuple[int | None, int | None]]:
    """Every place of both sides once and in order: aligned ones together, the rest with None; before what the second
    side alone has stands what the first alone has."""
    i = j = 0
    for x, y in [*align(first, second), (len(first[0]), len(second[0]))]:
        yield from [(place, None) for place in range(i, x)]
        yield from [(None, place) for place in range(j, y)]
        if x < len(first[0]):
            yield x, y
        i, j = x + 1, y + 1


def key(value: Any) -> bytes:
    """What is equal for equal JSON values alone."""
    try:
        return _encode_sorted(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return canonical(value)


def _kinds(values: list[Any]) -> list[str]:
    return [str(value.get("kind", value.get("name", ""))) if isinstance(value, dict) else "" for value in values]


def _joined(field: str, key: str) -> str:
    step = key if _PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False)
    return f"{field}.{step}" if field else step


def meaning(message: Message, answers: int | None = None) -> dict[str, Any]:
    """A message as what it means, in JSON: without its id, its time, the ids of calls and what a provider signs its
    reasoning with. A result says which call of the last response it answers (from 0) in place of that call's id."""
    told: dict[str, Any] = msgspec.to_builtins(message)
    for field in ("id", "created_at", "call_id"):
        told.pop(field, None)
    told["content"] = [_part(part) for part in message.content]
    if message.role == "tool":
        told["answers"] = answers
    return told


def _part(part: Any) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(part)
    if type(part) is ToolCall:
        del told["id"]
        told["arguments"] = read_json(part.arguments)
    elif type(part) is Reasoning:
        told.pop("data", None)
    return told


def read_json(text: str) -> Any:
    """JSON text as its value, so that its fields are told apart; the text itself where it is no JSON, or too deep."""
    try:
        value = json.loads(canonical_text(text))
        if text.count("[") + text.count("{") > DEEPEST:
            canonical(value)
    except (ValueError, RecursionError):
        return text
    return value


def message_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Change]:
    """What differs between two messages, given as what they mean."""
    for field in [key for key in {**a, **b} if key != "content"]:
        yield from json_changes(a.get(field, msgspec.UNSET), b.get(field, msgspec.UNSET), field)
    first, second = a["content"], b["content"]
    for i, j in aligned(_levels(first), _levels(second)):
        one = first[i] if i is not None else msgspec.UNSET
        other = second[j] if j is not None else msgspec.UNSET
        field = f"content[{i if i is not None else j}]"
        # Where only the spelling of JSON differs, the words are shown.
        yield from list(json_changes(_result(one), _result(other), field)) or json_changes(one, other, field)


def _levels(parts: list[dict[str, Any]]) -> list[list[Any]]:
    kinds = [part["kind"] for part in parts]
    return [[key(part) for part in parts], [(part["kind"], part.get("name")) for part in parts], kinds]


def _result(part: Any) -> Any:
    # Words that are an object or a list, as many results are, are told apart by their fields.
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str) and text.lstrip()[:1] in ("{", "["):
        return {**part, "text": read_json(text)}
    return part
