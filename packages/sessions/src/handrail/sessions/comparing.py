"""Comparing two sessions by what they mean: lanes that stand for each other, their messages aligned, and the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.filters.messages import Messages, ToolCall
from handrail.sessions.changes import aligned, json_changes, key, meaning, message_changes
from handrail.sessions.differences import Crossing, Difference, Lane, Pair, Row, Side
from handrail.sessions.errors import DamagedSession, FormatError, NotASession
from handrail.sessions.interchange import parse_file, records_of
from handrail.sessions.meanings import Boundary, Meaning
from handrail.sessions.paths import name_of, scope_mark
from handrail.sessions.places import Given, Place, Where, located
from handrail.sessions.reader import read
from handrail.sessions.records import MessageRecord, ToolResultRecord, Writable
from handrail.sessions.tracks import Fact, Track, answered

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.session import Session


def compared(a: Given | Session, b: Given | Session, agent: str) -> Difference:
    """See `handrail.sessions.diff`."""
    one, two = _where(a), _where(b)
    first, second = _read(a, agent), _read(b, agent)
    return Difference(
        str(one),
        str(two),
        tuple(_lanes(first, second)),
        tuple(_crossings(first.boundaries, second.boundaries)),
        tuple(_agents(first.agents, second.agents)),
        _pair(Fact(first.ends, 0), Fact(second.ends, 0)),
    )


def _where(source: Given | Session) -> Where:
    return located(source) if isinstance(source, str | os.PathLike | Place) else source.path


def _read(source: Given | Session, agent: str) -> Meaning:
    where = _where(source)
    try:
        reading = read(where) if isinstance(source, str | os.PathLike | Place) else source.reading()
    except NotASession as refused:
        if isinstance(where, Place) or not refused.is_file:
            raise
        records = _foreign(where, agent)
    else:
        records = ((line, record) for line, _, record in reading)
    told, at = Meaning(), 0
    try:
        for at, record in records:
            told.take(at, record)
    except ValueError as error:
        raise DamagedSession(where, at, str(error)) from None
    return told.settled()


def _foreign(path: Path, agent: str) -> Iterator[tuple[int, Writable]]:
    known, transcripts = parse_file(path)
    if len(transcripts) != 1:
        raise FormatError(
            str(path), "one transcript", f"{len(transcripts)} of them; import it, and compare two sessions"
        )
    number = 0
    for record in records_of(transcripts[0], agent, known.name):
        number += isinstance(record, MessageRecord | ToolResultRecord)
        yield number, record


def _lanes(first: Meaning, second: Meaning) -> Iterator[Lane]:
    """The lanes in the order of the first, with those of the second alone at the end."""
    twins = _twins(first, second)
    for path, track in first.tracks.items():
        twin, rows = twins.get(path, ("", None))
        yield _lane(track, second.tracks.get(twin), tuple(_rows(track.said, ())) if rows is None else rows)
    taken = {twin for twin, _ in twins.values()}
    for path, track in second.tracks.items():
        if path not in taken:
            yield _lane(None, track, tuple(_rows((), track.said)))


def _twins(first: Meaning, second: Meaning) -> dict[str, tuple[str, tuple[Row, ...]]]:
    """For each path of the first the one that stands for it, if there is one, and their messages aligned.

    A path at the level of the session stands for itself. One in a sub-agent call stands for that of the same agent in
    the call that stands for it, where the callers' messages were aligned; one whose call nobody made for itself.
    """
    known: dict[str, tuple[str, tuple[Row, ...]]] = {}
    calls: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    asked = {(path, call) for path, track in first.tracks.items() for call in track.asked}
    orphans = {path for path in first.tracks if "/" in path and _scope(path)[:2] not in asked}
    for path in sorted(first.tracks, key=lambda path: (path.count("/"), path in orphans)):
        twin = path if path in orphans or "/" not in path else _twin(path, known, calls)
        if twin is None or twin not in second.tracks or twin in taken:
            continue
        rows = tuple(_rows(first.tracks[path].said, second.tracks[twin].said))
        known[path] = twin, rows
        taken.add(twin)
        for row in rows:
            if row.a is not None and row.b is not None and row.a.message.tool_calls:
                calls |= {(path, one): two for one, two in _call_ids(row.a, row.b)}
    return known


def _scope(path: str) -> tuple[str, str, str, str]:
    """The caller's path, the call, the name and the part, of a path in a sub-agent call."""
    caller, _, own = path.rpartition("/")
    name, _, mark = own.partition("@")
    call, _, part = mark.partition("@")
    return caller, call.replace("%2F", "/").replace("%40", "@").replace("%25", "%"), name, part


def _twin(path: str, known: Mapping[str, tuple[str, object]], calls: Mapping[tuple[str, str], str]) -> str | None:
    caller, call, name, part = _scope(path)
    if caller not in known or (caller, call) not in calls:
        return None
    return f"{known[caller][0]}/{name}{scope_mark(calls[caller, call])}{f'@{part}' if part else ''}"


def _call_ids(a: Side, b: Side) -> Iterator[tuple[str, str]]:
    one, two = a.message.tool_calls, b.message.tool_calls
    for i, j in aligned(_call_levels(one), _call_levels(two)):
        if i is not None and j is not None:
            yield one[i].id, two[j].id


def _call_levels(calls: Sequence[ToolCall]) -> list[list[Any]]:
    return [[(call.name, call.arguments) for call in calls], [call.name for call in calls]]


def _lane(a: Track | None, b: Track | None, rows: tuple[Row, ...]) -> Lane:
    first, second = a or Track(""), b or Track("")
    path = a.path if a is not None else second.path
    return Lane(
        name_of(path),
        a.path if a is not None else None,
        b.path if b is not None else None,
        rows,
        tuple(_pairs(first.calls, second.calls, ("name", "arguments"), ("name",))),
        tuple(_pairs(first.turns, second.turns, ("status",), ())),
        tuple(_pairs(first.edits, second.edits, ("reason",), ())),
    )


def _rows(a: Sequence[Side], b: Sequence[Side]) -> Iterator[Row]:
    first, second = [_meant(side) for side in a], [_meant(side) for side in b]
    keys, others = _levels(first), _levels(second)
    for i, j in aligned(keys, others):
        one, other = a[i] if i is not None else None, b[j] if j is not None else None
        if i is None or j is None:
            yield Row("added" if i is None else "removed", one, other)
            continue
        changes = () if keys[0][i] == others[0][j] else tuple(message_changes(first[i], second[j]))
        yield Row("changed" if changes else "same", one, other, changes)


def _meant(side: Side) -> dict[str, Any]:
    told = meaning(side.message, side.answers)
    for field in ("finish_reason", "aside", "rejects"):
        told[field] = getattr(side, field)
    return {**told, "request": side.request} if side.request else told


def _levels(told: list[dict[str, Any]]) -> list[list[Any]]:
    shapes = [(each["role"], each.get("agent"), each.get("name"), _called(each)) for each in told]
    return [[key(each) for each in told], shapes, [each["role"] for each in told]]


def _called(told: dict[str, Any]) -> tuple[str, ...]:
    return tuple([part["name"] for part in told["content"] if part["kind"] == "tool_call"])


def _pairs(a: Sequence[Fact], b: Sequence[Fact], *looser: tuple[str, ...]) -> Iterator[Pair]:
    """Facts aligned: those that are the same, then those with the same values in some fields."""
    first, second = [_fact_levels(facts, looser) for facts in (a, b)]
    for i, j in aligned(first, second):
        yield _pair(a[i] if i is not None else None, b[j] if j is not None else None)


def _fact_levels(facts: Sequence[Fact], looser: Iterable[tuple[str, ...]]) -> list[list[Any]]:
    told = [fact.told for fact in facts]
    return [[key(each) for each in told], *[[key([each.get(f) for f in fields]) for each in told] for fields in looser]]


def _pair(a: Fact | None, b: Fact | None) -> Pair:
    if a is None or b is None:
        one, two = a.told if a is not None else None, b.told if b is not None else None
        return Pair("added" if a is None else "removed", one, two, a.line if a else 0, b.line if b else 0)
    changes = tuple(json_changes(a.told, b.told))
    return Pair("changed" if changes else "same", a.told, b.told, a.line, b.line, changes)


def _crossings(a: Sequence[Boundary], b: Sequence[Boundary]) -> Iterator[Crossing]:
    for i, j in aligned(_boundary_levels(a), _boundary_levels(b)):
        one, two = a[i] if i is not None else None, b[j] if j is not None else None
        pair = _pair(one.fact if one else None, two.fact if two else None)
        seeds: tuple[Row, ...] = ()
        if one is None or two is None or one.seed_key != two.seed_key:
            seeds = tuple(_rows(_seed(one), _seed(two)))
            pair = msgspec.structs.replace(pair, what="changed") if pair.what == "same" else pair
        yield Crossing((one or b[j or 0]).kind, pair, seeds)


def _boundary_levels(side: Sequence[Boundary]) -> list[list[Any]]:
    strict, loose = _fact_levels([each.fact for each in side], [("from", "to")])
    return [
        [(told, each.kind, each.seed_key) for told, each in zip(strict, side, strict=True)],
        [(told, each.kind) for told, each in zip(loose, side, strict=True)],
    ]


def _seed(boundary: Boundary | None) -> list[Side]:
    seed: Messages = boundary.seed if boundary is not None else ()
    return [Side(message, answers=answers) for message, answers in zip(seed, answered(seed), strict=True)]


def _agents(a: dict[str, Fact], b: dict[str, Fact]) -> Iterator[Pair]:
    for name in [*a, *[name for name in b if name not in a]]:
        yield _pair(_named(name, a.get(name)), _named(name, b.get(name)))


def _named(name: str, fact: Fact | None) -> Fact | None:
    return Fact({"name": name, **fact.told}, fact.line) if fact is not None else None
