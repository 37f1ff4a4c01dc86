"""A session read for what it means: what was said at each agent path, what was called, what crossed, how it ended."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from handrail.filters.hashes import sha256
from handrail.filters.messages import Message, Messages
from handrail.sessions.changes import key, meaning
from handrail.sessions.differences import Side
from handrail.sessions.paths import is_top, name_of
from handrail.sessions.records import (
    AgentRecord,
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
    ViewRecord,
    Writable,
)
from handrail.sessions.tracks import Fact, Track, answered
from handrail.sessions.usages import Spent, Usage
from handrail.sessions.views import Views

_NO_MEANING = ("kind", "prev", "batch", "at", "created_at")


class Boundary(msgspec.Struct):
    """A handoff or a sub-agent's call, its seed, and what is equal for seeds that mean the same."""

    kind: Literal["handoff", "subagent"]
    fact: Fact
    seed: Messages
    seed_key: bytes


class Meaning:
    """What a session means, gathered record by record."""

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {}
        self.boundaries: list[Boundary] = []
        self.agents: dict[str, Fact] = {}
        self._active: str | None = None
        self._state: dict[str, Any] = {}
        self._privates: dict[str, dict[str, Any]] = {}
        self._models: dict[str, int] = {}
        self._usage = Usage()
        self._spent = Spent()
        self._unknown: list[Any] = []
        self._views = Views()
        self._answers: dict[str, ModelCallRecord] = {}
        self._asked: dict[str, Boundary] = {}
        self._keys: dict[tuple[int, int | None], tuple[Message, bytes]] = {}

    def settled(self) -> Meaning:
        """The same, when there are no more records."""
        for track in self.tracks.values():
            track.settle()
        return self

    @property
    def ends(self) -> dict[str, Any]:
        """How the session ended, as JSON."""
        spent = msgspec.to_builtins(self._spent)
        return {
            "active_agent": self._active,
            "state": self._state,
            "private_states": self._privates,
            "models": self._models,
            "usage": msgspec.to_builtins(self._usage),
            "spent": {name: value for name, value in spent.items() if name != "usage"},
            "unknown_records": self._unknown,
        }

    def take(self, line: int, record: Writable) -> None:
        """Take in one record."""
        if isinstance(record, Unknown):
            self._unknown += _left_over(record)
            if record.record is None:
                return
            record = record.record
        if isinstance(record, HandoffRecord) or (isinstance(record, SubagentRecord) and record.event == "start"):
            self._cross(line, record)
        elif isinstance(record, ViewRecord):
            self._track(record.path).edits.append(Fact(self._edit(record), line))
            self._track(record.path).settle()
        self._views.take(record)
        self._note(line, record)

    def _note(self, line: int, record: Writable) -> None:
        match record:
            case MessageRecord(path=path) | ToolResultRecord(path=path):
                self._say(line, record)
                if self._active is None and is_top(path):
                    self._active = name_of(path)
            case ToolCallRecord(path=path):
                self._track(path).start(line, record)
            case ModelCallRecord():
                self._answers[record.message_id] = record
                self._models[record.model] = self._models.get(record.model, 0) + 1
                self._usage += record.usage
            case TurnRecord():
                self._turn(line, record)
            case SubagentRecord(event="end"):
                self._end(record)
            case StateRecord():
                self._write(record)
            case BudgetRecord():
                self._spent += record.spent
            case AgentRecord(name=name):
                told = _plain(record)
                del told["name"]
                self._introduce(name, told, line)
            case _:
                pass

    def _introduce(self, name: str, told: dict[str, Any], line: int) -> None:
        known = self.agents.get(name)
        if known is None:
            self.agents[name] = Fact(told, line)
            return
        # What it was told before counts too: runs were answered by that.
        earlier: list[Any] = known.told.get("earlier", [])
        last = {field: value for field, value in known.told.items() if field != "earlier"}
        if last != told:
            self.agents[name] = Fact({**told, "earlier": [*earlier, last]}, line)

    def _track(self, path: str) -> Track:
        track = self.tracks.get(path)
        if track is None:
            track = self.tracks[path] = Track(path)
        return track

    def _say(self, line: int, record: MessageRecord | ToolResultRecord) -> None:
        message = record.message
        asked = self._answers.pop(message.id, None) if message.role == "assistant" else None
        side = Side(
            message,
            line,
            model=asked.model if asked is not None else "",
            finish_reason=asked.finish_reason if asked is not None else "",
            request=_otherwise(asked) if asked is not None else {},
            aside=isinstance(record, MessageRecord) and record.aside,
            rejects=isinstance(record, MessageRecord) and record.rejects is not None,
        )
        self._track(record.path).say(side)

    def _turn(self, line: int, record: TurnRecord) -> None:
        if self._active is None and is_top(record.path):
            self._active = name_of(record.path)
        self._track(record.path).turn(line, record)

    def _cross(self, line: int, record: HandoffRecord | SubagentRecord) -> None:
        edge = self._views.edge(record)
        seed = self._views.seed(record, edge)
        told = {
            "from": record.source,
            "to": record.target,
            "notes": [msgspec.to_builtins(note) for note in record.notes],
            "filter": record.filter,
            "of": record.view_length,
            "crossed": len(seed),
        }
        if record.edited is not None:
            told["edited"] = True
        if isinstance(record, HandoffRecord):
            told |= {"active": record.active or record.target, "back": record.back, "returns": record.returns}
            if is_top(record.path):
                self._active = record.active or record.target
        kind: Literal["handoff", "subagent"] = "handoff" if isinstance(record, HandoffRecord) else "subagent"
        boundary = Boundary(kind, Fact(told, line), seed, self._seed_key(seed))
        self.boundaries.append(boundary)
        if kind == "subagent":
            self._asked[record.target_path] = boundary

    def _seed_key(self, seed: Messages) -> bytes:
        # Handoffs of one session let much the same messages cross, and each is looked at once.
        total = sha256()
        for message, answers in zip(seed, answered(seed), strict=True):
            known = self._keys.get((id(message), answers))
            if known is None:
                known = self._keys[id(message), answers] = message, sha256(key(meaning(message, answers))).digest()
            total.update(known[1])
        return total.digest()

    def _end(self, record: SubagentRecord) -> None:
        boundary = self._asked.pop(record.target_path, None)
        if boundary is not None:
            told = boundary.fact.told
            told |= {"status": record.status, "answer": record.answer, "usage": msgspec.to_builtins(record.usage)}
            told |= {"sensitivity": record.sensitivity, "returns": record.returns, "reworded": record.reworded}

    def _edit(self, record: ViewRecord) -> dict[str, Any]:
        history = self._views.history(record.path)
        inserted = {message.id for _, message in record.inserted}

        def held(id: str) -> dict[str, Any] | None:
            place = history.position(id)
            return None if place is None else meaning(history[place])

        return {
            "reason": record.reason,
            "removed": [held(each) for each in record.removed if each not in inserted],
            "moved": [held(each) for each in record.removed if each in inserted],
            "replaced": [{"was": held(each.id), "by": meaning(each)} for each in record.replaced],
            "inserted": [
                {"after": history.position(previous), "message": meaning(message)}
                for previous, message in record.inserted
            ],
        }

    def _write(self, record: StateRecord) -> None:
        if not is_top(record.path):
            return
        values = json.loads(bytes(record.values))
        if not record.layer:
            self._state.update(values)
        elif record.scope == "session":
            self._privates[f"{record.path} {record.layer}"] = values


def _plain(record: msgspec.Struct) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return {name: value for name, value in told.items() if name not in _NO_MEANING}


def _left_over(record: Unknown) -> list[Any]:
    """What of a line is not known here: the whole of another kind, or the further fields of a known one."""
    told = json.loads(record.line)
    known = record.record.__struct_fields__ if record.record is not None else ()
    rest = {name: value for name, value in told.items() if name not in (*_NO_MEANING, *known)}
    return [{"kind": record.kind, **rest}] if rest or record.record is None else []


def _otherwise(asked: ModelCallRecord) -> dict[str, Any]:
    told = {"instructions": asked.instructions or None, "tools": asked.tools, "settings": asked.settings}
    found = {name: value for name, value in told.items() if value is not None}
    return found if asked.output is None else {**found, "output": asked.output}
