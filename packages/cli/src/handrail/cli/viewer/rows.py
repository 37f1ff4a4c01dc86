"""Records as rows: results stand with their calls, model calls with their answers, boundaries as cards."""

from decimal import Decimal
from functools import cache

import msgspec

from handrail.cli.viewer.cards import bare_card, card
from handrail.cli.viewer.lanes import Lanes
from handrail.cli.viewer.notes import note
from handrail.cli.viewer.shapes import AnyRow, BoundaryRow, Call, CallRow, Ending, MessageRow, NoteRow
from handrail.filters import Message, ToolCall
from handrail.filters.canonical import canonical_text
from handrail.filters.messages import Audio, File, Image, Part
from handrail.sessions import (
    Boundary,
    HandoffRecord,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    Unknown,
    Usage,
    Views,
)
from handrail.sessions.crossings import Kind
from handrail.sessions.records import AnyRecord


class Prices:
    """What model calls cost in US dollars, by the price list that is installed."""

    def __init__(self) -> None:
        self.total = Decimal()
        self.known = 0

    def take(self, model: str, usage: Usage) -> float | None:
        """The price of one call, which is added up; None where it is not known."""
        from handrail.agent.prices import price

        if not usage.total_tokens or not _is_priced(model):
            return None
        cost = price(model, usage)
        if cost is None:
            return None
        self.total += cost
        self.known += 1
        return float(cost)


@cache
def _is_priced(model: str) -> bool:
    from handrail.agent.prices import is_priced

    return is_priced(model)


class Rows:
    """The rows of the records so far. Every view is kept, so that each boundary is explained as it comes."""

    def __init__(self, counter: str) -> None:
        self.lanes = Lanes()
        self.prices = Prices()
        self.about: SessionRecord | None = None
        self.subagents = 0
        self.begun = self.ended = 0
        self._counter = counter
        self._rows: list[AnyRow] = []
        self._views = Views()
        self._number = 0
        self._calls: dict[str, CallRow] = {}
        self._open: dict[tuple[str, str], list[tuple[MessageRow, int]]] = {}
        self._cards: dict[str, BoundaryRow] = {}
        self._awaited: dict[tuple[str, str], BoundaryRow] = {}
        self._merged: set[int] = set()
        self._agents: dict[str, object] = {}

    def add(self, row: AnyRow) -> None:
        """One more row."""
        self._rows.append(row)

    def done(self) -> list[AnyRow]:
        """All rows."""
        if not self._merged:
            return self._rows
        # A model call that stands with its answer has no row of its own; lanes are counted in rows that are left.
        left = [0]
        for row in self._rows:
            left.append(left[-1] + (id(row) not in self._merged))
        self.lanes.renumber(left)
        return [row for row in self._rows if id(row) not in self._merged]

    def take(self, line: int, record: AnyRecord) -> None:
        """Take in one record. One that names what its session does not hold becomes a note that says so."""
        known = record.record if isinstance(record, Unknown) and record.record is not None else record
        try:
            self._take(line, known)
        except ValueError as error:
            self.add(NoteRow(line=line, what="broken", head=f"this record does not fit: {error}", bad=True))

    def _take(self, line: int, record: AnyRecord) -> None:
        match record:
            case MessageRecord():
                self._said(line, record)
            case ToolResultRecord():
                self._result(line, record)
            case ModelCallRecord():
                self._called(line, record)
            case ToolCallRecord():
                self._started(record)
            case HandoffRecord():
                self._boundary(line, record)
            case SubagentRecord(event="start"):
                self._boundary(line, record)
            case SubagentRecord():
                self._ended(line, record)
            case _:
                if isinstance(record, SessionRecord):
                    self.about = record
                if (row := note(line, record, self._agents)) is not None:
                    path = getattr(record, "path", None)
                    row.lane = self._lane(path) if path is not None else self._last_lane()
                    self._seen(row.at)
                    self.add(row)
                self._views.take(record)

    def _lane(self, path: str) -> int:
        return self.lanes.place(path, len(self._rows))

    def _last_lane(self) -> int:
        return self._rows[-1].lane if self._rows else -1

    def _seen(self, at: int | None) -> None:
        if at:
            self.begun, self.ended = min(self.begun or at, at), max(self.ended, at)

    def _said(self, line: int, record: MessageRecord) -> None:
        message = record.message
        row = MessageRow(
            line=line,
            lane=self._lane(record.path),
            message=_light(message),
            aside=record.aside,
            rejects=record.rejects is not None,
        )
        self.lanes[row.lane].messages += 1
        self._seen(message.created_at)
        if message.id and (call := self._calls.pop(message.id, None)) is not None:
            row.call = call.call
            self._merged.add(id(call))
        if message.role == "assistant":
            for place, part in enumerate(message.content):
                if type(part) is ToolCall:
                    self._open.setdefault((record.path, part.id), []).append((row, place))
        self.add(row)
        self._views.take(record)

    def _result(self, line: int, record: ToolResultRecord) -> None:
        message = record.message
        self._seen(message.created_at)
        key = record.path, message.call_id or ""
        waiting = self._open.get(key)
        lane = self._lane(record.path)
        self.lanes[lane].messages += 1
        if waiting:
            row, place = waiting.pop()
            row.results[place] = _light(message)
            row.edited = row.edited or record.edited
        else:
            self.add(MessageRow(line=line, lane=lane, message=_light(message), edited=record.edited))
        if (awaited := self._awaited.pop(key, None)) is not None:
            awaited.returned = message.id
        self._views.take(record)

    def _called(self, line: int, record: ModelCallRecord) -> None:
        usage = record.usage
        call = Call(
            model=record.model,
            step=record.step,
            attempt=record.attempt,
            purpose=record.purpose,
            input=usage.input_tokens,
            output=usage.output_tokens,
            cached=usage.cached_tokens,
            reasoning=usage.reasoning_tokens,
            cost=self.prices.take(record.model, usage),
            finish=record.finish_reason,
            error=record.error or "",
        )
        row = CallRow(line=line, lane=self._lane(record.path), call=call)
        self.lanes[row.lane].tokens += usage.total_tokens
        if record.message_id:
            self._calls[record.message_id] = row
        self.add(row)

    def _started(self, record: ToolCallRecord) -> None:
        waiting = self._open.get((record.path, record.call_id))
        if not waiting:
            return
        row, place = waiting[-1]
        row.starts[place] = row.starts.get(place, 0) + 1
        part = row.message.content[place]
        if isinstance(part, ToolCall) and canonical_text(part.arguments) != canonical_text(record.arguments):
            row.ran[place] = record.arguments

    def _boundary(self, line: int, record: HandoffRecord | SubagentRecord) -> None:
        self._number += 1
        handoff = isinstance(record, HandoffRecord)
        kind: Kind = "handoff" if handoff else "subagent"
        self.subagents += not handoff
        lane, to = self._lane(record.path), self._lane(record.target_path)
        self._seen(record.at)
        edge = self._views.edge(record)
        names = self._number, line, kind, record.source, record.target, record
        try:
            seed = self._views.seed(record, edge)
        except ValueError as error:
            row = bare_card(Boundary(*names, None, ()), lane=lane, to=to)
            row.problem = f"what crossed is not known: {error}"
            self.add(row)
            return
        row = card(Boundary(*names, edge, seed), self._counter, lane=lane, to=to)
        self.add(row)
        if not handoff:
            self._cards[record.target_path] = row
        elif record.returns and record.call_id:
            self._awaited[record.path, record.call_id] = row
        self._views.enter(record, seed)

    def _ended(self, line: int, record: SubagentRecord) -> None:
        self._seen(record.at)
        usage = record.usage
        end = Ending(
            line, record.at, record.status, record.answer, record.sensitivity, usage.input_tokens, usage.output_tokens
        )
        found = self._cards.pop(record.target_path, None)
        if found is not None:
            found.end = end
        self.add(
            NoteRow(
                line=line,
                lane=self._lane(record.target_path),
                what="ended",
                head=f"{record.target} → {record.source}: {record.status}",
                text=record.answer,
                at=record.at,
                bad=record.status != "completed",
            )
        )
        self.lanes.end(record.target_path, len(self._rows) - 1)
        self._views.take(record)


def _light(message: Message) -> Message:
    """The message without the bytes of its media, whose size stands in their place."""
    if not any([isinstance(part, Image | Audio | File) and part.data for part in message.content]):
        return message
    return message.replace(content=tuple(map(_without_bytes, message.content)))


def _without_bytes(part: Part) -> Part:
    if not isinstance(part, Image | Audio | File) or not part.data:
        return part
    return msgspec.structs.replace(part, data=f"{len(part.data) * 3 // 4:,} bytes")
