"""Records that are no message and no boundary, as notes of one line with what they hold folded under it."""

import msgspec

from handrail.cli.reporting import counted
from handrail.cli.viewer.shapes import NoteRow
from handrail.filters import Message
from handrail.sessions import (
    AgentRecord,
    AuditRecord,
    BudgetRecord,
    StateRecord,
    TurnRecord,
    Unknown,
    ViewRecord,
)
from handrail.sessions.records import AnyRecord

_QUIET = ("completed", "handed_over")


def note(line: int, record: AnyRecord, agents: dict[str, object]) -> NoteRow | None:
    """The note for a record, or None where it says nothing by itself. `agents` holds each agent as it was last written
    down, so that one which has not changed is told once."""
    match record:
        case AgentRecord():
            return _agent(line, record, agents)
        case StateRecord():
            return _state(line, record)
        case AuditRecord():
            head = f"{record.name}, call {record.call_id}" if record.call_id else record.name
            return NoteRow(line=line, what="audit", head=head, text=_text(record.data), at=record.at)
        case ViewRecord():
            return _edit(line, record)
        case BudgetRecord():
            return NoteRow(line=line, what="run", head=_spent(record))
        case TurnRecord(event="end") if record.status not in _QUIET:
            text = record.error or ""
            return NoteRow(line=line, what="turn", head=record.status, text=text, at=record.at, bad=bool(text))
        case Unknown():
            raw = record.line.decode(errors="replace")
            return NoteRow(line=line, what=record.kind, head="a record of a kind that is not known here", text=raw)
        case _:
            return None


def _agent(line: int, record: AgentRecord, agents: dict[str, object]) -> NoteRow | None:
    told = (record.instructions, record.model, record.tools, record.handoffs, record.output)
    if agents.get(record.name) == told:
        return None
    again = record.name in agents
    agents[record.name] = told
    head = [f"{record.name} {'changed' if again else 'takes part'}"]
    head += [f"model {record.model}"] if record.model else []
    head += [f"tools {', '.join(record.tools)}"] if record.tools else []
    head += [f"hands over by {', '.join(record.handoffs)}"] if record.handoffs else []
    return NoteRow(line=line, what="agent", head="; ".join(head), text="\n\n".join(record.instructions))


def _state(line: int, record: StateRecord) -> NoteRow:
    values = msgspec.json.decode(record.values, type=dict[str, msgspec.Raw])
    names = ", ".join(values) or "nothing"
    head = f"{names} of {record.layer} ({record.scope})" if record.layer else names
    return NoteRow(line=line, what="state", head=head, text=_text(record.values))


def _edit(line: int, record: ViewRecord) -> NoteRow:
    inserted: list[Message] = [message for _, message in record.inserted]
    did = {"removed": len(record.removed), "replaced": len(record.replaced), "inserted": len(inserted)}
    counts = ", ".join([f"{many} {what}" for what, many in did.items() if many]) or "nothing changed"
    why = f": {record.reason}" if record.reason else ""
    text = f"removed: {', '.join(record.removed)}" if record.removed else ""
    return NoteRow(line=line, what="view", head=f"{counts}{why}", text=text, messages=[*record.replaced, *inserted])


def _spent(record: BudgetRecord) -> str:
    spent = record.spent
    counts = {"step": spent.steps, "tool call": spent.tool_calls, "handoff": spent.handoffs}
    counts["token"] = spent.usage.total_tokens
    said = ", ".join([counted(many, what) for what, many in counts.items() if many])
    cost = f", {spent.cost} US dollars" if spent.cost else ""
    return f"the run ended: {said or 'nothing was used'}{cost}"


def _text(raw: msgspec.Raw) -> str:
    try:
        return msgspec.json.format(bytes(raw)).decode(errors="replace")
    except (msgspec.DecodeError, RecursionError):
        return bytes(raw).decode(errors="replace")
