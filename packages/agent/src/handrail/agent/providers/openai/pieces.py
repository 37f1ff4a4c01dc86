"""The pieces of a stream, joined: words, tool calls, and whatever else comes a bit at a time."""

import json
from typing import Any

import msgspec

from handrail.agent.http.failures import unreadable
from handrail.agent.http.secrets import Where
from handrail.agent.models import ArgumentsDelta
from handrail.filters.messages import whole

# Text under these names says which thing a piece belongs to; it is repeated, not continued.
_LABELS = frozenset({"type", "id", "index", "format", "role", "name"})


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
        self.rest: dict[str, Any] = {}
        self.function: dict[str, Any] = {}

    def take(self, piece: dict[str, Any]) -> ArgumentsDelta | None:
        """Adds a piece; gives what it brings of the arguments."""
        rest = {name: value for name, value in piece.items() if name not in ("index", "id", "type", "function")}
        self.rest = merge(self.rest, without_halves(rest))
        self.id = self.id or _text(piece.get("id"))
        function = piece.get("function")
        if not isinstance(function, dict):
            return None
        named = _text(function.get("name"))
        # A name comes whole at first; some servers repeat it with each piece, a few send it in pieces.
        self.name = self.name if named == self.name else self.name + named
        others = {name: value for name, value in function.items() if name not in ("name", "arguments")}
        self.function = merge(self.function, without_halves(others))
        said = self.arguments.add(_text(function.get("arguments")))
        return ArgumentsDelta(self.place, self.id, self.name, said) if said else None

    def whole(self) -> dict[str, Any]:
        """The call as a whole answer has it."""
        function = {"name": whole(self.name), "arguments": self.arguments.text, **self.function}
        return {"id": whole(self.id), "type": "function", "function": function, **self.rest}


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
    try:
        value = json.loads(data, parse_float=_digits, parse_int=_integer)
    except (ValueError, RecursionError):
        raise unreadable(where, "an event is not JSON", data) from None
    if not isinstance(value, dict):
        raise unreadable(where, "an event is not an object", data)
    return value


def merge(old: Any, new: Any) -> Any:
    """A value and the next piece of it: text is continued, lists joined by `index` or appended to, objects by name."""
    if old is None or new is None:
        return old if new is None else new
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, dict) and isinstance(new, dict):
        joined = {name: new[name] if name in _LABELS else merge(old.get(name), new[name]) for name in new}
        return {**old, **{name: value for name, value in joined.items() if value is not None}}
    if isinstance(old, list) and isinstance(new, list):
        for item in new:
            _join(old, item)
        return old
    return new


def without_halves(value: Any) -> Any:
    """JSON values without half surrogate pairs in their text."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): without_halves(item) for name, item in value.items()}
    return [without_halves(item) for item in value] if isinstance(value, list) else value


def _join(items: list[Any], item: Any) -> None:
    index = item.get("index") if isinstance(item, dict) else None
    for place in range(len(items) - 1, -1, -1) if index is not None else ():
        other = items[place]
        if isinstance(other, dict) and other.get("index") == index:
            items[place] = merge(other, item)
            return
    items.append(item)


def _text(value: Any) -> str:
    """A text as it is, an object as its JSON: some servers give arguments so."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(without_halves(value)).decode()


def _digits(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def _integer(text: str) -> int | msgspec.Raw:
    return int(text) if len(text) < 19 else _digits(text)
