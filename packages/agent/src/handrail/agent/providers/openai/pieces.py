"""The pieces of a stream, joined: words, tool calls, and whatever else comes a bit at a time."""

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from handrail.agent.http.failures import unreadable
from handrail.agent.http.secrets import Where
from handrail.agent.models import ArgumentsDelta
from handrail.filters.messages import whole

# Text under these names says which thing a piece belongs to; it is repeated, not continued.
_LABELS = frozenset({"type", "id", "index", "format", "role", "name"})
# What is continued by its next piece; of anything else the last piece counts.
_CONTINUED = (str, dict, list)


class Words:
    """Text that comes in pieces. Half of a surrogate pair waits for its other half."""

    __slots__ = ("_half", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._half = ""

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self._pieces) + ("\N{REPLACEMENT CHARACTER}" if self._half else "")

    def add(self, piece: str) -> str:
        """Takes a piece, and gives what can be shown of it."""
        if self._half or not piece.isascii():
            piece, self._half = self._half + piece, ""
            if "\ud800" <= piece[-1:] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = whole(piece)
        self._pieces.append(piece)
        return piece


class _Call:
    """One tool call, as far as it has come."""

    __slots__ = ("arguments", "function", "id", "index", "name", "place", "rest")

    def __init__(self, index: int, place: int) -> None:
        self.index = index
        self.place = place
        self.id = ""
        self.name = ""
        self.arguments = Words()
        self.rest: list[dict[str, Any]] = [{}]
        self.function: list[dict[str, Any]] = [{}]

    def take(self, piece: dict[str, Any]) -> ArgumentsDelta | None:
        """Adds a piece; gives what it brings of the arguments."""
        rest = {name: value for name, value in piece.items() if name not in ("index", "id", "type", "function")}
        if rest:
            self.rest.append(rest)
        self.id = self.id or _text(piece.get("id"))
        function = piece.get("function")
        if not isinstance(function, dict):
            return None
        named = _text(function.get("name"))
        # A name comes whole at first; some servers repeat it with each piece, a few send it in pieces.
        self.name = self.name if named == self.name else self.name + named
        others = {name: value for name, value in function.items() if name not in ("name", "arguments")}
        if others:
            self.function.append(others)
        said = self.arguments.add(_text(function.get("arguments")))
        return ArgumentsDelta(self.place, self.id, self.name, said) if said else None

    def whole(self) -> dict[str, Any]:
        """The call as a whole answer has it."""
        others, rest = without_halves(merged(self.function)), without_halves(merged(self.rest))
        function = {"name": whole(self.name), "arguments": self.arguments.text, **others}
        return {"id": whole(self.id), "type": "function", "function": function, **rest}


class Calls:
    """The tool calls of an answer. Pieces are joined by index; where a server gives none, by id, else in order."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, pieces: list[dict[str, Any]]) -> list[ArgumentsDelta]:
        """Adds the pieces of one chunk; gives what they bring of arguments."""
        several = len(pieces) > 1
        deltas = [self._find(piece, place if several else None).take(piece) for place, piece in enumerate(pieces)]
        return [delta for delta in deltas if delta is not None]

    def whole(self) -> list[dict[str, Any]]:
        """The calls in order."""
        return [call.whole() for call in sorted(self._calls, key=lambda call: (call.index, call.place))]

    def _find(self, piece: dict[str, Any], place: int | None) -> _Call:
        index, call_id = piece.get("index"), _text(piece.get("id"))
        named = isinstance(piece.get("function"), dict) and bool(piece["function"].get("name"))
        if isinstance(index, int):
            # The latest with this index: servers that count every call as the first tell them apart by id.
            known = self._by_index.get(index)
            other = known is not None and named and call_id and known.id and call_id != known.id
            return self._add(index, call_id) if known is None or other else known
        if call_id:
            return self._by_id.get(call_id) or self._add(len(self._calls), call_id)
        if named or not self._calls:
            return self._add(len(self._calls), call_id)
        return self._calls[place] if place is not None and place < len(self._calls) else self._calls[-1]

    def _add(self, index: int, call_id: str) -> _Call:
        call = self._by_index[index] = _Call(index, len(self._calls))
        self._calls.append(call)
        if call_id:
            self._by_id[call_id] = call
        return call


def read_piece(data: str, where: Where) -> dict[str, Any]:
    """The object in one event's data; numbers keep all their digits. Raises `InvalidResponse`."""
    value, problem = None, "an event is not an object"
    try:
        value = json.loads(data, parse_float=_digits, parse_int=_integer)
    except (ValueError, RecursionError):
        problem = "an event is not JSON"
    if isinstance(value, dict):
        return value
    # Outside of the handler: the parser's error holds all of the event, and what it may say of a key.
    raise unreadable(where, problem, data)


def merged(pieces: Sequence[Any]) -> Any:
    """A value that came in pieces: text is joined, lists by `index` or one after the other, objects by name.

    They are joined once, when all are there, so that many pieces take no longer than one as long.
    """
    run: list[Any] = []
    for piece in pieces:
        if piece is None:
            continue
        if run and (type(piece) is not type(run[-1]) or not isinstance(piece, _CONTINUED)):
            run = []
        run.append(piece)
    if len(run) < 2:
        return run[0] if run else None
    if isinstance(run[0], str):
        return "".join(run)
    return _objects(run) if isinstance(run[0], dict) else _lists(run)


def without_halves(value: Any) -> Any:
    """JSON values without half surrogate pairs in their text."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): without_halves(item) for name, item in value.items()}
    return [without_halves(item) for item in value] if isinstance(value, list) else value


def _objects(pieces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {name: [value] for name, value in pieces[0].items()}
    for name, value in chain.from_iterable([piece.items() for piece in pieces[1:]]):
        if value is not None:
            values.setdefault(name, []).append(value)
    return {name: found[-1] if name in _LABELS else merged(found) for name, found in values.items()}


def _lists(pieces: Sequence[list[Any]]) -> list[Any]:
    groups = [[item] for item in pieces[0]]
    latest = {_index(group[0]): group for group in groups}
    for item in chain.from_iterable(pieces[1:]):
        index = _index(item)
        if index is not None and index in latest:
            latest[index].append(item)
        else:
            latest[index] = group = [item]
            groups.append(group)
    return [merged(group) for group in groups]


def _index(item: Any) -> int | str | None:
    index = item.get("index") if isinstance(item, dict) else None
    return index if isinstance(index, int | str) else None


def _text(value: Any) -> str:
    """A text as it is, an object as its JSON: some servers give arguments so."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(without_halves(value)).decode()


def _digits(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _integer(text: str) -> int | msgspec.Raw:
    return int(text) if len(text) < 19 else _digits(text)
