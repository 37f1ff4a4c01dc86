"""What is counted of a session: one definition for its footer, its check and its statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self, get_args

import msgspec

from handrail.filters import Message
from handrail.sessions.paths import is_top
from handrail.sessions.records import (
    EncryptedRecord,
    HandoffRecord,
    Known,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    Writable,
)
from handrail.sessions.usages import Usage


def kind_of(record: Writable) -> str:
    """The record's kind, as its line names it."""
    return KIND_OF[type(record)] or record.kind  # type: ignore[union-attr]  # only Unknown has no kind of its own


KIND_OF: dict[type, str] = {Unknown: ""} | {cls: str(cls.__struct_config__.tag) for cls in get_args(Known)}
KIND_OF[EncryptedRecord] = "encrypted"
"""The kind of each type of record; that of an `Unknown`, empty here, stands on the record."""
KINDS = frozenset(KIND_OF.values()) - {""}
"""The kinds of records that are known here."""


def lines_by_kind(counts: Mapping[str, int], *, encrypted: bool) -> dict[str, int]:
    """The records of these kinds, header included, as the lines of their file name them."""
    others = sum(counts.values()) - 1
    if not encrypted:
        return dict(counts)
    return {"header": 1, "encrypted": others} if others else {"header": 1}


class Tally:
    """The records of a session by kind (all but the footer), and what model calls, handoffs and tools add up to.

    Of an imported session, which has no records of model and tool calls, each tool result counts as a call of its
    tool, and the usage is that which the log told beside its messages. `errors` are failed tools, handoffs that were
    refused, and failed turns.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.roles: dict[str, int] = {}
        self.usage = Usage()
        self.handoffs: dict[tuple[str, str], int] = {}
        self.tools: dict[str, int] = {}
        self.errors = 0
        self._imported = False
        self._started: set[str] = set()
        self._called: dict[str, str] = {}

    @classmethod
    def of(cls, records: Iterable[Writable]) -> Self:
        """The tally of these records."""
        tally = cls()
        for record in records:
            tally.take(record)
        return tally

    @property
    def messages(self) -> int:
        """How many messages were said, tool results included."""
        return self.counts.get("message", 0) + self.counts.get("tool_result", 0)

    def take(self, record: Writable) -> None:
        """Counts one record."""
        kind = kind_of(record)
        if kind == "footer":
            return
        self.counts[kind] = self.counts.get(kind, 0) + 1
        match record:
            case MessageRecord() | ToolResultRecord():
                self._message(record.message)
            case ModelCallRecord():
                self.usage += record.usage
            case ToolCallRecord():
                if record.attempt == 1:
                    self._tool(record.name)
                if self._imported:
                    self._started.add(record.call_id)
            case HandoffRecord():
                edge = (record.source, record.target)
                self.handoffs[edge] = self.handoffs.get(edge, 0) + 1
            case TurnRecord(event="end", status="failed") if is_top(record.path):
                self.errors += 1  # within a sub-agent it is the error of the tool that the sub-agent is
            case SessionRecord(source=str()):
                self._imported = True
                self.usage += _told(record.beside)
            case _:
                pass

    def _message(self, message: Message) -> None:
        self.roles[message.role] = self.roles.get(message.role, 0) + 1
        self.errors += message.is_error and not message.synthetic  # what ended the call is counted, not its mark
        if not self._imported:
            return
        if message.role == "assistant":
            self._called = {call.id: call.name for call in message.tool_calls if not call.transfer}
        elif message.role == "tool" and message.call_id not in self._started:
            name = message.name or self._called.get(message.call_id or "")
            if name is not None and not name.startswith("transfer_to_"):
                self._tool(name)
        self._started.discard(message.call_id or "")

    def _tool(self, name: str) -> None:
        self.tools[name] = self.tools.get(name, 0) + 1


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Told(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Answer(msgspec.Struct):
    usage: _Told


class _Log(msgspec.Struct):
    response: _Answer


def _told(beside: msgspec.Raw) -> Usage:
    # A log of one request has the answer's usage beside the messages; a transcript of another shape tells none.
    try:
        told = msgspec.json.decode(beside, type=_Log).response.usage
    except (msgspec.DecodeError, RecursionError):
        return Usage()
    before, after = told.prompt_tokens_details or _Details(), told.completion_tokens_details or _Details()
    cached, reasoning = before.cached_tokens or 0, after.reasoning_tokens or 0
    return Usage(told.prompt_tokens, told.completion_tokens, cached, reasoning, requests=1)
