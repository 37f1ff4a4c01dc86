"""A difference between two sessions as lines for a person to read."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from handrail.filters.hand import hand
from handrail.sessions.differences import Change, Crossing, Difference, Lane, Pair, Row

_WIDTH = 140
_TALL = 12
"""Lines of a message that are shown."""
_AROUND = 40
"""Characters that are shown before the first that differs."""
_MARKS = {"removed": "-", "added": "+", "changed": "~"}
# What would move a terminal's cursor, turn its text around, or end a line.
_NOT_SHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def lines(difference: Difference) -> Iterator[str]:
    """What differs, lane by lane: `-` in the first alone, `+` in the second alone, `~` changed, with its fields."""
    return map(_shown, _lines(difference))


def change_lines(changes: Sequence[Change]) -> list[str]:
    """Fields that differ, a line each."""
    return [_shown(line) for line in _changed("", changes)]


def _shown(line: str) -> str:
    return _NOT_SHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _lines(difference: Difference) -> Iterator[str]:
    yield f"- {difference.a}"
    yield f"+ {difference.b}"
    if difference.same:
        yield "the same meaning"
        return
    for lane in difference.lanes:
        if not lane.same:
            yield from _lane(lane)
    crossings = [each for each in difference.crossings if each.pair.what != "same"]
    yield from ["boundaries"] if crossings else []
    for each in crossings:
        yield from _crossing(each)
    yield from _listed("agents", difference.agents)
    if difference.ends.what != "same":
        yield "at the end"
        yield from _changed("  ", difference.ends.changes)


def _lane(lane: Lane) -> Iterator[str]:
    if lane.a is None or lane.b is None:
        yield f"{lane.a or lane.b} (in the {'second' if lane.a is None else 'first'} alone)"
    else:
        yield lane.a
    yield from _rows("  ", lane.rows)
    for name, pairs in (("calls", lane.calls), ("turns", lane.turns), ("edits of the view", lane.edits)):
        yield from [f"  {line}" for line in _listed(name, pairs)]


def _rows(margin: str, rows: Sequence[Row]) -> Iterator[str]:
    same = 0
    for row in rows:
        if row.what == "same":
            same += 1
            continue
        if same:
            yield f"{margin}  {same} the same"
        same = 0
        yield from _row(margin, row)
    if same:
        yield f"{margin}  {same} the same"


def _row(margin: str, row: Row) -> Iterator[str]:
    side = row.a or row.b
    if side is None:
        return
    head, *body = hand([side.message]).splitlines()
    yield f"{margin}{_MARKS[row.what]} {_shortened(head)}{f' at line {side.line}' if side.line else ''}"
    if row.what == "changed":
        yield from _changed(f"{margin}    ", row.changes)
        return
    yield from [f"{margin}{_MARKS[row.what]}   {_shortened(line)}" for line in body[:_TALL]]
    if len(body) > _TALL:
        yield f"{margin}{_MARKS[row.what]}   … {len(body) - _TALL} more lines"


def _crossing(crossing: Crossing) -> Iterator[str]:
    pair = crossing.pair
    told = pair.a or pair.b or {}
    way = "->" if crossing.kind == "handoff" else "asks"
    seed = ""
    if pair.what != "changed":
        seed = f" ({told['crossed']} of {told['of']} messages)"
    yield f"  {_MARKS[pair.what]} {told['from']} {way} {told['to']}{seed}{_at(pair)}"
    yield from _changed("      ", pair.changes)
    if pair.what == "changed" and crossing.seed:
        yield "      seed"
        yield from _rows("        ", crossing.seed)


def _listed(name: str, pairs: Sequence[Pair]) -> Iterator[str]:
    differing = [pair for pair in pairs if pair.what != "same"]
    yield from [name] if differing else []
    for pair in differing:
        yield f"  {_MARKS[pair.what]} {_summed_up(pair)}{_at(pair)}"
        yield from _changed("      ", pair.changes)


def _summed_up(pair: Pair) -> str:
    told = pair.a or pair.b or {}
    for field in ("name", "status", "reason"):
        if told.get(field):
            more = _json(told["arguments"]) if "arguments" in told else ""
            return _shortened(f"{told[field]}{'' if told.get('made', True) else ', not made'} {more}".rstrip())
    return "without a reason"


def _at(pair: Pair) -> str:
    line = pair.a_line or pair.b_line
    return f" at line {line}" if line else ""


def _changed(margin: str, changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        a, b = _json(change.a), _json(change.b)
        start = _first_difference(a, b)
        yield f"{margin}{change.field}: {_shortened(a, start)} → {_shortened(b, start)}"


def _first_difference(a: str, b: str) -> int:
    same = next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return max(0, same - _AROUND)


def _json(value: Any) -> str:
    if value is msgspec.UNSET:
        return "(none)"
    return msgspec.json.encode(value).decode()


def _shortened(text: str, start: int = 0) -> str:
    before = "…" if start else ""
    text = text[start:]
    return before + (text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…")
