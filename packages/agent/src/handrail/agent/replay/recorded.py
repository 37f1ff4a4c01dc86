"""The runs of a session as its records have them, read once: what each began with, what it asked and what it got."""

import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec

from handrail.agent.errors import ReplayRefused
from handrail.filters import History, Message, View, digest
from handrail.filters.messages import Messages
from handrail.sessions import (
    AgentRecord,
    AuditRecord,
    BudgetRecord,
    DamagedSession,
    Footer,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    Reading,
    Session,
    SessionRecord,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    ViewRecord,
    Views,
    read,
)
from handrail.sessions.lines import ZEROS, follows, link
from handrail.sessions.loaded import States
from handrail.sessions.paths import is_top, name_of
from handrail.sessions.places import Given
from handrail.sessions.records import AnyRecord, asked_by
from handrail.sessions.tally import kind_of, lines_by_kind

_T = TypeVar("_T")
Queue: TypeAlias = "deque[tuple[int, _T]]"
"""Records that are still to come, each with its line."""
_COUNTED = re.compile(r"(.+)-([1-9][0-9]*)\Z", re.DOTALL)
_BETWEEN = frozenset({AgentRecord, StateRecord, ViewRecord})
_CHANGED = "this line or the one before was changed after it was written"


class RecordedCall(msgspec.Struct, frozen=True):
    """A model call: its number among those for an answer in the session, from 1, its line and record, and the agent's
    view as it stood when it was made."""

    number: int
    line: int
    record: ModelCallRecord
    messages: History


class RecordedBoundary(msgspec.Struct, frozen=True):
    """A boundary: its number in the session from 1, its line and record, and what crossed."""

    number: int
    line: int
    record: HandoffRecord | SubagentRecord
    seed: Messages


class RecordedRun:
    """One run: what it began with, and what is still to come of it, in queues by agent path.

    `calls` are by path and purpose, `said` the messages by path, `marks` and `results` the tool calls by path and call
    id, `boundaries` by who asked for them, `ends` those of turns by path. `finished` is False for one that a crash cut
    off; `branches` counts what earlier runs with the same ids branched off.
    """

    def __init__(self, number: int, line: int, start: TurnRecord, begun: "_Begun") -> None:
        self.number, self.line = number, line
        self.id, self.agent = start.run, name_of(start.path)
        self.given = start.given
        self.views, self.state, self.privates = begun.views, begun.state, begun.privates
        self.values: dict[str, Any] = {}
        self.entered: list[Message] = []
        self.agents: dict[str, AgentRecord] = {}
        self.calls: dict[tuple[str, str], deque[RecordedCall]] = {}
        self.said: dict[str, Queue[MessageRecord]] = {}
        self.marks: dict[tuple[str, str], Queue[ToolCallRecord]] = {}
        self.results: dict[tuple[str, str], Queue[ToolResultRecord]] = {}
        self.boundaries: dict[str, deque[RecordedBoundary]] = {}
        self.returned: dict[str, Queue[SubagentRecord]] = {}
        self.ends: dict[str, Queue[TurnRecord]] = {}
        self.states: dict[str, Queue[StateRecord]] = {}
        self.denied: dict[tuple[str, str], str] = {}
        self.answers: dict[tuple[str, str], Message] = {}
        self.branches: Counter[str] = Counter()
        self.finished = False

    @property
    def prefix(self) -> tuple[str, int] | None:
        """What its ids begin with, and the number of its own; None where an application made them another way."""
        found = _COUNTED.match(self.id)
        return (found[1], int(found[2])) if found else None

    def places(self) -> set[int | str]:
        """Its boundaries by number, and its model calls as `step:7`."""
        calls = [call for (_, purpose), queue in self.calls.items() if purpose == "answer" for call in queue]
        numbers = [boundary.number for queue in self.boundaries.values() for boundary in queue]
        return {*numbers, *[f"step:{call.number}" for call in calls]}

    def left(self) -> RecordedCall | None:
        """The first model call that was not asked for again."""
        calls = [queue[0] for queue in self.calls.values() if queue]
        return min(calls, key=lambda call: call.line, default=None)


class _Begun(msgspec.Struct, frozen=True):
    """What stood when a run began."""

    views: dict[str, View]
    state: dict[str, Any]
    privates: dict[tuple[str, str], dict[str, Any]]


def runs_of(session: Session | Given) -> tuple[str, list[RecordedRun]]:
    """Where a session is, and its runs.

    Raises `OSError`, `NotASession`, `UnsupportedVersion`, `DamagedSession` at a line that is no record, was changed, or
    names what its session does not hold, and `ReplayRefused` where there is no run: it was imported, or is empty.
    """
    reading = session.reading() if isinstance(session, Session) else read(session)
    found = _Loading(reading)
    for number, record in _sound(reading):
        try:
            found.take(number, record)
        except ValueError as error:
            raise DamagedSession(reading.path, number, str(error)) from None
    if not found.runs:
        source = f"it was imported from {found.source}" if found.source else "its records are of no run"
        raise ReplayRefused(f"{reading.path}: there is nothing to run again: {source}")
    return str(reading.path), found.runs


def _sound(reading: Reading) -> Iterator[tuple[int, AnyRecord]]:
    """Each line's number and record, its link to the line before and the footer checked on the way."""
    head, counts = ZEROS, Counter[str]()
    for number, _, line, record in reading.lines():
        if not follows(line, head, getattr(record, "prev", None)):
            raise DamagedSession(reading.path, number, _CHANGED)
        known = record.record or record if type(record) is Unknown else record
        if type(known) is Footer:
            lines = lines_by_kind(counts, encrypted=reading.encrypted)
            if (known.head, known.counts) != (head, lines):
                raise DamagedSession(reading.path, number, "the footer is not that of this file")
        head = link(line)
        counts[kind_of(record)] += 1
        yield number, known


class _Loading:
    """One pass over the records."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.runs: list[RecordedRun] = []
        self.source = ""
        self._views = Views()
        self._states = States()
        self._agents: dict[str, AgentRecord] = {}
        self._branches: dict[str, Counter[str]] = {}
        self._before: list[AnyRecord] = []
        self._begun = _Begun({}, {}, {})
        self._run: RecordedRun | None = None
        self._open = self._boundary = self._step = 0
        self._total = self._left = 0
        self._entering = False
        self._over = True

    def take(self, line: int, record: AnyRecord) -> None:
        """Takes in one record. Raises `ValueError` where it names what the session does not hold."""
        # The first record of a batch says how many follow, each of those which one it is.
        batch: int = getattr(record, "batch", 0)
        self._total = batch if batch >= 0 else self._total
        self._left = self._total + min(batch, 0)
        if type(record) in _BETWEEN:
            if not self._before or (not self._over and type(record) is not StateRecord):
                self._begun = self._now()
            self._before.append(record)
        elif type(record) is TurnRecord and record.event == "start" and is_top(record.path):
            self._turn(line, record)
            self._before = []
        else:
            self._before = []
        if type(record) is TurnRecord and record.event == "end":
            self._ended(line, record)
        elif self._run is not None and not (type(record) is TurnRecord and is_top(record.path)):
            self._file(line, self._run, record)
        self._note(line, record)

    def _now(self) -> _Begun:
        return _Begun(self._views.now(), dict(self._states.shared), dict(self._states.privates))

    def _turn(self, line: int, record: TurnRecord) -> None:
        if self._run is None or self._over or record.run != self._run.id:
            begun = self._begun if self._before else self._now()
            run = self._run = RecordedRun(len(self.runs) + 1, line, record, begun)
            run.agents = dict(self._agents)
            for each in self._before if self._over else ():
                if isinstance(each, StateRecord) and not each.layer:
                    run.values |= msgspec.json.decode(each.values)
            if run.prefix is not None:
                run.branches = Counter(self._branches.setdefault(run.prefix[0], Counter()))
            self.runs.append(run)
            self._open, self._over, self._entering = 0, False, True
        self._open += 1

    def _ended(self, line: int, record: TurnRecord) -> None:
        if self._run is None:
            return
        self._run.ends.setdefault(record.path, deque()).append((line, record))
        if is_top(record.path):
            self._open -= 1
            if not self._open and record.status != "handed_over":
                self._run.finished = self._over = True

    def _file(self, line: int, run: RecordedRun, record: AnyRecord) -> None:
        """Puts a record where the run looks for it."""
        # The messages that a run is given are written in one batch with the start of its first turn.
        self._entering = self._entering and type(record) is MessageRecord
        match record:
            case MessageRecord():
                self._message(line, run, record)
            case ModelCallRecord():
                self._step += record.purpose == "answer"
                call = RecordedCall(self._step, line, record, self._views.history(record.path))
                run.calls.setdefault((record.path, record.purpose), deque()).append(call)
            case ToolCallRecord() if record.attempt == 1:
                run.marks.setdefault((record.path, record.call_id), deque()).append((line, record))
            case ToolResultRecord():
                key = record.path, record.message.call_id or ""
                run.results.setdefault(key, deque()).append((line, record))
            case SubagentRecord(event="end"):
                run.returned.setdefault(asked_by(record), deque()).append((line, record))
            case StateRecord(path=path, layer="") if is_top(path) and not self._over:
                run.states.setdefault(path, deque()).append((line, record))
            case AuditRecord(name="denied"):
                run.denied[record.path, record.call_id] = str(msgspec.json.decode(record.data).get("why", "no"))
            case AgentRecord():
                run.agents[record.name] = record
            case BudgetRecord() if record.run == run.id:
                run.finished = self._over = True
            case _:
                pass

    def _message(self, line: int, run: RecordedRun, record: MessageRecord) -> None:
        if self._entering:
            run.entered.append(record.message)
            self._entering = self._left > 0
        run.said.setdefault(record.path, deque()).append((line, record))
        if record.message.role == "assistant":
            run.answers[record.path, record.message.id] = record.message

    def _note(self, line: int, record: AnyRecord) -> None:
        """Takes in what the record does to views and state."""
        match record:
            case AgentRecord():
                self._agents[record.name] = record
            case SessionRecord():
                self.source = record.source or ""
            case StateRecord():
                self._states.take(record)
            case HandoffRecord() | SubagentRecord(event="start"):
                self._cross(line, record)
            case _:
                self._views.take(record)

    def _cross(self, line: int, record: HandoffRecord | SubagentRecord) -> None:
        self._boundary += 1
        seed = self._views.seed(record, self._views.edge(record))
        if digest(seed) != record.seed:
            raise ValueError("the messages that it names are not those whose digest it holds")
        self._views.enter(record, seed)
        run = self._run
        if run is None:
            return
        crossed = RecordedBoundary(self._boundary, line, record, seed)
        run.boundaries.setdefault(asked_by(record), deque()).append(crossed)
        if type(record) is SubagentRecord and is_top(record.path) and run.prefix is not None:
            name = f"{record.call_id}\0{record.part}" if record.part else record.call_id or ""
            self._branches[run.prefix[0]][name] += 1
