"""Checking a session: that no line was touched, and that every handoff would hand over the same again."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from handrail.filters.edges import Edge
from handrail.filters.errors import FilterError, FilterNotRunnable
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, digest
from handrail.filters.registry import from_descriptor
from handrail.filters.seals import Seal
from handrail.sessions.codec import decode
from handrail.sessions.errors import DamagedSession
from handrail.sessions.lines import ZEROS, Progress, each_line, link, prev_of
from handrail.sessions.offsets import Offsets, Store
from handrail.sessions.reader import Reading
from handrail.sessions.records import (
    AnyRecord,
    Footer,
    HandoffRecord,
    MessageRecord,
    SubagentRecord,
    ToolResultRecord,
    Unknown,
)
from handrail.sessions.tally import kind_of
from handrail.sessions.verdicts import Drift, NotRunnable, State, Verdict
from handrail.sessions.views import Views

NOT_RUN = "not run"
_SETTLE = 256
_SEALS = 256


def verify(path: str | os.PathLike[str], *, progress: Progress | None = None, integrity_only: bool = False) -> Verdict:
    """Checks every line's link to the one before, the footer, and every handoff and sub-agent by running its filter
    again on the view that its source had.

    Integrity takes constant memory; the views, which `integrity_only=True` leaves out, some tens of bytes a message.
    `progress` is called now and then with the bytes read so far. Raises `NotASession` or `UnsupportedVersion`.
    """
    try:
        reading = Reading(Path(path))
    except DamagedSession as error:
        return Verdict(
            path=error.path, state="damaged", sealed=False, counts={}, line=error.line, problem=error.problem
        )
    with reading.path.open("rb") as file, reading.path.open("rb", buffering=1 << 13) as again:
        check = _Check(reading, None if integrity_only else _Boundaries(again))
        check.run(file, progress)
    return check.verdict()


class _Check:
    """One pass over the lines."""

    def __init__(self, reading: Reading, boundaries: "_Boundaries | None") -> None:
        self.reading = reading
        self.boundaries = boundaries
        self.counts: dict[str, int] = {}
        self.broken: tuple[Literal["damaged", "tampered"], int, str] | None = None

    def run(self, file: BinaryIO, progress: Progress | None) -> None:
        """Reads every line, up to the first that is broken."""
        boundaries, counts, read = self.boundaries, self.counts, _outline if self.boundaries is None else _record
        lines = each_line(file, self.reading.end, progress)
        head, kind = ZEROS, ""
        for number, offset, line in lines:
            try:
                footer = kind == "footer"
                prev, kind, record = read(line)
                if prev != head:
                    return self._unlinked(number, line, next(lines, None))
                if footer:
                    return self._tampered(number, "there is a record after the footer")
                if kind == "footer":
                    self._footer(number, decode(line), head)
                    continue
                if boundaries is not None and record is not None:
                    boundaries.take(number, offset, record)
            except ValueError as error:
                self.broken = "damaged", number, str(error)
                return None
            counts[kind] = counts.get(kind, 0) + 1
            head = link(line)
        return None

    def _tampered(self, number: int, problem: str) -> None:
        self.broken = "tampered", number, problem

    def _unlinked(self, number: int, line: bytes, following: tuple[int, int, bytes] | None) -> None:
        # The line after this one tells which of the two was changed.
        if number == 1 or (following is not None and prev_of(following[2]) != link(line)):
            self._tampered(number, "it was changed after it was written")
        else:
            self._tampered(
                number - 1, f"it was changed after it was written, or lines before line {number} are missing"
            )

    def _footer(self, number: int, footer: AnyRecord, head: str) -> None:
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
            sealed=self.reading.sealed,
            counts=self.counts,
            handoffs=found.number if found is not None else 0,
            line=self.broken[1] if self.broken is not None else None,
            problem=self.broken[2] if self.broken is not None else "",
            torn=torn,
            drifts=drifts,
            not_runnable=not_runnable,
        )


class _Outline(msgspec.Struct):
    prev: str = ""
    kind: str = ""


_decode_outline = msgspec.json.Decoder(_Outline).decode


def _outline(line: bytes) -> tuple[str, str, None]:
    try:
        outline = _decode_outline(line)
    except (msgspec.DecodeError, RecursionError):
        return prev_of(line), kind_of(decode(line)), None
    return outline.prev, outline.kind, None


def _record(line: bytes) -> tuple[str, str, AnyRecord]:
    record = decode(line)
    return (prev_of(line) if type(record) is Unknown else record.prev), kind_of(record), record


class _Boundaries:
    """Every view as it grows, by offsets, and the check of each boundary against it."""

    def __init__(self, file: BinaryIO) -> None:
        self._store = Store(file)
        self._views = Views(lambda: History.over(Offsets(self._store)))
        self._seals: dict[bytes, Seal] = {}
        self._unsettled = 0
        self.number = 0
        self.drifts: list[Drift] = []
        self.not_runnable: list[NotRunnable] = []

    def take(self, line: int, offset: int, record: AnyRecord) -> None:
        """Take in one record, and check it where it is a boundary."""
        kind = type(record)
        if kind is Unknown:
            record = record.record or record  # type: ignore[union-attr]  # only Unknown has one
            kind = type(record)
        if kind is MessageRecord or kind is ToolResultRecord:
            self._store.see(offset, record.message)  # type: ignore[union-attr]  # both have a message
            self._views.take(record)
            self._unsettled += 1
            if self._unsettled == _SETTLE:
                self._settle()
        elif isinstance(record, HandoffRecord) or (isinstance(record, SubagentRecord) and record.event == "start"):
            self._boundary(line, record)
        else:
            self._views.take(record)

    def _settle(self) -> None:
        # What a view learns of a message it learns now and then, while the message is still at hand.
        self._unsettled = 0
        for history in self._views.histories():
            history.survey()
            history.digest  # noqa: B018

    def _boundary(self, line: int, record: HandoffRecord | SubagentRecord) -> None:
        self.number += 1
        edge = self._views.edge(record)
        seed = self._views.seed(record, edge)
        at = self.number, line, record.source, record.target
        if (edge.view.digest, len(edge.view)) != (record.view, record.view_length):
            problem = f"it holds {len(edge.view)} messages here and held {record.view_length}, or others"
            self.drifts.append(Drift(*at, record.step, "view", problem=problem))
        elif (digest(seed), len(seed)) != (record.seed, record.seed_length):
            problem = "the messages that it names are not those whose digest it holds"
            self.drifts.append(Drift(*at, record.step, "record", problem=problem))
        elif record.edited != NOT_RUN:
            self._again(at, record, edge, seed)
        self._views.enter(record, seed)

    def _again(
        self, at: tuple[int, int, str, str], record: HandoffRecord | SubagentRecord, edge: Edge, seed: Messages
    ) -> None:
        try:
            again = self._seal(record).hand_over(edge.messages, record.notes, edge.view)
        except FilterNotRunnable as error:
            self.not_runnable.append(NotRunnable(*at, error.missing))
        except FilterError as error:
            self.drifts.append(Drift(*at, record.step, "seed", problem=f"the filter fails now: {error}"))
        else:
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
