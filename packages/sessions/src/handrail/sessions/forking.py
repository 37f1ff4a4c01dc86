"""Forks: a new session that begins as another did, up to one of its messages.

The lines get a chain of their own. The header names the session that they came from, that message, and as `continues`
the hash of the last line that was taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from handrail.sessions.errors import DamagedSession, ForkRefused, SessionExists
from handrail.sessions.exports import opened, to_go_on_from
from handrail.sessions.lines import link
from handrail.sessions.making import making
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.places import Given, located
from handrail.sessions.reader import Reading
from handrail.sessions.records import (
    AnyRecord,
    AuditRecord,
    BudgetRecord,
    MessageRecord,
    ModelCallRecord,
    Origin,
    StateRecord,
    ToolResultRecord,
    TurnRecord,
    Unknown,
)
from handrail.sessions.views import Views
from handrail.sessions.writer import Journal, append_all

if TYPE_CHECKING:
    from pathlib import Path


def fork(
    source: Given,
    path: str | os.PathLike[str],
    *,
    at: str | None = None,
    name: str | None = None,
    passphrase: Secret = None,
) -> Path:
    """A new session file with the records of another up to its message `at`, or all of them, and what was written down
    of how that message's turn ended.

    `name` is what the new header calls the source; its own id if not given. With a passphrase the fork is encrypted,
    whether the source is or not; without it an encrypted source is refused, and is never written in the clear.

    Raises `ForkRefused` where the source holds no message, or not this one, or where a call made by then has no result;
    `SessionExists` where there is a file at the path, `SessionConflict` or `JournalFailed` where none can be made; and
    what reading raises. The file is there whole or not at all.
    """
    from pathlib import Path

    passphrase = hidden(passphrase)
    reading, _ = opened(located(source), None, passphrase)
    target = Path(path)
    if target.exists():
        raise SessionExists(target)
    cut = _cut(reading, at)
    origin = Origin(name or reading.header.id, cut.message)
    with (
        making(target) as copy,
        Journal.create(
            target, continues=cut.head, origin=origin, fsync="never", passphrase=passphrase, onto=copy.fileno()
        ) as journal,
    ):
        append_all(journal, to_go_on_from(reading, cut.line))
    return target


class _Cut(msgspec.Struct):
    """The last line that is taken, its hash, and the last message in it."""

    line: int
    head: str
    message: str


def _cut(reading: Reading, at: str | None) -> _Cut:
    views, last, before = Views(), _Cut(0, "", ""), ""
    lines = reading.lines()
    for number, _, line, record in lines:
        known = _taken(reading, views, number, record)
        if isinstance(known, MessageRecord | ToolResultRecord):
            last = _Cut(number, link(line), known.message.id)
            if last.message == at:
                break
            before = before if views.waiting() else last.message
    else:
        if not last.line or at is not None:
            problem = "it holds no message" if not last.line else "it holds no such message"
            raise ForkRefused(reading.path, at, problem, (), (before,) if before else ())
        last = _Cut(number, link(line), last.message)
    if not (calls := views.waiting()):
        return last if at is None else _with_its_end(last, lines)
    after = "" if at is None else next(_settled(reading, views, lines), "")
    problem = f"the call {calls[0]!r} has no result there"
    raise ForkRefused(reading.path, at, problem, calls, [place for place in (before, after) if place])


_Lines = Iterator[tuple[int, int, bytes, AnyRecord]]


def _taken(reading: Reading, views: Views, number: int, record: AnyRecord) -> AnyRecord:
    known = (record.record or record) if isinstance(record, Unknown) else record
    try:
        views.take(known)
    except ValueError as error:
        raise DamagedSession(reading.path, number, str(error)) from None
    return known


def _with_its_end(cut: _Cut, lines: _Lines) -> _Cut:
    """The cut, and what follows it directly of what the message cost and how its turn and run ended."""
    for number, _, line, record in lines:
        if isinstance(record, ModelCallRecord | BudgetRecord) or (type(record) is TurnRecord and record.event == "end"):
            cut = _Cut(number, link(line), cut.message)
        elif not isinstance(record, StateRecord | AuditRecord):
            break
    return cut


def _settled(reading: Reading, views: Views, lines: _Lines) -> Iterator[str]:
    """The messages from here on after which no call waits for its result."""
    for number, _, _, record in lines:
        known = _taken(reading, views, number, record)
        if isinstance(known, MessageRecord | ToolResultRecord) and not views.waiting():
            yield known.message.id
