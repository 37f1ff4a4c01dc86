"""What a page is given of a session: its head, its lanes, and a row for each thing that happened, in order."""

from typing import TypeAlias

import msgspec

from handrail.filters import Message, Note


class Call(msgspec.Struct, omit_defaults=True):
    """One model call: who was asked for what, its cost in tokens and US dollars (None where no price is known)."""

    model: str = ""
    step: int = 0
    attempt: int = 1
    purpose: str = "answer"
    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None
    finish: str = ""
    error: str = ""


class Row(msgspec.Struct, omit_defaults=True, kw_only=True, tag_field="kind"):
    """What every row has: the line of its record, from 1, and the place of its lane."""

    line: int
    lane: int = 0


class MessageRow(Row, tag="message"):
    """A message with the model call that it came from, and by the place of each tool call among its parts the result,
    how often it was started, and the arguments it was started with, where these are others."""

    message: Message
    results: dict[int, Message] = {}
    starts: dict[int, int] = {}
    ran: dict[int, str] = {}
    call: Call | None = None
    aside: bool = False
    rejects: bool = False
    edited: bool = False


class CallRow(Row, tag="call"):
    """A model call that no message came of."""

    call: Call


class Passed(msgspec.Struct, omit_defaults=True):
    """A message that crossed: its id, why it was changed, and the message itself where it is not as it was said."""

    id: str
    why: str = ""
    message: Message | None = None


class Stayed(msgspec.Struct, omit_defaults=True):
    """Messages that stayed for one reason: how many, and the ids of the first of them."""

    why: str
    count: int
    ids: list[str]


class Step(msgspec.Struct, omit_defaults=True):
    """One step of a filter, with the messages that went in and came out; -1 where it was not run again."""

    text: str
    before: int = -1
    after: int = -1


class Ending(msgspec.Struct, omit_defaults=True):
    """How a sub-agent ended."""

    line: int
    at: int
    status: str
    answer: str = ""
    sensitivity: str | None = None
    input: int = 0
    output: int = 0


class BoundaryRow(Row, tag="boundary"):
    """A handoff or the call of a sub-agent: from whom, to whom, what crossed, what stayed and why, and by what filter.

    `before` and `after` count messages (None: not known); `problem` says what could not be worked out, and why.
    `returned` is the id of the result that brought the answer back.
    """

    number: int
    what: str
    source: str
    target: str
    to: int
    step: int = 0
    at: int = 0
    notes: tuple[Note, ...] = ()
    before: int | None = None
    after: int = 0
    tokens_before: int | None = None
    tokens_after: int | None = None
    counter: str = ""
    passed: list[Passed] = []
    passed_more: int = 0
    stayed: list[Stayed] = []
    steps: list[Step] = []
    descriptor: str = ""
    returns: str = ""
    returned: str = ""
    edited: bool = False
    back: bool = False
    problem: str = ""
    end: Ending | None = None


class NoteRow(Row, tag="note"):
    """Anything else in one line, with its text folded under it: a write into the state, an audit entry, an edit of a
    view, an agent as it took part, a run's end, a failed turn, or a record of a kind that is not known here."""

    what: str
    head: str
    text: str = ""
    at: int = 0
    bad: bool = False
    messages: list[Message] = []


AnyRow: TypeAlias = MessageRow | CallRow | BoundaryRow | NoteRow


class Lane(msgspec.Struct, omit_defaults=True):
    """An agent path: its agent, which of the columns it stands in, and the rows from which to which it is there."""

    path: str
    name: str
    column: int = 0
    first: int = 0
    last: int = 0
    depth: int = 0
    messages: int = 0
    tokens: int = 0


class Verified(msgspec.Struct, omit_defaults=True):
    """What the check found, in one word, in a sentence, and the differences one by one."""

    state: str
    ok: bool
    text: str
    sealed: bool = False
    details: list[str] = []


class Totals(msgspec.Struct, omit_defaults=True):
    """What a session adds up to; `cost` in US dollars is that of the `priced` ones among its model calls."""

    messages: int = 0
    calls: int = 0
    input: int = 0
    output: int = 0
    cost: float = 0.0
    priced: int = 0
    tools: int = 0
    handoffs: int = 0
    subagents: int = 0
    errors: int = 0


class Sheet(msgspec.Struct, omit_defaults=True):
    """All that the page of one session shows. Times are milliseconds since 1970 (UTC), 0 where none is known; `written`
    is when the file was begun, `begun` and `ended` are the first and the last time that its records tell."""

    title: str
    file: str
    format: str
    source: str
    verified: Verified
    totals: Totals
    lanes: list[Lane]
    rows: list[AnyRow]
    written: int = 0
    begun: int = 0
    ended: int = 0
    remarks: list[str] = []
    columns: int = 1
