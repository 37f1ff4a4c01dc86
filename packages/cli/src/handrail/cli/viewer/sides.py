"""What differs between two sessions as a page: the first session on the left, the second on the right."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from handrail.cli.viewer.cards import indented
from handrail.filters import Message, Opaque, Reasoning, Refusal, Text, ToolCall
from handrail.sessions import Difference
from handrail.sessions.differences import Pair, Row, Side


class Cell(msgspec.Struct, omit_defaults=True):
    """One side of a line: who, on which line of the file (0 where it is on none), and in which words."""

    who: str
    line: int
    text: str


class Field(msgspec.Struct, omit_defaults=True):
    """A field that differs, with its JSON on either side; None where a side has no such field."""

    name: str
    a: str | None = None
    b: str | None = None


class Line(msgspec.Struct, omit_defaults=True):
    """Two things that stand for each other, or one that stands alone."""

    what: str
    a: Cell | None = None
    b: Cell | None = None
    fields: list[Field] = []


class Block(msgspec.Struct, omit_defaults=True):
    """What is compared together, such as all that one agent said."""

    title: str
    lines: list[Line]
    agent: str = ""


class Sides(msgspec.Struct, omit_defaults=True):
    """All that the page of a difference shows."""

    a: str
    b: str
    same: bool
    blocks: list[Block]


def sides(difference: Difference) -> Sides:
    """The page's data for a difference."""
    return Sides(difference.a, difference.b, difference.same, [block for block in _blocks(difference) if block.lines])


def _blocks(difference: Difference) -> Iterator[Block]:
    for lane in difference.lanes:
        path = lane.a or lane.b or lane.agent
        yield Block(f"{path}: what was said", _said(lane.rows), lane.agent)
        yield Block(f"{path}: model calls", _pairs(lane.calls), lane.agent)
        yield Block(f"{path}: turns", _pairs(lane.turns), lane.agent)
        yield Block(f"{path}: edits of the view", _pairs(lane.edits), lane.agent)
    for number, each in enumerate(difference.crossings, 1):
        name = "handoff" if each.kind == "handoff" else "sub-agent"
        yield Block(f"crossing {number}, a {name}", [*_pairs([each.pair]), *_said(each.seed)])
    yield Block("agents", _pairs(difference.agents))
    yield Block("how they ended", _pairs([difference.ends]))


def _said(rows: Iterable[Row]) -> list[Line]:
    return [Line(row.what, _spoken(row.a), _spoken(row.b), _fields(row)) for row in rows]


def _pairs(pairs: Iterable[Pair]) -> list[Line]:
    lines = [
        Line(pair.what, _object(pair.a, pair.a_line), _object(pair.b, pair.b_line), _fields(pair)) for pair in pairs
    ]
    return [line for line in lines if line.a is not None or line.b is not None or line.fields]


def _object(value: dict[str, Any] | None, line: int) -> Cell | None:
    return Cell("", line, indented(value)) if value else None


def _fields(row: Row | Pair) -> list[Field]:
    return [Field(change.field, _json(change.a), _json(change.b)) for change in row.changes]


def _json(value: Any) -> str | None:
    if value is msgspec.UNSET:
        return None
    return value if isinstance(value, str) else indented(value)


def _spoken(side: Side | None) -> Cell | None:
    if side is None:
        return None
    message = side.message
    who = f"result of {message.name or message.call_id}" if message.role == "tool" else message.agent or message.role
    return Cell(who, side.line, _words(message))


def _words(message: Message) -> str:
    words: list[str] = []
    for part in message.content:
        match part:
            case Text() | Refusal():
                words.append(part.text)
            case Reasoning():
                words.append(f"[reasoning] {part.text}")
            case ToolCall():
                words.append(f"→ {part.name} {part.arguments or '{}'}")
            case Opaque():
                words.append(f"[{part.provider} {part.type}] {part.data}")
            case _:
                words.append(f"[{type(part).__name__.lower()}] {part.name or part.url or part.media_type or ''}")
    return "\n".join(words)
