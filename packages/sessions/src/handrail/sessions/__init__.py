"""Runs as files that can be written down, read back, gone on with and verified."""

from handrail.sessions.comparing import diff
from handrail.sessions.crossings import Boundary, crossings
from handrail.sessions.differences import Difference
from handrail.sessions.errors import (
    CompressedSession,
    DamagedSession,
    EmptyPassphrase,
    EncryptionError,
    ForkRefused,
    FormatError,
    HeaderTooLong,
    JournalClosed,
    JournalFailed,
    LineTooLong,
    NotASession,
    OutdatedSession,
    PassphraseMissing,
    PassphraseNotNeeded,
    SealedSession,
    SessionChanged,
    SessionConflict,
    SessionError,
    SessionExists,
    StoreBusy,
    StoreFailed,
    TamperedRecord,
    UnfitCipher,
    UnknownSession,
    UnknownStore,
    UnknownView,
    UnsupportedStore,
    UnsupportedVersion,
    WrongPassphrase,
)
from handrail.sessions.exports import export
from handrail.sessions.formats.openai_chat import to_openai_chat
from handrail.sessions.interchange import Exported, Transcript, export_to, import_file, parse_file
from handrail.sessions.passphrases import Cipher, Cost, Passphrase
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
    Origin,
    SessionRecord,
    StateRecord,
    SubagentRecord,
    ToolCallRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
    ViewRecord,
)
from handrail.sessions.replay import verify
from handrail.sessions.schemas import session_schema
from handrail.sessions.searching import Entry, Found
from handrail.sessions.session import Session
from handrail.sessions.store_urls import open_store
from handrail.sessions.storing import Store
from handrail.sessions.tails import TornTail
from handrail.sessions.tally import Tally
from handrail.sessions.upgrades import Migrated, migrate
from handrail.sessions.usages import Spent, Usage
from handrail.sessions.verdicts import Drift, NotRunnable, Verdict
from handrail.sessions.views import Views
from handrail.sessions.writer import Journal

__all__ = [
    "AgentRecord",
    "AuditRecord",
    "Boundary",
    "BudgetRecord",
    "Cipher",
    "CompressedSession",
    "Cost",
    "DamagedSession",
    "Difference",
    "Drift",
    "EmptyPassphrase",
    "EncryptionError",
    "Entry",
    "Exported",
    "Footer",
    "ForkRefused",
    "FormatError",
    "Found",
    "HandoffRecord",
    "Header",
    "HeaderTooLong",
    "Journal",
    "JournalClosed",
    "JournalFailed",
    "LineTooLong",
    "MessageRecord",
    "Migrated",
    "ModelCallRecord",
    "NotASession",
    "NotRunnable",
    "Origin",
    "OutdatedSession",
    "Passphrase",
    "PassphraseMissing",
    "PassphraseNotNeeded",
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
    "Store",
    "StoreBusy",
    "StoreFailed",
    "SubagentRecord",
    "Tally",
    "TamperedRecord",
    "ToolCallRecord",
    "ToolResultRecord",
    "TornTail",
    "Transcript",
    "TurnRecord",
    "UnfitCipher",
    "Unknown",
    "UnknownSession",
    "UnknownStore",
    "UnknownView",
    "UnsupportedStore",
    "UnsupportedVersion",
    "Usage",
    "Verdict",
    "ViewRecord",
    "Views",
    "WrongPassphrase",
    "crossings",
    "diff",
    "export",
    "export_to",
    "import_file",
    "migrate",
    "open_store",
    "parse_file",
    "read",
    "session_schema",
    "to_openai_chat",
    "verify",
]
