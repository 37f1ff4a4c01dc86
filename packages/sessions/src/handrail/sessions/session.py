"""A session: a conversation in a file, or in a store, as the agents that go on with it see it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from handrail.filters.histories import History
from handrail.filters.messages import Message
from handrail.filters.sources import Clock, IdSource
from handrail.filters.views import View
from handrail.sessions.errors import SessionChanged, SessionConflict
from handrail.sessions.loaded import Loaded
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.places import Given, is_begun, located
from handrail.sessions.reader import Reading, read
from handrail.sessions.records import (
    AgentRecord,
    AnyRecord,
    HandoffRecord,
    MessageRecord,
    SessionRecord,
    ToolResultRecord,
    Writable,
)
from handrail.sessions.tails import TornTail
from handrail.sessions.usages import Spent, Usage
from handrail.sessions.views import history_of
from handrail.sessions.writer import Fsync, Journal, append_all

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.opening import Compression

_LATER = 1024
"""How many records are kept at most before they are taken in."""


class Session:
    """A session, in a file or at a place. It is read when something of it is asked for, and made and locked when
    something is written.

    `fsync` is `always`, `turn` or `never` (see `Journal`), `lock_timeout` the seconds to wait for another writer. With
    a `passphrase` the session is encrypted, or opened where it is there; its key is made once.
    One that is not `lasting` is closed at the end of every run, unless it is entered with `with`.
    `append` writes records and leaves `views` alone: who appends keeps them, as the agent loop does, or calls
    `reload`. Where the disk refuses a record, nothing more is written (`JournalFailed` again, as it would follow a gap)
    until `reload` or `close`, or until another run begins; what is asked for then is what the file holds.
    """

    def __init__(
        self,
        path: Given,
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        passphrase: Secret = None,
        lasting: bool = True,
    ) -> None:
        passphrase = hidden(passphrase)
        self.path = located(path)
        self._passphrase = passphrase
        # No reference to itself: a session that nobody has any more goes at once, and its lock with it.
        self._open = partial(
            Journal.open,
            self.path,
            fsync=fsync,
            lock_timeout=lock_timeout,
            clock=clock,
            ids=ids,
            passphrase=passphrase,
        )
        self._journal: Journal | None = None
        self._loaded: Loaded | None = None
        self._in_use = False
        self._lasting = lasting

    @classmethod
    def open(
        cls,
        path: Given,
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        passphrase: Secret = None,
    ) -> Self:
        """The session at this path, read at once. Raises `NotASession`, `UnsupportedVersion`, `EncryptionError` or
        `DamagedSession`."""
        passphrase = hidden(passphrase)
        session = cls(path, fsync=fsync, lock_timeout=lock_timeout, clock=clock, ids=ids, passphrase=passphrase)
        session.reload()
        return session

    @classmethod
    def continue_from(cls, sealed: Given, path: str | os.PathLike[str], *, passphrase: Secret = None) -> Self:
        """A session at a new path that goes on from a sealed copy: its records, and its head hash as `continues`. With
        a passphrase the new one is encrypted, whether the copy is or not.

        Raises `OSError`, `NotASession`, `UnsupportedVersion`, `EncryptionError` or `DamagedSession` where the sealed
        copy cannot be read or is not whole, `SessionExists` where there is a file at the path, `SessionConflict` or
        `JournalFailed` where none can be made. What was begun does not stay.
        """
        from pathlib import Path

        from handrail.sessions.exports import opened, to_go_on_from
        from handrail.sessions.making import making

        passphrase = hidden(passphrase)
        reading, _ = opened(located(sealed), None, passphrase)
        target = Path(path)
        with (
            making(target) as copy,
            Journal.create(
                target, continues=reading.head, fsync="never", passphrase=passphrase, onto=copy.fileno()
            ) as journal,
        ):
            append_all(journal, to_go_on_from(reading))
        return cls(target, passphrase=passphrase)

    def reload(self) -> None:
        """Read the file again."""
        self._give_up_failed()
        self._loaded = self._load()

    def _load(self) -> Loaded:
        return Loaded(self.reading() if is_begun(self.path) else None)

    def reading(self) -> Reading:
        """The session as it stands in its file, to be read record by record. Raises what `read` does."""
        return read(self.path, passphrase=self._passphrase)

    @property
    def _state(self) -> Loaded:
        if self._journal is not None and self._journal.failure is not None:
            return self._load()  # the file alone: what the run that failed still holds of it follows a gap
        if self._loaded is None:
            self._loaded = self._load()
        self._loaded.catch_up()
        return self._loaded

    def _give_up_failed(self) -> None:
        if self._journal is not None and self._journal.failure is not None:
            self.close()

    @property
    def views(self) -> dict[str, View]:
        """Each agent's view, by agent path. Whoever appends records keeps it up to date."""
        return self._state.views

    @property
    def handoffs(self) -> list[HandoffRecord]:
        """The handoffs so far, in order."""
        return self._state.handoffs

    @property
    def agents(self) -> dict[str, AgentRecord]:
        """The agents that took part, by name, as they were last written down."""
        return self._state.agents

    @property
    def usage(self) -> Usage:
        """What the model calls so far cost."""
        return self._state.usage

    @property
    def spent(self) -> Spent:
        """What its runs used, as their ends say, and of a run that did not come to its end what the records show. Its
        `cost` is None where that of a run is not told."""
        return self._state.spent

    @property
    def state(self) -> dict[str, Any]:
        """The shared state of the conversation, by channel."""
        return dict(self._state.states.shared)

    @property
    def private_states(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The private states of middleware that live on, by agent path and middleware. Whoever appends records keeps
        them up to date."""
        return self._state.states.privates

    @property
    def about(self) -> SessionRecord | None:
        """What is known of the session as a whole, such as the format it was imported from."""
        return self._state.about

    @property
    def active_agent(self) -> str | None:
        """The agent that goes on: the one the conversation was last handed to, else the one it began with; None before
        anything was said."""
        return self._state.active

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """A run has this session for itself as long as the block lasts. Raises `SessionConflict` where another has."""
        if self._in_use:
            raise SessionConflict(self.path, 0.0, "another run in this program goes on with it")
        self._give_up_failed()
        self._in_use = True
        try:
            yield
        finally:
            self._in_use = False
            if not self._lasting:
                self.close()

    @property
    def torn(self) -> TornTail | None:
        """What a crash had left at the end of the file; it is cut when the session is first written to."""
        return self._state.torn

    @property
    def log(self) -> tuple[Message, ...]:
        """Every message that was said, once, in the order it came in. It is read from the file each time."""
        said = (record for record in self.records() if isinstance(record, MessageRecord | ToolResultRecord))
        return tuple([record.message for record in said])

    def records(self) -> Iterator[AnyRecord]:
        """Every record, in order, none where nothing was written yet. They are read from the file each time."""
        return self.reading().records() if is_begun(self.path) else iter(())

    def tail(self, count: int) -> tuple[Message, ...]:
        """The last so many messages that were said, in the order they came in. They are read from the end: that takes
        no longer in a long session than in a short one."""
        if count <= 0 or not is_begun(self.path):
            return ()
        records = self.reading().backwards()
        said = (record.message for record in records if isinstance(record, MessageRecord | ToolResultRecord))
        return tuple(islice(said, count))[::-1]

    def history(self, agent: str | None = None) -> History:
        """What one agent (its name, or its agent path) sees; without a name the active agent, or the only one.

        Raises `UnknownView`, naming those there are.
        """
        views = self.views
        if agent is None:
            agent = self.active_agent or (next(iter(views)) if len(views) == 1 else None)
        return history_of(views, agent)

    def append(self, *records: Writable) -> None:
        """Writes records as one batch. Raises `SessionConflict`, `SealedSession`, `NotASession` or `JournalFailed`."""
        journal = self._journal
        if journal is None:
            journal = self._begin()
        head = journal.head
        try:
            journal.append_all(records)
        except BaseException:
            # After a failure the file alone tells what it holds; after an interrupt too, since all may stand in it.
            if journal.head != head or journal.writing is not None:
                self._loaded = None
            raise
        loaded = self._loaded
        if loaded is not None:
            later = loaded.later
            later += records
            if len(later) > _LATER:
                loaded.catch_up()

    def _begin(self) -> Journal:
        journal = self._open()
        if self._loaded is not None and self._loaded.head != journal.opened_at:
            journal.close()
            raise SessionChanged(self.path)
        self._journal = journal
        return journal

    def turn_end(self) -> None:
        """A turn has ended: what was written is synced, as the policy says."""
        if self._journal is not None:
            self._journal.turn_end()

    def before_effect(self) -> None:
        """Something is about to happen in the world: what was written is synced first, as the policy says."""
        if self._journal is not None:
            self._journal.before_effect()

    def export(self, path: str | os.PathLike[str], *, compression: Compression | None = None) -> Path:
        """A sealed copy at a new path: the same lines, and a footer. The session itself goes on. A path that ends in
        `.gz` or `.zst`, or a `compression`, gives a compressed one."""
        from handrail.sessions.upgrades import export

        return export(self.path, path, passphrase=self._passphrase, compression=compression)

    def fork(self, path: str | os.PathLike[str], *, at: str | None = None) -> Session:
        """A session in a new file that has this one's records up to the message `at`, or all of them, encrypted with
        the same passphrase where this one is; a store's `fork` makes one in the store. Raises `ForkRefused`, naming the
        nearest places, where `at` stands between a call and its result, and what else `forking.fork` raises."""
        from handrail.sessions.forking import fork

        forked = fork(self.path, path, at=at, passphrase=self._passphrase)
        return type(self)(forked, passphrase=self._passphrase)

    def close(self) -> None:
        """Syncs and lets go of the file; the session can still be read, and be written to again."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            self._loaded = None

    def __enter__(self) -> Self:
        self._lasting = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
