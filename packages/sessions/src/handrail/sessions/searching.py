"""What a store tells of a session without opening it, and how its messages are found by their words.

A message is found where its text holds every word of the search, upper and lower case alike, also within a longer word:
that serves languages that put no spaces between words, and is the same in every store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Self, TypeVar

import msgspec

from handrail.filters.messages import Message, whole
from handrail.sessions.paths import name_of
from handrail.sessions.records import AnyRecord, Header, MessageRecord, SessionRecord, ToolResultRecord, Unknown

_AROUND = 40
_Hit = TypeVar("_Hit")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a store. Times are milliseconds since 1970 (UTC); `agents` in the order they first spoke; `parent`
    is the id of the session that it was forked from; `size` is in bytes. Of an `encrypted` session the agents and the
    number of messages are not known: there are no `agents`, and `messages` is None."""

    id: str
    title: str = ""
    tags: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    messages: int | None = 0
    created_at: int = 0
    updated_at: int = 0
    parent: str | None = None
    size: int = 0
    encrypted: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a search found: the id of its session, its own, its agent's name, and the words around."""

    session: str
    message: str
    agent: str
    snippet: str


class Hits(tuple[_Hit, ...], Generic[_Hit]):
    """What was found; `locked` are the ids of the encrypted sessions that could hold more, and for want of their
    passphrase were not looked into."""

    locked: tuple[str, ...]

    def __new__(cls, hits: Iterable[_Hit] = (), locked: Iterable[str] = ()) -> Self:
        made = super().__new__(cls, hits)
        made.locked = tuple(locked)
        return made


class Summary(msgspec.Struct):
    """What an entry tells of a session's records, as far as they were taken in."""

    created_at: int = 0
    title: str = ""
    agents: list[str] = []
    messages: int = 0
    parent: str | None = None
    encrypted: bool = False

    @property
    def counted(self) -> int | None:
        """How many messages there are; None where that cannot be seen."""
        return None if self.encrypted else self.messages

    def take(self, record: AnyRecord) -> str:
        """Takes in one record, and gives the text it can be found by; empty where there is none, and in an encrypted
        session, whatever a line of it holds."""
        if self.encrypted:
            return ""
        record = (record.record or record) if isinstance(record, Unknown) else record
        if isinstance(record, MessageRecord | ToolResultRecord):
            self.messages += 1
            name = agent_of(record)
            if name and name not in self.agents:
                self.agents.append(name)
            return folded(record.message.text)
        if isinstance(record, SessionRecord) and record.title is not None:
            self.title = record.title
        elif isinstance(record, Header):
            self.created_at = record.created_at
            self.encrypted = record.cipher is not None
            self.parent = record.origin.session if record.origin is not None else None
        return ""


def agent_of(record: MessageRecord | ToolResultRecord) -> str:
    """The name of the agent in whose view a message was said."""
    return name_of(record.path)


def folded(text: str) -> str:
    """The text as it is compared."""
    return text.casefold().replace("\0", " ")


def words_of(text: str) -> tuple[str, ...]:
    """The words that a search asks for."""
    return tuple(folded(whole(text)).split())


def holds(text: str, words: Iterable[str]) -> bool:
    """Whether a folded text holds every one of the words."""
    return all([word in text for word in words])


def found(session: str, record: MessageRecord | ToolResultRecord, words: Sequence[str]) -> Found:
    """What a search gives for a message."""
    message: Message = record.message
    snippet = snippet_of(message.text, words[0])
    return Found(session=session, message=message.id, agent=agent_of(record), snippet=snippet)


def snippet_of(text: str, word: str) -> str:
    """The words around the first place where a text holds a folded word, in one line."""
    at, place = max(0, folded(text).find(word)), 0
    while at > 0 and place < len(text):  # folding may make a letter two
        at -= len(text[place].casefold())
        place += 1
    start, end = max(0, place - _AROUND), place + len(word) + _AROUND
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
