"""The boundaries of a session run again: each filter, built from its descriptor, on the view that its source had."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import BinaryIO

import msgspec

from handrail.filters import full
from handrail.filters.edges import Edge
from handrail.filters.errors import FilterError, FilterNotRunnable
from handrail.filters.messages import Message, Messages, digest
from handrail.filters.registry import from_descriptor
from handrail.filters.seals import Seal, seal
from handrail.sessions.boundaries import QUIET, Boundaries
from handrail.sessions.crossings import NOT_RUN, Boundary
from handrail.sessions.fitting import Fitting
from handrail.sessions.paths import name_of
from handrail.sessions.records import (
    AnyRecord,
    HandoffRecord,
    MessageRecord,
    SubagentRecord,
    ToolResultRecord,
    Unknown,
    ViewRecord,
    asked_by,
)
from handrail.sessions.verdicts import Drift, NotRunnable

_SEALS = 256
_FITTING = frozenset({Unknown, ViewRecord, SubagentRecord})


class Again:
    """Every boundary as it comes, and the check of each against what its filter gives now."""

    def __init__(self, file: BinaryIO, decode: Callable[[bytes], AnyRecord]) -> None:
        self._boundaries = Boundaries(file, decode, digests=True)
        self._fitting = Fitting(self._boundaries.views)
        self._seals: dict[bytes, Seal] = {}
        self.run_again = self.edited = 0
        self.drifts: list[Drift] = []
        self.not_runnable: list[NotRunnable] = []
        self.line = 0
        """The line whose record was taken in last, or did not fit."""

    @property
    def number(self) -> int:
        """How many boundaries there were."""
        return self._boundaries.number

    def take_all(self, number: int, offsets: Sequence[int], records: Sequence[AnyRecord]) -> None:
        """Take in the records of some lines, of which the first has this number, and check each that is a boundary, or
        its end. Raises `ValueError` at one that does not fit, which `line` tells."""
        lines: Sequence[int] = range(number, number + len(records))
        kinds = list(map(type, records))
        if not QUIET.isdisjoint(kinds):
            heard = [kind not in QUIET for kind in kinds]
            lines, offsets = list(compress(lines, heard)), list(compress(offsets, heard))
            records, kinds = list(compress(records, heard)), list(compress(kinds, heard))
        said = 0
        for at in [at for at, kind in enumerate(kinds) if kind is not MessageRecord]:
            self.line = lines[at]
            if at > said:
                self._say(offsets[said:at], records[said:at])  # type: ignore[arg-type]  # their types were looked at
            said = at + 1
            self._take(self.line, offsets[at], records[at])
        if said < len(records):
            self.line = lines[said]
            self._say(offsets[said:], records[said:])  # type: ignore[arg-type]  # the same

    def _say(self, offsets: Sequence[int], records: Sequence[MessageRecord]) -> None:
        if len(records) == 1:
            self._boundaries.say(offsets[0], records[0])
        else:
            self._boundaries.say_all(offsets, records)

    def _take(self, line: int, offset: int, record: AnyRecord) -> None:
        if type(record) is ToolResultRecord:
            self._result(line, record)
            self._boundaries.answer(line, offset, record)
            return
        if type(record) in _FITTING:
            self._fit(line, record)
        found = self._boundaries.take(line, offset, record)
        if found is not None and found.edge is not None:
            self._check(found, found.edge)

    def _fit(self, line: int, record: AnyRecord) -> None:
        kind = type(record)
        if kind is Unknown:
            record = record.record or record  # type: ignore[union-attr]  # only Unknown has one
            kind = type(record)
        if kind is ToolResultRecord:
            self._result(line, record)  # type: ignore[arg-type]  # its type was looked at
        elif kind is ViewRecord:
            self._fitting.edited(record)  # type: ignore[arg-type]  # the same
        elif kind is SubagentRecord and record.event == "end":  # type: ignore[union-attr]  # the same
            self._end(line, record)  # type: ignore[arg-type]  # the same

    def _result(self, line: int, record: ToolResultRecord) -> None:
        if problem := self._fitting.result(record):
            name = record.message.name or ""
            self.drifts.append(Drift(0, line, name_of(record.path), name, 0, "record", record.message.id, "", problem))

    def _end(self, line: int, record: SubagentRecord) -> None:
        number = self._boundaries.number_of(record)
        if problem := self._fitting.end(record):
            drift = Drift(number, line, record.source, record.target, record.step, "record", problem=problem)
            self.drifts.append(drift)

    def _check(self, found: Boundary, edge: Edge) -> None:
        record, seed = found.record, found.seed
        at = found.number, found.line, record.source, record.target
        self.edited += record.edited is not None
        if problem := self._fitting.boundary(record, edge):
            self.drifts.append(Drift(*at, record.step, "record", problem=problem))
        elif (edge.view.digest, len(edge.view)) != (record.view, record.view_length):
            problem = f"it holds {len(edge.view)} messages here and held {record.view_length}, or others"
            self.drifts.append(Drift(*at, record.step, "view", problem=problem))
        elif (digest(seed), len(seed)) != (record.seed, record.seed_length):
            problem = "the messages that it names are not those whose digest it holds"
            self.drifts.append(Drift(*at, record.step, "record", problem=problem))
        elif record.edited is not None and not _is_sealed(record, edge, seed):
            self.drifts.append(Drift(*at, record.step, "seed", problem=_UNSEALED))
        elif record.edited != NOT_RUN:
            self._again(at, record, edge, seed)

    def _again(
        self, at: tuple[int, int, str, str], record: HandoffRecord | SubagentRecord, edge: Edge, seed: Messages
    ) -> None:
        try:
            sealed = self._seal(record)
            if type(record) is HandoffRecord and record.back:
                again = sealed.back(edge.messages)
            else:
                again = sealed.hand_over(edge.messages, record.notes, edge.view, asked_by=asked_by(record))
        except FilterNotRunnable as error:
            self.not_runnable.append(NotRunnable(*at, error.missing))
        except FilterError as error:
            self.run_again += 1
            self.drifts.append(Drift(*at, record.step, "seed", problem=f"the filter fails now: {error}"))
        else:
            self.run_again += 1
            if digest(again) != (record.edited or record.seed):
                message, field, problem = _difference(seed, again) if record.edited is None else ("", "", _EDITED)
                self.drifts.append(Drift(*at, record.step, "seed", message, field, problem))

    def _seal(self, record: HandoffRecord | SubagentRecord) -> Seal:
        # A session's boundaries have few filters, and each is built once.
        key = msgspec.json.encode(record.filter)
        known = self._seals.get(key)
        if known is None:
            filter = from_descriptor(record.filter)
            if not isinstance(filter, Seal):
                kind, version = record.filter.get("kind"), record.filter.get("version")
                raise FilterNotRunnable(record.filter, f"its filter is not sealed but {kind!r} version {version!r}")
            if len(self._seals) >= _SEALS:
                self._seals.clear()
            known = self._seals[key] = filter
        return known


def _is_sealed(record: HandoffRecord | SubagentRecord, edge: Edge, seed: Messages) -> bool:
    """Whether the seal would let a seed pass that a hook gave: it was sealed once more before it crossed."""
    try:
        back = type(record) is HandoffRecord and record.back
        again = _FULL.back(seed) if back else _FULL.hand_over(seed, (), edge.view)
    except FilterError:
        return False
    return digest(again) == record.seed


_FULL = seal(full())
_UNSEALED = "it is said that a hook changed it, and no hook can hand over what the seal would not"
_EDITED = "the filter gives other messages than those that a hook then changed"


def _difference(recorded: Messages, again: Messages) -> tuple[str, str, str]:
    """The first message that differs, the field, and how: in a few words, without its content."""
    for old, new in zip(recorded, again, strict=False):
        if old.digest == new.digest:
            continue
        if old.id != new.id:
            return old.id, "", f"{new.id} crosses in its place now"
        return old.id, _field(old, new), "it crosses with another value now"
    if len(recorded) > len(again):
        return recorded[len(again)].id, "", "it crossed and does not cross now"
    return again[len(recorded)].id, "", "it did not cross and crosses now"


def _field(old: Message, new: Message) -> str:
    names: Sequence[str] = old.__struct_fields__
    return next((name for name in names if getattr(old, name) != getattr(new, name)), "")
