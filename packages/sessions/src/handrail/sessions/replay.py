"""Checking a session: that no line was touched, and that every handoff would hand over the same again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Literal

import msgspec

from handrail.filters import full
from handrail.filters.edges import Edge
from handrail.filters.errors import FilterError, FilterNotRunnable
from handrail.filters.messages import Message, Messages, digest
from handrail.filters.registry import from_descriptor
from handrail.filters.seals import Seal, seal
from handrail.sessions.codec import decode_sound
from handrail.sessions.crossings import NOT_RUN, Boundaries, Boundary
from handrail.sessions.errors import DamagedSession
from handrail.sessions.fitting import Fitting
from handrail.sessions.lines import ZEROS, Progress, each_line, follows, link, prev_of
from handrail.sessions.opening import open_to_read
from handrail.sessions.paths import name_of
from handrail.sessions.places import Given, located
from handrail.sessions.reader import SECOND_HEADER, Reading
from handrail.sessions.records import (
    AnyRecord,
    Footer,
    HandoffRecord,
    SubagentRecord,
    ToolResultRecord,
    Unknown,
    ViewRecord,
    asked_by,
)
from handrail.sessions.tails import footer_begins, was_footer
from handrail.sessions.tally import KINDS, kind_of
from handrail.sessions.verdicts import Drift, NotRunnable, State, Verdict

_SEALS = 256
_FITTING = frozenset({Unknown, ToolResultRecord, ViewRecord, SubagentRecord})


def verify(path: Given, *, progress: Progress | None = None, integrity_only: bool = False) -> Verdict:
    """Checks every line's link to the one before, the footer, and every handoff and sub-agent by running its filter
    again on the view that its source had.

    Integrity takes constant memory; the views, which `integrity_only=True` leaves out, some tens of bytes a message.
    `progress` is called now and then with the bytes read so far. Raises `OSError` for a file that cannot be opened or
    read, `NotASession` or `UnsupportedVersion`; what is wrong with a session is told in the verdict.
    """
    try:
        reading = Reading(located(path))
    except DamagedSession as error:
        return Verdict(
            path=error.path, state="damaged", sealed=False, counts={}, line=error.line, problem=error.problem
        )
    with open_to_read(reading.path) as file, open_to_read(reading.path, 1 << 13) as again:
        check = _Check(reading, None if integrity_only else _Again(again))
        check.run(file, progress)
    return check.verdict()


class _Check:
    """One pass over the lines."""

    def __init__(self, reading: Reading, boundaries: _Again | None) -> None:
        self.reading = reading
        self.boundaries = boundaries
        self.counts: dict[str, int] = {}
        self.broken: tuple[Literal["damaged", "tampered"], int, str] | None = None
        self.sealed = reading.sealed

    def run(self, file: BinaryIO, progress: Progress | None) -> None:
        """Reads every line, up to the first that is broken."""
        boundaries, counts = self.boundaries, self.counts
        lines = each_line(file, self.reading.end, progress)
        head, kind, number, line = ZEROS, "", 0, b""
        for number, offset, line in lines:
            try:
                footer = kind == "footer"
                record = decode_sound(line)
                kind = kind_of(record)
                if not follows(line, head, getattr(record, "prev", None)):
                    return self._unlinked(number, line, next(lines, None))
                if footer:
                    return self._tampered(number, "there is a record after the footer")
                if kind == "footer":
                    self._footer(number, record, head)
                    continue
                if kind == "header" and number > 1:
                    raise ValueError(SECOND_HEADER)
                if boundaries is not None:
                    boundaries.take(number, offset, record)
            except ValueError as error:
                self.broken = "damaged", number, str(error)
                return None
            counts[kind] = counts.get(kind, 0) + 1
            head = link(line)
        return self._look_at_end(number, line, kind)

    def _look_at_end(self, number: int, line: bytes, kind: str) -> None:
        # A sealed copy is there whole or not at all: no crash leaves one with a torn end.
        self.sealed = self.sealed or kind == "footer"
        torn = self.reading.torn
        if self.broken is not None:
            return
        if kind not in KINDS and was_footer(line):
            self._tampered(number, "it was a footer before it was changed")
        elif torn is not None and (self.sealed or self._footer_begins(torn.offset)):
            at = number if self.sealed else number + 1
            self.broken = "damaged", at, f"a sealed copy does not end like that: {torn}"

    def _footer_begins(self, offset: int) -> bool:
        with open_to_read(self.reading.path) as file:
            return footer_begins(file, offset)

    def _tampered(self, number: int, problem: str) -> None:
        self.broken = "tampered", number, problem

    def _unlinked(self, number: int, line: bytes, following: tuple[int, int, bytes] | None) -> None:
        # The line after this one tells which of the two was changed.
        if not prev_of(line):
            self._tampered(number, "it names no line before it, or several")
        elif number == 1 or (following is not None and prev_of(following[2]) != link(line)):
            self._tampered(number, "it was changed after it was written")
        else:
            self._tampered(
                number - 1, f"it was changed after it was written, or lines before line {number} are missing"
            )

    def _footer(self, number: int, footer: AnyRecord, head: str) -> None:
        footer = (footer.record or footer) if isinstance(footer, Unknown) else footer
        if not isinstance(footer, Footer):
            raise ValueError("its footer has no counts or no head")
        if footer.head != head:
            self._tampered(number, "the footer names another head than the last line's")
        elif footer.counts != self.counts:
            self._tampered(number, f"the footer counts {footer.counts}, the file holds {self.counts}")

    def verdict(self) -> Verdict:
        """The worst of what was found."""
        found = self.boundaries
        drifts = tuple(found.drifts) if found is not None else ()
        not_runnable = tuple(found.not_runnable) if found is not None else ()
        torn = self.reading.torn
        state: State = "intact"
        if self.broken is not None:
            state = self.broken[0]
        elif drifts:
            state = "drifted"
        elif not_runnable:
            state = "not runnable"
        elif torn is not None:
            state = "torn"
        return Verdict(
            path=self.reading.path,
            state=state,
            sealed=self.sealed,
            counts=self.counts,
            head=self.reading.head if self.broken is None else "",
            handoffs=found.number if found is not None else 0,
            run_again=found.run_again if found is not None else 0,
            edited=found.edited if found is not None else 0,
            line=self.broken[1] if self.broken is not None else None,
            problem=self.broken[2] if self.broken is not None else "",
            torn=torn,
            drifts=drifts,
            not_runnable=not_runnable,
        )


class _Again:
    """Every boundary as it comes, and the check of each against what its filter gives now."""

    def __init__(self, file: BinaryIO) -> None:
        self._boundaries = Boundaries(file, digests=True)
        self._fitting = Fitting(self._boundaries.views)
        self._seals: dict[bytes, Seal] = {}
        self.run_again = self.edited = 0
        self.drifts: list[Drift] = []
        self.not_runnable: list[NotRunnable] = []

    @property
    def number(self) -> int:
        """How many boundaries there were."""
        return self._boundaries.number

    def take(self, line: int, offset: int, record: AnyRecord) -> None:
        """Take in one record, and check it where it is a boundary, or its end."""
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
