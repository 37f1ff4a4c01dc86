"""The log of a replayed run: what it would have written is compared with what was written, and kept nowhere."""

import sys
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from handrail.agent.journals import Log
from handrail.agent.replay.differences import Difference, of_mappings, of_messages
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.failures import said_of
from handrail.agent.replay.playback import Playback
from handrail.filters import History, Message, digest
from handrail.filters.canonical import canonical
from handrail.filters.messages import Messages
from handrail.filters.sensitivity import judge, token
from handrail.sessions import (
    HandoffRecord,
    MessageRecord,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
)
from handrail.sessions.paths import is_top
from handrail.sessions.records import AnyRecord, asked_by

if TYPE_CHECKING:
    from handrail.agent.graphs import Graph
    from handrail.agent.runs import Run


class Watching(Log):
    """A log that writes nothing: each record is held beside the one that was written."""

    __slots__ = ("_begun", "_play", "run")

    def __init__(self, play: Playback, graph: "Graph") -> None:
        super().__init__(None, graph.descriptors)
        self.on, self.stage = True, self._watch
        self.run: Run | None = None
        """The run that is watched, once there is one."""
        self._play = play
        self._begun = False  # what was given to the run itself is written before its first turn

    def write(self, *records: AnyRecord) -> None:
        """Compares the records, as `stage` does."""
        for record in records:
            self._watch(record)

    def _watch(self, record: AnyRecord) -> None:
        if not self._play.stopped:
            self._take(record)

    def edit(self, path: str, before: History, after: History, reason: str) -> None:
        """What an edit makes of a view shows in the next request."""

    def _take(self, record: AnyRecord) -> None:
        run = self._play.run
        match record:
            case MessageRecord():
                queue = run.said.get(record.path)
                self._message("answer", record.path, queue.popleft() if queue else None, record.message)
            case ToolCallRecord() if record.attempt == 1:
                self._mark(record)
            case ToolResultRecord():
                key = record.path, record.message.call_id or ""
                results, marks = run.results.get(key), run.marks.get(key)
                result = results.popleft() if results else None
                if marks and result is not None and marks[0][0] < result[0]:
                    marks.popleft()
                self._message("result", record.path, result, record.message)
            case HandoffRecord() | SubagentRecord(event="start"):
                self._boundary(record)
            case SubagentRecord():
                self._play.came_back(record)
                returned = run.returned.get(asked_by(record))
                fields = [(line, _end(each)) for line, each in [returned.popleft()]] if returned else []
                self._fields("boundary", record.path, fields, _end(record))
            case TurnRecord(event="start"):
                self._begun = True
            case StateRecord(path=path, layer="") if self._begun and is_top(path):
                states = run.states.get(path)
                written = [(line, _written(each)) for line, each in [states.popleft()]] if states else []
                self._fields("state", path, written, _written(record))
            case TurnRecord(event="end"):
                ends = run.ends.get(record.path)
                told = [(line, _told(each)) for line, each in [ends.popleft()]] if ends else []
                self._fields("end", record.path, told, _told(record))
            case _:
                pass

    def _differs(self, what: str, path: str, line: int, differences: Sequence[Difference]) -> None:
        run = self._play.run.number
        self._play.differs(Divergence(what=what, run=run, path=path, line=line, differences=tuple(differences)))

    def _fails(self, path: str, line: int) -> None:
        # It is told while what went wrong is on its way.
        error = sys.exc_info()[1]
        if error is not None:
            problem = f"was another: it fails now with {said_of(error)}"
            run = self._play.run.number
            self._play.differs(Divergence(what="end", run=run, path=path, line=line, problem=problem))

    def _message(
        self, what: str, path: str, recorded: "tuple[int, MessageRecord | ToolResultRecord] | None", now: Message
    ) -> None:
        if recorded is None:
            self._play.missing(what, path, 0, "is not in the record")
            return
        line, record = recorded
        if now.synthetic and not record.message.synthetic:
            self._fails(path, line)
        self._play.clock.see(record.message.created_at)
        if not self._play.alike(record.message, now):
            by_id = self._play.comparing.by_id
            self._differs(what, path, line, list(of_messages((record.message,), (now,), by_id=by_id)))

    def _mark(self, record: ToolCallRecord) -> None:
        marks = self._play.run.marks.get((record.path, record.call_id))
        if not marks:
            self._play.missing("call", record.path, 0, f"of {record.name} is not in the record")
            return
        # It stays for who asks whether the call was approved, until its result is there.
        line, then = marks[0]
        sides = [{"name": each.name, "arguments": each.arguments, "key": each.key or ""} for each in (then, record)]
        if sides[0] != sides[1]:
            found = list(of_mappings("tool call", *sides))
            if self._is_secret(record):
                mark = token("secret")
                found = [Difference(each.where, mark, mark) for each in found]
            self._differs("call", record.path, line, found)

    def _is_secret(self, record: ToolCallRecord) -> bool:
        said = [message for (path, _), message in self._play.run.answers.items() if path == record.path]
        asked = [(message, part) for message in said for part in message.tool_calls if part.id == record.call_id]
        return any([judge(message, part) == "secret" for message, part in asked])

    def _boundary(self, record: HandoffRecord | SubagentRecord) -> None:
        play = self._play
        queue = play.run.boundaries.get(asked_by(record)) or deque()
        if not queue:
            to = f"from {record.source} to {record.target}"
            play.missing("boundary", record.path, record.step, f"{to} is not in the record")
            return
        boundary = queue.popleft()
        play.clock.see(boundary.record.at)
        play.cross(boundary, record, self._seed(record))

    def _seed(self, record: HandoffRecord | SubagentRecord) -> Messages:
        # The run has just noted what crosses; others may have crossed beside it since.
        key = record.path, record.call_id or "", record.target, record.seed
        for crossing in reversed(self.run.crossings if self.run is not None else ()):
            if (crossing.path, crossing.call_id, crossing.target, digest(crossing.seed)) == key:
                return crossing.seed
        raise AssertionError("a boundary is recorded when it was crossed")

    def _fields(
        self, what: str, path: str, recorded: Sequence[tuple[int, dict[str, str]]], now: dict[str, str]
    ) -> None:
        if not recorded:
            if what == "end" and self._play.goes_on(path):
                self._fails(path, 0)
            self._play.missing(what, path, 0, "is not in the record")
            return
        ((line, then),) = recorded
        if what == "end" and now["error"] and now["error"] != then["error"]:
            self._fails(path, line)
        if differences := list(of_mappings(what, then, now)):
            # What an agent answered, or a channel holds, may be a secret, and has no label here.
            is_told = {"end status", "end error", "boundary status"}
            shown = [each if each.where in is_told else Difference(each.where, "…", "…") for each in differences]
            self._differs(what, path, line, shown)


def _written(record: StateRecord) -> dict[str, str]:
    values = msgspec.json.decode(record.values)
    return {name: canonical(value).decode() for name, value in values.items()}


def _told(record: TurnRecord) -> dict[str, str]:
    return {"status": record.status, "error": record.error or ""}


def _end(record: SubagentRecord) -> dict[str, str]:
    return {"status": record.status, "answer": record.answer}
