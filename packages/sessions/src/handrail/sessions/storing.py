"""Stores: many sessions under ids of their own, wherever they are kept."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from handrail.filters.messages import whole
from handrail.filters.sources import Clock, IdSource
from handrail.sessions.errors import SessionConflict, SessionExists, UnknownSession
from handrail.sessions.passphrases import Passphrase, Secret, hidden
from handrail.sessions.places import Given, Where, located
from handrail.sessions.reader import Reading
from handrail.sessions.searching import Entry, Found, Hits, words_of
from handrail.sessions.session import Session
from handrail.sessions.writer import Fsync

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path


class Labels(msgspec.Struct, frozen=True):
    """What a session is called and marked with, beside its lines."""

    title: str = ""
    tags: tuple[str, ...] = ()


Relabel: TypeAlias = Callable[[Labels], Labels]


class Store(ABC):
    """Sessions by their ids, which may be any text but an empty one. Made by `open_store`; a context manager.

    A session of a store is a `Session` like one in a file: `agent.run(…, session=store.open("desk"))`. Its lines are
    the same, byte for byte, in every store. Titles and tags stand beside the lines and need no lock. What a store's
    database or disk refuses is `StoreFailed`, and `JournalFailed` where a record was being written.

    Its `passphrase` encrypts what is made in it and opens what is there, unless a method is given another; a store with
    one opens no plain session (`PassphraseNotNeeded`). Ids, titles, tags, sizes and times are not encrypted.
    """

    def __init__(
        self, name: str, fsync: Fsync, lock_timeout: float, clock: Clock | None, passphrase: Passphrase | None
    ) -> None:
        self.name = name
        self.fsync: Fsync = fsync
        self.lock_timeout = lock_timeout
        self.clock = clock or Clock()
        self.passphrase = passphrase

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @abstractmethod
    def place(self, id: str) -> Where:
        """Where the session of this id is, or would be. Raises `UnknownSession` for what can be no id."""

    @abstractmethod
    def entries(self) -> Iterable[Entry]:
        """What there is, last written to first."""

    def encrypted(self) -> Sequence[str]:
        """The ids of the encrypted sessions."""
        return [entry.id for entry in self.entries() if entry.encrypted]

    @abstractmethod
    def entry(self, id: str) -> Entry:
        """What is known of one session. Raises `UnknownSession`."""

    @abstractmethod
    def found(self, words: tuple[str, ...]) -> Iterator[Found]:
        """The messages of plain sessions that hold all of these words, those of the session last written to first."""

    @abstractmethod
    def relabel(self, id: str, change: Relabel) -> None:
        """Changes title and tags in one step. Raises `UnknownSession`."""

    @abstractmethod
    def adopt(self, id: str, lines: Iterator[bytes]) -> None:
        """Keeps these lines as a new session, all of them or nothing. Raises `SessionExists`."""

    @abstractmethod
    def delete(self, id: str) -> None:
        """Takes a session away for good, with its title, its tags and what it is found by. Its forks stay: they have
        lines of their own. Raises `UnknownSession`, or `SessionConflict` where it is open for writing."""

    def prepare(self, id: str) -> None:  # noqa: B027  # most stores need nothing
        """Makes what has to be there before a session of this id is made."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of what the store has open; its sessions are closed before."""

    def open(
        self,
        id: str,
        *,
        fsync: Fsync | None = None,
        lock_timeout: float | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        passphrase: Secret = None,
    ) -> Session:
        """The session of this id. Where there is none it is made at the first write, as with a file. A run lets go of
        it at its end; `with store.open(id) as session:` holds it for several."""
        self.prepare(id)
        timeout = self.lock_timeout if lock_timeout is None else lock_timeout
        clock = clock or self.clock
        return Session(
            self.place(id),
            fsync=fsync or self.fsync,
            lock_timeout=timeout,
            clock=clock,
            ids=ids,
            passphrase=self._secret(passphrase),
            lasting=False,
        )

    def create(self, id: str, *, title: str = "", tags: Iterable[str] = (), passphrase: Secret = None) -> Session:
        """A new session with nothing in it. Raises `SessionExists`."""
        from handrail.sessions.writer import Journal

        passphrase = self._secret(passphrase)
        self.prepare(id)
        Journal.create(self.place(id), fsync=self.fsync, clock=self.clock, passphrase=passphrase).close()
        if (labels := Labels(_label(title), _tags(tags))) != Labels():
            self.relabel(id, lambda _: labels)
        return self.open(id, passphrase=passphrase)

    def list(
        self,
        *,
        tag: str | None = None,
        agent: str | None = None,
        text: str | None = None,
        limit: int | None = None,
        passphrase: Secret = None,
    ) -> Hits[Entry]:
        """The sessions last written to first: those with this tag, in which this agent spoke, and with all of these
        words in the title or in one of their messages. Which agents spoke in an encrypted session is not known."""
        from handrail.sessions.looking import listed

        passphrase = self._secret(passphrase)
        return listed(self, tag, agent, words_of(text or ""), limit, passphrase)

    def search(self, text: str, *, limit: int = 20, passphrase: Secret = None) -> Hits[Found]:
        """The messages that hold every word of the text, in upper or lower case, also within a longer word; those of
        the session last written to first, and of one session the last first.

        Of encrypted sessions nothing is kept to be found by: with a passphrase they are read one by one, and without it
        they are named in `locked`.
        """
        from handrail.sessions.looking import looked_through

        passphrase, locked, most = self._secret(passphrase), dict[str, None](), max(0, limit)
        hits = tuple(islice(looked_through(self, words_of(text), most, passphrase, locked), most))
        return Hits(hits, locked)

    def _secret(self, passphrase: Secret) -> Passphrase | None:
        return hidden(passphrase) or self.passphrase

    def fork(self, id: str, *, at: str | None = None, as_: str, passphrase: Secret = None) -> Session:
        """A new session in this store that begins as this one, up to its message `at` or to its end.

        A fork of an encrypted session is encrypted too, with the same passphrase; with one, so is that of a plain one.
        Raises `UnknownSession`, `SessionExists`, `EncryptionError`, or `ForkRefused`: there is nothing to fork, no such
        message, or a call has no result there; then it names the nearest places where it can be.
        """
        from handrail.sessions.forking import fork

        passphrase = self._secret(passphrase)
        self._refuse_taken(as_)
        self.entry(id)
        return self._made(
            as_, passphrase, lambda path: fork(self.place(id), path, at=at, name=id, passphrase=passphrase)
        )

    def continue_from(self, sealed: Given, *, as_: str, passphrase: Secret = None) -> Session:
        """A new session in this store that goes on from a sealed copy, in a file or at a place; see
        `Session.continue_from`, which goes on in a file. Raises what that does."""
        passphrase = self._secret(passphrase)
        self._refuse_taken(as_)
        return self._made(as_, passphrase, lambda path: Session.continue_from(sealed, path, passphrase=passphrase).path)

    def _made(self, as_: str, passphrase: Passphrase | None, make: Callable[[Path], Where]) -> Session:
        from pathlib import Path
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="handrail-") as folder:
            self.import_(make(Path(folder, "made.jsonl")), as_=as_, passphrase=passphrase)
        return self.open(as_, passphrase=passphrase)

    def rename(self, id: str, title: str) -> None:
        """Gives a session this title. Raises `UnknownSession`."""
        self.relabel(id, lambda labels: msgspec.structs.replace(labels, title=_label(title)))

    def tag(self, id: str, *tags: str) -> None:
        """Marks a session with these tags too. Raises `UnknownSession`."""
        self.relabel(id, lambda labels: Labels(labels.title, _tags((*labels.tags, *tags))))

    def untag(self, id: str, *tags: str) -> None:
        """Takes these tags off a session, where it has them. Raises `UnknownSession`."""
        self.relabel(
            id, lambda labels: Labels(labels.title, tuple([tag for tag in labels.tags if tag not in _tags(tags)]))
        )

    def prune(
        self, older_than: timedelta, *, tag: str | None = None, parents: bool = False, dry_run: bool = False
    ) -> tuple[str, ...]:
        """Deletes what was not written to for so long, with this tag if one is given, and gives the ids. A `dry_run`
        gives them and deletes nothing.

        A session that is open for writing stays. So does one with forks that stay, unless `parents` is said.
        """
        before = self.clock() - older_than.total_seconds() * 1000
        entries = list(self.entries())
        old = {entry.id for entry in entries if entry.updated_at < before and (tag is None or tag in entry.tags)}
        kept = [(entry.id, entry.parent) for entry in entries]
        gone: list[str] = []
        while leaves := old if parents else old - {parent for _, parent in kept}:
            for id in sorted(leaves):
                try:
                    if not dry_run:
                        self.delete(id)
                    gone.append(id)
                except (SessionConflict, UnknownSession):
                    pass  # in use, or gone already
            old = old - leaves
            kept = [(id, parent) for id, parent in kept if id not in gone]
        return tuple(gone)

    def ancestry(self, id: str) -> tuple[str, ...]:
        """The session itself, the one it was forked from, and so on, as far as they are kept here. Raises
        `UnknownSession`."""
        line, parent = [id], self.entry(id).parent
        while parent is not None and parent not in line:
            try:
                above = self.entry(parent).parent
                line.append(parent)
                parent = above
            except UnknownSession:
                break
        return tuple(line)

    def forks(self, id: str) -> tuple[str, ...]:
        """The sessions that were forked from this one, last written to first."""
        return tuple([entry.id for entry in self.entries() if entry.parent == id])

    def export(self, id: str, path: str | os.PathLike[str]) -> Path:
        """Copies a session to a new file, byte for byte, an encrypted one as it stands; what is torn at the end is left
        out. A sealed copy is made by `store.open(id).export(path)`.

        Raises `UnknownSession`, `DamagedSession` where a line does not follow the one before it, `SessionExists`, or
        `JournalFailed` where no file can be made.
        """
        from pathlib import Path

        from handrail.sessions.copies import copied, whole_lines

        self.entry(id)
        return copied(whole_lines(Reading(self.place(id), locked=True)), Path(path))

    def import_(self, path: Given, *, as_: str | None = None, passphrase: Secret = None) -> str:
        """Copies a session file in under this id or the one in its header, and gives the id. Its lines are kept byte
        for byte, those of an encrypted one as they stand; a compressed export is expanded. With a passphrase a plain
        session is encrypted on the way, and an encrypted one has to be encrypted with it.

        Raises `SessionExists`, what reading a session raises, and `DamagedSession` where a line does not follow the one
        before it; nothing is kept then.
        """
        from handrail.sessions.copies import whole_lines
        from handrail.sessions.exports import opened, rewritten

        passphrase, encrypts = self._secret(passphrase), False
        if passphrase is None:
            reading = Reading(located(path), locked=True)
        else:
            reading, encrypts = opened(located(path), None, passphrase)
        id = reading.header.id if as_ is None else as_
        self._refuse_taken(id)
        self.prepare(id)
        lines = rewritten(reading, passphrase, sealed=reading.sealed) if encrypts else whole_lines(reading)
        first = next(lines)  # a key is made here, and not while others wait for the database
        self.adopt(id, chain((first,), lines))
        return id

    def _refuse_taken(self, id: str) -> None:
        place = self.place(id)
        if place.exists():
            raise SessionExists(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _tags(tags: Iterable[str]) -> tuple[str, ...]:
    # As in a message, half of a surrogate pair becomes U+FFFD: no store could keep it.
    return tuple(dict.fromkeys(map(_label, tags)))


def _label(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a title or a tag of a session is text, not {type(text).__name__}")
    return whole(text)
