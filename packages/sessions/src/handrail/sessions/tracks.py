"""What was said at one agent path, in the order of its calls, and what was done there."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from handrail.filters.messages import Message
from handrail.sessions.changes import read_json
from handrail.sessions.differences import Side
from handrail.sessions.records import ToolCallRecord, TurnRecord


class Fact(msgspec.Struct):
    """Something that is no message: what it means, as JSON, and the line it begins at."""

    told: dict[str, Any]
    line: int


class Track:
    """What was said at one agent path, and what was done there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.said: list[Side] = []
        self.calls: list[Fact] = []
        self.turns: list[Fact] = []
        self.edits: list[Fact] = []
        self._turns: dict[str, Fact] = {}
        self._asked: dict[str, Fact] = {}
        self._waiting: dict[str, list[int]] = {}
        self._results: list[Side] = []

    def say(self, side: Side) -> None:
        """One more message. The results of a response are put in the order of its calls."""
        message = side.message
        place = take_place(self._waiting, message)
        if place is not None:
            self._results.append(msgspec.structs.replace(side, answers=place))
            if not self._waiting:
                self.settle()
        else:
            self.settle()
            self.said.append(side)
        if message.role == "assistant" and message.tool_calls:
            self._waiting = waiting_of(message)
            self._ask(message, side.line)
        if message.role == "tool" and (fact := self._asked.get(message.call_id or "")) is not None:
            fact.told["made"] = fact.told["made"] or not message.synthetic
            fact.told["result"] = "failed" if message.is_error else "synthetic" if message.synthetic else "given"

    @property
    def asked(self) -> Iterator[str]:
        """The ids of all calls that were asked for."""
        return (call.id for side in self.said for call in side.message.tool_calls)

    def _ask(self, message: Message, line: int) -> None:
        for call in message.tool_calls:
            if not call.transfer:
                told = {"name": call.name, "arguments": read_json(call.arguments), "made": False}
                fact = self._asked[call.id] = Fact(told, line)
                self.calls.append(fact)

    def settle(self) -> None:
        """The response that was being answered is over."""
        if self._results:
            self.said += sorted(self._results, key=lambda side: side.answers or 0)
            self._results = []
        self._waiting = {}

    def turn(self, line: int, record: TurnRecord) -> None:
        """A turn began, or ended."""
        fact = self._turns.pop(record.run, None) if record.event == "end" else None
        if fact is None:
            fact = self._turns[record.run] = Fact({"status": "not ended"}, line)
            self.turns.append(fact)
        if record.event == "end":
            told = {"status": record.status, "steps": record.steps, "usage": msgspec.to_builtins(record.usage)}
            fact.told = told if record.error is None else {**told, "error": record.error}

    def start(self, line: int, record: ToolCallRecord) -> None:
        """The start mark of a call."""
        fact = self._asked.get(record.call_id)
        if fact is None:
            fact = self._asked[record.call_id] = Fact({"name": record.name, "made": True}, line)
            self.calls.append(fact)
        fact.told["made"] = True
        if record.attempt > 1:
            fact.told["attempts"] = record.attempt
        executed = read_json(record.arguments)
        if fact.told.get("arguments") != executed:
            fact.told["executed"] = executed


def waiting_of(message: Message) -> dict[str, list[int]]:
    """The places of a response's calls, by id, the first one last."""
    waiting: dict[str, list[int]] = {}
    for place, call in reversed(list(enumerate(message.tool_calls))):
        waiting.setdefault(call.id, []).append(place)
    return waiting


def take_place(waiting: dict[str, list[int]], message: Message) -> int | None:
    """The place of the call that a result answers, which waits no longer; None for what answers none."""
    places = waiting.get(message.call_id or "") if message.role == "tool" else None
    if not places:
        return None
    place = places.pop()
    if not places:
        del waiting[message.call_id or ""]
    return place


def answered(messages: Sequence[Message]) -> list[int | None]:
    """For each message the place of the call that it answers, in the last response; None for one that answers none."""
    waiting: dict[str, list[int]] = {}
    places: list[int | None] = []
    for message in messages:
        places.append(take_place(waiting, message))
        if message.role == "assistant":
            waiting = waiting_of(message)
    return places
