"""The boundaries of a session, found while its records are gone through: views are kept as they grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from handrail.filters.histories import History
from handrail.filters.messages import assistant, digest
from handrail.sessions.codec import decode
from handrail.sessions.crossings import Boundary, BoundaryRecord, Kind
from handrail.sessions.errors import DamagedSession
from handrail.sessions.lines import ZEROS, follows, link
from handrail.sessions.opening import open_to_read
from handrail.sessions.reader import Reading
from handrail.sessions.records import (
    AgentRecord,
    AnyRecord,
    AuditRecord,
    BudgetRecord,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
)
from handrail.sessions.views import Views

_SETTLE = 512
_CHANGED = "this line or the one before was changed after it was written"

QUIET = frozenset({ModelCallRecord, ToolCallRecord, TurnRecord, AgentRecord, AuditRecord, StateRecord, BudgetRecord})
"""What concerns no view; most lines of a run's journal are one of these."""


class Boundaries:
    """Reads records one by one, keeps every view as it grows, by offsets, and gives each boundary as it comes.

    The views take some tens of bytes a message; messages are read again from the file where they are needed. `digests`
    says whether the digests of views will be asked for: they are worked out while the messages are at hand. `views` are
    the views as they stand.
    """

    def __init__(self, file: BinaryIO, decode: Callable[[bytes], AnyRecord] = decode, *, digests: bool = False) -> None:
        from handrail.sessions.offsets import Offsets, Store

        self._store = Store(file, decode)
        self.views = Views(lambda: History.over(Offsets(self._store)))
        self._digests = digests
        self._unsettled = 0
        self._calls: dict[str, int] = {}
        self._awaited: dict[tuple[str, str], tuple[int, int, BoundaryRecord]] = {}
        self.number = 0

    def take(self, line: int, offset: int, record: AnyRecord) -> Boundary | None:
        """Take in one record, and give the boundary where it is one. Raises `ValueError` where it does not fit."""
        kind = type(record)
        if kind is Unknown:
            record = record.record or record  # type: ignore[union-attr]  # only Unknown has one
            kind = type(record)
        if kind is MessageRecord:
            self.say(offset, record)  # type: ignore[arg-type]  # its type was looked at
            return None
        if kind is ToolResultRecord:
            return self.answer(line, offset, record)  # type: ignore[arg-type]  # the same
        if kind in QUIET:
            return None
        if isinstance(record, HandoffRecord) or (isinstance(record, SubagentRecord) and record.event == "start"):
            return self._boundary(line, record)
        self.views.take(record)
        return self._ended(line, record) if isinstance(record, SubagentRecord) else None

    def say(self, offset: int, record: MessageRecord) -> None:
        """Take in a record of a message, which is what most are."""
        self._unsettled += 1
        if self._unsettled > _SETTLE:
            self._settle()
        self._store.see(offset, record.message)
        self.views.say(record)

    def say_all(self, offsets: Sequence[int], records: Sequence[MessageRecord]) -> None:
        """Take in some records of messages, one after the other."""
        self._unsettled += len(records)
        if self._unsettled > _SETTLE:
            self._settle(len(records))
        messages = [record.message for record in records]
        self._store.see_all(offsets, messages)
        self.views.say_all(records, messages)

    def answer(self, line: int, offset: int, record: ToolResultRecord) -> Boundary | None:
        """Take in a record of a result, and give the answer where it brings one back."""
        self._unsettled += 1
        if self._unsettled > _SETTLE:
            self._settle()
        self._store.see(offset, record.message)
        self.views.answer(record)
        return self._answer(line, record) if self._awaited else None

    def _settle(self, coming: int = 1) -> None:
        # What a view learns of a message it learns now and then, while the message is still at hand.
        self._unsettled = coming
        self._store.rest()
        for history in self.views.histories():
            history.survey()
            if self._digests:
                history.digest  # noqa: B018

    def _boundary(self, line: int, record: BoundaryRecord) -> Boundary:
        self.number += 1
        edge = self.views.edge(record)
        seed = self.views.seed(record, edge)
        kind: Kind = "subagent"
        if isinstance(record, HandoffRecord):
            kind = "handoff"
            if record.returns and record.call_id:
                self._awaited[record.path, record.call_id] = self.number, 0, record
        else:
            self._calls[record.target_path] = self.number
        self.views.enter(record, seed)
        return Boundary(self.number, line, kind, record.source, record.target, record, edge, seed)

    def number_of(self, record: SubagentRecord) -> int:
        """The number of the call that a sub-agent's end ends; 0 where its start was not there."""
        return self._calls.get(record.target_path, 0)

    def _ended(self, line: int, record: SubagentRecord) -> Boundary | None:
        number = self._calls.pop(record.target_path, None)
        if number is None or not record.answer or not record.call_id:
            return None
        if record.part:
            return _returned(number, line, record, record.answer, record.sensitivity)
        self._awaited[record.path, record.call_id] = number, line, record
        return None

    def _answer(self, line: int, result: ToolResultRecord) -> Boundary | None:
        # The label of what came back stands on the result alone. A line of 0: the result is the only line about it.
        message = result.message
        found = self._awaited.pop((result.path, message.call_id or ""), None)
        if found is None:
            return None
        number, ended, record = found
        return _returned(number, ended or line, record, message.text, message.sensitivity)


def _returned(number: int, line: int, record: BoundaryRecord, text: str, sensitivity: str | None) -> Boundary:
    answer = (assistant(text, agent=record.target, sensitivity=sensitivity),)
    return Boundary(number, line, "return", record.target, record.source, record, None, answer)


def counted(reading: Reading, counts: dict[str, int]) -> Iterator[Boundary]:
    """The boundaries of a session that is open for reading; `counts["messages"]` is kept up with its messages."""
    messages, head = 0, ZEROS
    with open_to_read(reading.place, 1 << 13) as again:
        found = Boundaries(again, reading.decode)
        for number, offset, line, record in reading.lines():
            if not follows(line, head, getattr(record, "prev", None)):
                raise DamagedSession(reading.path, number, _CHANGED)
            head = link(line)
            if type(record) is MessageRecord or type(record) is ToolResultRecord:
                messages += 1
                counts["messages"] = messages
            try:
                crossed = found.take(number, offset, record)
            except ValueError as error:
                raise DamagedSession(reading.path, number, str(error)) from None
            if crossed is not None:
                _check(reading, crossed)
                yield crossed


def _check(reading: Reading, crossed: Boundary) -> None:
    record = crossed.record
    if crossed.edge is not None and (digest(crossed.seed), len(crossed.seed)) != (record.seed, record.seed_length):
        problem = "the messages that it names are not those whose digest it holds"
        raise DamagedSession(reading.path, crossed.line, problem)
