"""The records of a session: one JSON object a line, each a frozen value here.

`prev` is SHA-256 (hex) over the bytes of the line before, without its newline; 64 zeros in the first line. `batch`
stands in the first record of a batch and says how many records follow it in that batch; in each of those it is the
record's place in the batch as a negative number. The writer sets both.
`path` is the agent path whose view a record concerns; times are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, final

import msgspec

from handrail.filters import Crossed, Message, Note
from handrail.filters.messages import Part
from handrail.sessions.errors import InvalidRecord
from handrail.sessions.passphrases import Cipher
from handrail.sessions.usages import Spent, Usage

FORMAT = "handrail-session"
VERSION = 1


class Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="kind",
    gc=False,
):
    """What every record has."""

    # No record is within what it holds, which is all made before it, so the collector need not look at any.

    prev: str = ""
    batch: int = 0


def _one_line(record: msgspec.Struct, field: str, values: Any = msgspec.Raw) -> None:
    # A record is a line of its file, whatever text somebody put into it.
    given: msgspec.Raw = getattr(record, field)
    if given is NO_FIELDS:
        return
    text = bytes(given)
    try:
        msgspec.json.decode(text.decode(), type=dict[str, values])
    except (ValueError, RecursionError):
        wanted = "the text of a JSON object" + (" whose numbers can be read" if values is Any else "")
        raise InvalidRecord(type(record).__name__, field, wanted, text) from None
    if b"\n" in text:
        msgspec.structs.force_setattr(record, field, msgspec.Raw(msgspec.json.format(text, indent=-1)))


NO_FIELDS = msgspec.Raw(b"{}")
"""An empty JSON object."""


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a session was forked from: the other session's id (in its store, or else its header), and the last message
    that both have."""

    session: str
    message: str


class Header(Record, frozen=True, kw_only=True, tag="header"):
    """The first line: the format, its version, and whether that version is still a draft."""

    format: str
    version: int
    id: str
    created_at: int
    draft: bool = False
    writer: str = ""
    continues: str | None = None
    """The head hash of the sealed export that this session goes on from, or the hash of the last line of another
    session that it was forked from."""
    origin: Origin | None = None
    cipher: Cipher | None = None


class EncryptedRecord(Record, frozen=True, kw_only=True, tag="encrypted"):
    """Any record but header and footer, as an encrypted session holds it: `number` is that of its line, and `data` its
    nonce (12 bytes), its JSON without `prev` and `batch`, encrypted, and the tag (16 bytes)."""

    number: int
    data: bytes


class SessionRecord(Record, frozen=True, kw_only=True, tag="session"):
    """What is known of the session as a whole: for an import the format it came from, the JSON that stood beside its
    messages, and what could not be carried or breaks the transcript laws."""

    title: str | None = None
    source: str | None = None
    beside: msgspec.Raw = NO_FIELDS
    losses: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _one_line(self, "beside")


class AgentRecord(Record, frozen=True, kw_only=True, tag="agent"):
    """An agent as it took part: its instructions, model, tools and handoffs (tool name to sealed descriptor), and how
    its model is asked for an output type.

    `blocks` are the names of its instructions, where they are not one block `agent`. `specs` tells apart what it
    offers: a digest of name, description and schema for each tool and handoff. `settings` are those that are not left
    to the model, `extra` as a digest. Without them (None) nothing is known of either.
    """

    name: str
    instructions: tuple[str, ...] = ()
    model: str = ""
    tools: tuple[str, ...] = ()
    handoffs: dict[str, dict[str, Any]] = {}
    output: dict[str, Any] = {}
    blocks: tuple[str, ...] = ()
    specs: dict[str, str] | None = None
    settings: dict[str, Any] | None = None


class MessageRecord(Record, frozen=True, kw_only=True, tag="message"):
    """A message that was said. `aside` marks one that is in the log but in no view; `rejects` one that says what was
    wrong with an answer, by that answer's id (empty where there was none): neither of them crosses a boundary, and both
    leave the view."""

    path: str
    message: Message
    aside: bool = False
    rejects: str | None = None


class TurnRecord(Record, frozen=True, kw_only=True, tag="turn"):
    """One agent's turn began, or ended with a status, what it cost, and for a failure what went wrong.

    `given` is what the run was given beside messages, in the first of its turns: `limits`, `instructions`, `counter`,
    the `policy` file, the names of `layers`, and the `root` where another agent begins.
    """

    path: str
    run: str
    event: Literal["start", "end"]
    at: int = 0
    status: str = ""
    steps: int = 0
    usage: Usage = Usage()
    error: str | None = None
    given: dict[str, Any] = {}


class ViewRecord(Record, frozen=True, kw_only=True, tag="view"):
    """What entered or left a view other than by a message or a seed: ids `removed`, then messages `replaced` (by id),
    then `inserted`, each directly after the one with that id (empty: at the front; it may be one inserted before). A
    message that is removed and inserted has moved."""

    path: str
    removed: tuple[str, ...] = ()
    replaced: tuple[Message, ...] = ()
    inserted: tuple[tuple[str, Message], ...] = ()
    reason: str = ""


class StateRecord(Record, frozen=True, kw_only=True, tag="state"):
    """What was written into the state: the channels of the shared state that changed, with their new values, or, with a
    `layer`, the private state of that middleware at the turn's end. One of scope `session` lives on."""

    path: str
    layer: str = ""
    scope: Literal["turn", "session"] = "turn"
    values: msgspec.Raw = NO_FIELDS

    def __post_init__(self) -> None:
        _one_line(self, "values", Any)


class AuditRecord(Record, frozen=True, kw_only=True, tag="audit"):
    """Something that a layer, a gate or a tool had written down, by its name: a call that was denied, an answer that
    was blocked, a gate that failed and so said no. `data` is a JSON object."""

    path: str
    name: str
    call_id: str = ""
    at: int = 0
    data: msgspec.Raw = NO_FIELDS

    def __post_init__(self) -> None:
        _one_line(self, "data")


class ModelCallRecord(Record, frozen=True, kw_only=True, tag="model_call"):
    """One model call, an abandoned attempt too: its answer's id, and its cost. `request` is the digest of the messages
    it was sent where a hook changed them; empty where they were the view as it stood.

    Of a call for an answer, `instructions`, `tools`, `settings` and `output` hold what was not as the `agent` record
    has it: the blocks that differ (None: left out; all of them where their order does), all that was offered (with a
    digest where it is another tool of that name), all settings, and the digest of the schema for the answer's text
    (empty: there was none). `answer` is what the model gave, where no message says it: an attempt that was not
    accepted, an answer that a layer changed, or one to a layer's own call.
    """

    path: str
    step: int
    attempt: int = 1
    model: str = ""
    purpose: str = "answer"
    request: str = ""
    message_id: str = ""
    usage: Usage = Usage()
    finish_reason: str = ""
    error: str | None = None
    instructions: dict[str, str | None] = {}
    tools: dict[str, str] | None = None
    settings: dict[str, Any] | None = None
    answer: Message | None = None
    output: str | None = None


class ToolCallRecord(Record, frozen=True, kw_only=True, tag="tool_call"):
    """A start mark: the call is about to run, with these arguments."""

    path: str
    call_id: str
    name: str
    arguments: str = ""
    attempt: int = 1
    key: str | None = None


class Gave(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What a tool itself gave, as far as its message does not say it.

    Where a layer `changed` that, `content` is what it gave, with its own `is_error` and `sensitivity`; else the message
    has it. `error_class` says how it failed. `writes` is what it wrote into the shared state, by channel, and
    `handoff` the one that it asked for by code: `target`, `reason` and `input`.
    """

    changed: bool = False
    content: tuple[Part, ...] = ()
    is_error: bool = False
    sensitivity: str | None = None
    error_class: str = ""
    writes: msgspec.Raw = NO_FIELDS
    handoff: dict[str, str] = {}

    def __post_init__(self) -> None:
        _one_line(self, "writes", Any)


class ToolResultRecord(Record, frozen=True, kw_only=True, tag="tool_result"):
    """A tool message, in the order the results came in; a view holds them in call order. `edited` marks one of a
    sub-agent's call in which a hook put other words than the answer; `gave` is what else is to be known of it."""

    path: str
    message: Message
    edited: bool = False
    gave: Gave | None = None


class _Boundary(Record, frozen=True, kw_only=True):
    """What a handoff and the start of a sub-agent have in common.

    `view` and `view_length` are the digest and length of the source's view: for a handoff up to this record, with the
    results so far in call order, for a sub-agent up to the message that made the call. `crossed` says which of its
    messages the seed holds (ranges) and what a filter made (messages), `seed` is the digest of all of them.
    """

    path: str
    source: str
    target: str
    target_path: str
    call_id: str | None = None
    step: int = 0
    at: int = 0
    notes: tuple[Note, ...] = ()
    filter: dict[str, Any] = {}
    view: str = ""
    view_length: int = 0
    crossed: tuple[Crossed, ...] = ()
    seed: str = ""
    seed_length: int = 0
    edited: str | None = None
    """Where a hook changed what the seal gave: the digest of that (`not run` where it kept the seal from running),
    `seed` being what crossed."""
    tokens_before: int | None = None
    tokens_after: int | None = None


def asked_by(record: _Boundary) -> str:
    """What tells a crossing from others: where its source stands, and the call that asked for it."""
    return crossing_key(record.path, record.call_id, record.part if isinstance(record, SubagentRecord) else 0)


def crossing_key(path: str, call_id: str | None, part: int = 0) -> str:
    """The same, of the source's path, the call, and which of the agents that the call asks."""
    return f"{path}\0{call_id or ''}\0{part}" if part else f"{path}\0{call_id or ''}"


class HandoffRecord(_Boundary, frozen=True, kw_only=True, tag="handoff"):
    """Control passed to another agent. It stands before its call's result.

    `active` is who goes on after it, where that is not the target: one that waits for the target's answer (`returns` is
    what brings it back), or one that has the next turn. `back` marks the way back at a run's end: the target's answer
    alone, which nobody has to answer.
    """

    active: str = ""
    returns: dict[str, Any] = {}
    back: bool = False


class SubagentRecord(_Boundary, frozen=True, kw_only=True, tag="subagent"):
    """An agent wrapped as a tool: at the start with what crossed, at the end with its status, answer and cost.
    `reworded` marks an answer that is not the last message as `returns` leaves it: folded, withheld, or a hook's.

    `part` counts from 1 where one call asks several agents, or one several times; what comes of their answers is the
    call's result. Each answer came back by itself then, and `sensitivity` is its label.
    """

    part: int = 0
    event: Literal["start", "end"]
    status: str = ""
    answer: str = ""
    sensitivity: str | None = None
    reworded: bool = False
    usage: Usage = Usage()
    returns: dict[str, Any] = {}


class BudgetRecord(Record, frozen=True, kw_only=True, tag="budget"):
    """A run ended (`run`, begun by the agent at `path`), with what it used of its budget."""

    path: str
    run: str
    spent: Spent = Spent()


class Footer(Record, frozen=True, kw_only=True, tag="footer"):
    """The last line of a sealed copy: how many records of each kind, and the hash of the line before. Of an encrypted
    session, whose lines tell no kinds, `check` is the footer itself without this field, encrypted as its line."""

    counts: dict[str, int]
    head: str
    check: bytes | None = None


@final
class Unknown(msgspec.Struct, frozen=True):
    """A line that is JSON but no record known here; it is kept whole and written back as it came. `record` is what can
    be understood of it, where it is a known kind with fields that are not."""

    kind: str
    line: bytes
    record: Known | None = None
    prev: ClassVar[str] = "in its line"
    """It was in a file before, as no new record was: whoever writes it down again takes a second look."""

    def __post_init__(self) -> None:
        if b"\n" in self.line:
            raise InvalidRecord("Unknown", "line", "one line", self.line)


Known: TypeAlias = (
    Header
    | SessionRecord
    | AgentRecord
    | MessageRecord
    | TurnRecord
    | ViewRecord
    | StateRecord
    | AuditRecord
    | ModelCallRecord
    | ToolCallRecord
    | ToolResultRecord
    | HandoffRecord
    | SubagentRecord
    | BudgetRecord
    | Footer
)
AnyRecord: TypeAlias = Known | EncryptedRecord | Unknown
"""What reading gives; an encrypted record only to who reads without the passphrase."""
Envelope: TypeAlias = Header | EncryptedRecord | Footer
"""What an encrypted session is made of, as it stands in the file."""
Writable: TypeAlias = Record | Unknown
"""What writing takes."""
