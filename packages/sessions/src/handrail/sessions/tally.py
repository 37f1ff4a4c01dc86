"""What is counted of a session: one definition for its footer, its check and its statistics."""

from collections.abc import Iterable
from typing import Self, get_args

from handrail.sessions.records import (
    HandoffRecord,
    Known,
    MessageRecord,
    ModelCallRecord,
    ToolCallRecord,
    ToolResultRecord,
    Unknown,
    Usage,
    Writable,
)


def kind_of(record: Writable) -> str:
    """The record's kind, as its line names it."""
    return _KINDS[type(record)] or record.kind  # type: ignore[union-attr]  # only Unknown has no kind of its own


_KINDS: dict[type, str] = {Unknown: ""} | {cls: str(cls.__struct_config__.tag) for cls in get_args(Known)}


class Tally:
    """The records of a session by kind (all but the footer), and what model calls, handoffs and tools add up to."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.roles: dict[str, int] = {}
        self.usage = Usage()
        self.handoffs: dict[tuple[str, str], int] = {}
        self.tools: dict[str, int] = {}
        self.errors = 0

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
                role = record.message.role
                self.roles[role] = self.roles.get(role, 0) + 1
                self.errors += record.message.is_error
            case ModelCallRecord():
                self.usage += record.usage
            case ToolCallRecord():
                self.tools[record.name] = self.tools.get(record.name, 0) + 1
            case HandoffRecord():
                edge = (record.source, record.target)
                self.handoffs[edge] = self.handoffs.get(edge, 0) + 1
            case _:
                pass
