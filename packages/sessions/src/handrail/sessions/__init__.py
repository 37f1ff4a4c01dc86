"""Runs as files that can be written down, read back, gone on with and verified."""

from handrail.sessions.comparing import diff
from handrail.sessions.crossings import Boundary, crossings
from handrail.sessions.differences import Difference
from handrail.sessions.errors import (
    DamagedSession,
    FormatError,
    HeaderTooLong,
    JournalClosed,
    JournalFailed,
    NotASession,
    SealedSession,
    SessionChanged,
    SessionConflict,
    SessionError,
    SessionExists,
    UnknownView,
    UnsupportedVersion,
)
from handrail.sessions.exports import export
from handrail.sessions.formats.openai_chat import to_openai_chat
from handrail.sessions.interchange import Exported, Transcript, export_to, import_file, parse_file
from handrail.sessions.places import Place
from handrail.sessions.reader import Reading, read
from handrail.sessions.records import (
    AgentRecord,
    AuditRecord,
    BudgetRecord,
    Footer,
    HandoffRecord,
    Header,
    MessageRecord,
    ModelCallRecord,
    SessionRecord,
    Spent,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    Usage,
    ViewRecord,
)
from handrail.sessions.replay import verify
from handrail.sessions.session import Session
from handrail.sessions.tails import TornTail
from handrail.sessions.tally import Tally
from handrail.sessions.verdicts import Drift, NotRunnable, Verdict
from handrail.sessions.views import Views
from handrail.sessions.writer import Journal

__all__ = [
    "AgentRecord",
    "AuditRecord",
    "Boundary",
    "BudgetRecord",
    "DamagedSession",
    "Difference",
    "Drift",
    "Exported",
    "Footer",
    "FormatError",
    "HandoffRecord",
    "Header",
    "HeaderTooLong",
    "Journal",
    "JournalClosed",
    "JournalFailed",
    "MessageRecord",
    "ModelCallRecord",
    "NotASession",
    "NotRunnable",
    "Place",
    "Reading",
    "SealedSession",
    "Session",
    "SessionChanged",
    "SessionConflict",
    "SessionError",
    "SessionExists",
    "SessionRecord",
    "Spent",
    "StateRecord",
    "SubagentRecord",
    "Tally",
    "ToolCallRecord",
    "ToolResultRecord",
    "TornTail",
    "Transcript",
    "TurnRecord",
    "Unknown",
    "UnknownView",
    "UnsupportedVersion",
    "Usage",
    "Verdict",
    "ViewRecord",
    "Views",
    "crossings",
    "diff",
    "export",
    "export_to",
    "import_file",
    "parse_file",
    "read",
    "to_openai_chat",
    "verify",
]
