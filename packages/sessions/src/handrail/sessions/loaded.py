"""What is known of a session as a whole once its records were gone through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from handrail.sessions.errors import DamagedSession
from handrail.sessions.lines import ZEROS
from handrail.sessions.paths import is_top, name_of
from handrail.sessions.records import (
    AgentRecord,
    BudgetRecord,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    StateRecord,
    ToolCallRecord,
    TurnRecord,
    Writable,
)
from handrail.sessions.usages import Spent, Usage
from handrail.sessions.views import Views

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.filters.views import View
    from handrail.sessions.reader import Reading

_NOTED = frozenset({HandoffRecord, AgentRecord, SessionRecord, TurnRecord, StateRecord, BudgetRecord})
"""What says something of the session as a whole, beside calls; most records do not."""


class States:
    """The state of a conversation so far: the `shared` one by channel, and the `privates` of middleware that live on,
    by agent path and middleware. What a sub-agent has is its own, and gone with it."""

    def __init__(self) -> None:
        self.shared: dict[str, Any] = {}
        self.privates: dict[tuple[str, str], dict[str, Any]] = {}

    def take(self, record: StateRecord) -> None:
        """Take in what was written."""
        if not is_top(record.path):
            return
        values = msgspec.json.decode(record.values)
        if record.layer and record.scope == "session":
            self.privates[record.path, record.layer] = values
        elif not record.layer:
            self.shared.update(values)


class Loaded:
    """What one pass over a session's records gives."""

    def __init__(self, reading: Reading | None) -> None:
        self.handoffs: list[HandoffRecord] = []
        self.agents: dict[str, AgentRecord] = {}
        self.usage = Usage()
        self._ended = Spent()
        self._open = [0, 0, 0]
        self.about: SessionRecord | None = None
        self.active: str | None = None
        self.states = States()
        self.head = reading.head if reading is not None else ZEROS
        self.torn = reading.torn if reading is not None else None
        self.later: list[Writable] = []
        """What was appended since, and is taken in when something is asked for or there is much of it."""
        self.views = self._read(reading) if reading is not None else {}

    def _read(self, reading: Reading) -> dict[str, View]:
        views = Views()
        for number, _, record in reading:
            try:
                views.take(record)
            except ValueError as error:
                raise DamagedSession(reading.path, number, str(error)) from None
            self.note(record)
        return views.now()

    @property
    def spent(self) -> Spent:
        """What the runs used. One that was killed has no record of it: its calls since the last one are counted."""
        ended, (steps, tool_calls, handoffs) = self._ended, self._open
        cost = ended.cost if ended.usage.requests == self.usage.requests else None
        return Spent(ended.steps + steps, ended.tool_calls + tool_calls, ended.handoffs + handoffs, self.usage, cost)

    def catch_up(self) -> None:
        """Take in what was appended."""
        if not self.later:
            return
        # What adds up is added up in a copy and comes in at once: an interrupt leaves all of it for later, or none.
        # The rest may come in twice: it is what was said last.
        ahead = object.__new__(Loaded)
        ahead.__dict__.update(self.__dict__)
        ahead.handoffs, ahead._open, ahead.later = [*self.handoffs], [*self._open], []
        ahead._take(self.later)
        self.__dict__.update(ahead.__dict__)

    def _take(self, records: Sequence[Writable]) -> None:
        usages = [self.usage]
        for record in records:
            # Calls are most of what says something, so they are taken in here.
            if type(record) is ModelCallRecord:
                usages.append(record.usage)
                self._open[0] += record.purpose == "answer"
            elif type(record) is ToolCallRecord:
                self._open[1] += record.attempt == 1
            elif type(record) in _NOTED or self.active is None:
                self.note(record)
        self.usage = Usage.total(usages)

    def note(self, record: Writable) -> None:
        """Take in what concerns the session as a whole."""
        match record:
            case ModelCallRecord():
                self.usage += record.usage
                self._open[0] += record.purpose == "answer"
            case ToolCallRecord():
                self._open[1] += record.attempt == 1
            case HandoffRecord():
                self.handoffs.append(record)
                self._open[2] += not record.back
                if is_top(record.path):
                    self.active = record.active or record.target
            case TurnRecord(path=path) | MessageRecord(path=path) if self.active is None and is_top(path):
                self.active = name_of(path)
            case BudgetRecord():
                self._ended += record.spent
                self._open = [0, 0, 0]
            case AgentRecord():
                self.agents[record.name] = record
            case SessionRecord():
                self.about = record
            case StateRecord():
                self.states.take(record)
            case _:
                pass
