"""Sessions in memory: for tests, and for what need not outlive the program."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from threading import Condition
from weakref import WeakValueDictionary

from handrail.filters.sources import Clock
from handrail.sessions.errors import SessionConflict, SessionExists, UnknownSession
from handrail.sessions.lines import ZEROS, link
from handrail.sessions.owning import own
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.rows import Release, Row, RowPlace, Rows
from handrail.sessions.scanning import Scan, scanned
from handrail.sessions.searching import Entry, Found
from handrail.sessions.storing import Labels, Relabel, Store
from handrail.sessions.writer import Fsync


class MemoryStore(Store):
    """Sessions in memory; they are gone with the store."""

    def __init__(
        self,
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        passphrase: Passphrase | None = None,
    ) -> None:
        super().__init__("memory:", fsync, lock_timeout, clock, passphrase)
        self._kept = _Memory()

    def place(self, id: str) -> RowPlace:
        try:
            if id.encode():
                return RowPlace(_MemoryRows(self._kept, id, self.clock), f"{self.name}#{id}")
        except UnicodeEncodeError:
            pass
        raise UnknownSession(self.name, id, "no session can have this id")

    def entries(self) -> Iterator[Entry]:
        with self._kept.changed:
            newest = sorted(self._kept.sessions.items(), key=lambda item: item[1].turn, reverse=True)
        return (self._entry(id, session) for id, session in newest)

    def entry(self, id: str) -> Entry:
        return self._entry(id, self._session(id))

    def _session(self, id: str) -> _Kept:
        with self._kept.changed:
            session = self._kept.sessions.get(id)
        if session is None:
            raise UnknownSession(self.name, id)
        return session

    def _entry(self, id: str, session: _Kept) -> Entry:
        seen = session.scan.to(self.place(id), session.size)
        return Entry(
            id=id,
            title=session.labels.title or seen.title,
            tags=session.labels.tags,
            agents=tuple(seen.agents),
            messages=seen.counted,
            created_at=seen.created_at,
            updated_at=session.updated_at,
            parent=seen.parent,
            encrypted=seen.encrypted,
            size=session.size,
        )

    def found(self, words: tuple[str, ...]) -> Iterator[Found]:
        for entry in self.entries():
            if not entry.encrypted:
                yield from scanned(entry.id, self.place(entry.id), words)

    def relabel(self, id: str, change: Relabel) -> None:
        session = self._session(id)
        with self._kept.changed:
            session.labels = change(session.labels)

    def adopt(self, id: str, lines: Iterator[bytes]) -> None:
        session, place = _Kept(), self.place(id)
        for line in lines:
            session.add([(session.size, line)], link(line))
        with self._kept.changed:
            if id in self._kept.sessions:
                raise SessionExists(place)
            session.turn, session.updated_at = next(self._kept.turns), self.clock()
            self._kept.sessions[id] = session

    def delete(self, id: str) -> None:
        with self._kept.changed:
            self._session(id)
            if id in self._kept.held:
                raise SessionConflict(self.place(id), 0.0)
            del self._kept.sessions[id]

    def close(self) -> None:
        pass


class _Kept:
    """One session: its lines, the offset at which each begins, and what is said about it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.starts: list[int] = []
        self.size = self.updated_at = self.turn = 0
        self.head = ZEROS
        self.labels = Labels()
        self.scan = Scan()

    def add(self, rows: Sequence[Row], head: str) -> None:
        """Adds the rows."""
        self.starts += [start for start, _ in rows]
        self.lines += [line for _, line in rows]
        self.head, self.size = head, rows[-1][0] + len(rows[-1][1]) + 1


class _Memory:
    """All sessions of a store, and which of them are open for writing; guarded by `changed`."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Kept] = {}
        self.turns = count(1)
        self.disown()
        own(self)

    def disown(self) -> None:
        # A thread that was at it while the process was forked is not in the child: it would never be through. Nor is
        # whoever had a session open there.
        self.changed = Condition()
        self.held: WeakValueDictionary[str, Release] = WeakValueDictionary()


class _MemoryRows(Rows):
    def __init__(self, kept: _Memory, id: str, clock: Clock) -> None:
        self._kept = kept
        self._id = id
        self._clock = clock

    def size(self) -> int:
        with self._kept.changed:
            session = self._kept.sessions.get(self._id)
            return session.size if session is not None else 0

    def head(self) -> str:
        with self._kept.changed:
            session = self._kept.sessions.get(self._id)
            return session.head if session is not None else ZEROS

    def since(self, offset: int, span: int) -> Sequence[Row]:
        with self._kept.changed:
            session = self._kept.sessions.get(self._id)
            if session is None:
                return ()
            first, last = bisect_right(session.starts, offset) - 1, bisect_left(session.starts, offset + span)
            return list(zip(session.starts[first:last], session.lines[first:last], strict=True))

    def write(self, before: str, rows: Sequence[Row], head: str, end: int, *, durable: bool) -> bool:
        with self._kept.changed:
            session = self._kept.sessions.get(self._id)
            if session is None and before == ZEROS:
                session = self._kept.sessions[self._id] = _Kept()
            if session is None or session.head != before:
                return False
            session.add(rows, head)
            session.turn, session.updated_at = next(self._kept.turns), self._clock()
            return True

    def flush(self) -> None:
        pass

    def settled(self) -> None:
        pass

    def hold(self, timeout: float) -> Release | None:
        kept = self._kept
        with kept.changed:
            if not kept.changed.wait_for(lambda: self._id not in kept.held, timeout):
                return None
            release = kept.held[self._id] = partial(self._let_go)
        return release

    def _let_go(self) -> None:
        with self._kept.changed:
            self._kept.held.pop(self._id, None)
            self._kept.changed.notify_all()
