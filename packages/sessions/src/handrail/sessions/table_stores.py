"""A store over a database: ids, entries, labels and searches in its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from handrail.filters.sources import Clock
from handrail.sessions.codec import decode
from handrail.sessions.errors import SessionConflict, SessionExists, UnknownSession
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.records import MessageRecord, ToolResultRecord, Unknown
from handrail.sessions.rows import RowPlace
from handrail.sessions.searching import Entry, Found, Summary, found
from handrail.sessions.storing import Labels, Relabel, Store
from handrail.sessions.tables import (
    ADD_LINE,
    BEGIN,
    BITS,
    Database,
    TableRows,
    catch_up,
    data_of,
    refuse_too_long,
    understood,
)
from handrail.sessions.writer import Fsync


class TableStore(Store):
    """A store over a database."""

    def __init__(
        self,
        name: str,
        database: Database,
        fsync: Fsync,
        lock_timeout: float,
        clock: Clock | None,
        passphrase: Passphrase | None,
    ) -> None:
        super().__init__(name, fsync, lock_timeout, clock, passphrase)
        self._database = database

    def place(self, id: str) -> RowPlace:
        return RowPlace(TableRows(self._database, self._checked(id), self.clock), f"{self.name}#{id}")

    def _checked(self, id: str) -> str:
        try:
            if id.encode():
                return id
        except UnicodeEncodeError:
            pass
        raise UnknownSession(self.name, id, "no session can have this id")

    def entries(self) -> Iterable[Entry]:
        self._catch_up()
        with self._database.reading() as connection:
            rows = connection.execute(f"{_ENTRIES} ORDER BY updated_at DESC, number DESC").fetchall()
        return (_entry(self.name, row) for row in rows)

    def entry(self, id: str) -> Entry:
        key = self._checked(id).encode()
        with self._database.reading() as connection:
            row = connection.execute(f"{_BEHIND} AND id = ?", (key,)).fetchone()
        if row is not None:
            catch_up(self._database, row[0])
        with self._database.reading() as connection:
            row = connection.execute(f"{_ENTRIES} WHERE id = ?", (key,)).fetchone()
        if row is None:
            raise UnknownSession(self.name, id)
        return _entry(self.name, row)

    def encrypted(self) -> Sequence[str]:
        self._catch_up()
        with self._database.reading() as connection:
            rows = connection.execute(_ENCRYPTED).fetchall()
        return [_id(id) for (id,) in rows]

    def _catch_up(self) -> None:
        with self._database.reading() as connection:
            rows = connection.execute(_BEHIND).fetchall()
        for (number,) in rows:
            catch_up(self._database, number)

    def found(self, words: tuple[str, ...]) -> Iterator[Found]:
        self._catch_up()
        with self._database.reading() as connection:
            keys = self._database.matching(connection, words)
        for key in keys:
            with self._database.reading() as connection:
                row = connection.execute(_LINE, (key >> BITS, key)).fetchone()
            record = decode(data_of(row[1])) if row is not None else None
            record = record.record if isinstance(record, Unknown) else record
            if isinstance(record, MessageRecord | ToolResultRecord):
                yield found(_id(row[0]), record, words)

    def relabel(self, id: str, change: Relabel) -> None:
        key = self._checked(id).encode()
        with self._database.writing() as connection:
            select = f"SELECT labels FROM handrail_sessions WHERE id = ?{self._database.for_update}"
            row = connection.execute(select, (key,)).fetchone()
            if row is None:
                raise UnknownSession(self.name, id)
            labels = msgspec.json.encode(change(understood(self.name, row[0], Labels)))
            connection.execute("UPDATE handrail_sessions SET labels = ? WHERE id = ?", (labels, key))

    def adopt(self, id: str, lines: Iterator[bytes]) -> None:
        key, now = self._checked(id).encode(), self.clock()
        with self._database.writing(durable=True) as connection:
            row = connection.execute(BEGIN, (key, now, now)).fetchone()
            if row is None:
                raise SessionExists(self.place(id))
            connection.executemany(ADD_LINE, _rows(row[0] << BITS, lines, now))
        catch_up(self._database, row[0], settled=True)

    def delete(self, id: str) -> None:
        place = self.place(id)
        release = place.rows.hold(0.0)
        if release is None:
            raise SessionConflict(place, 0.0)
        try:
            with self._database.writing() as connection:
                delete = "DELETE FROM handrail_sessions WHERE id = ? RETURNING number"
                row = connection.execute(delete, (id.encode(),)).fetchone()
                if row is None:
                    raise UnknownSession(self.name, id)
                whole = row[0] << BITS, (row[0] + 1) << BITS
                connection.execute("DELETE FROM handrail_lines WHERE place >= ? AND place < ?", whole)
                connection.execute(self._database.drop_texts, whole)
        finally:
            release()

    def close(self) -> None:
        self._database.close()


_ENTRIES = "SELECT id, labels, summary, created_at, updated_at, parent, seen FROM handrail_sessions"
_ENCRYPTED = "SELECT id FROM handrail_sessions WHERE encrypted = 1 ORDER BY updated_at DESC, number DESC"
_BEHIND = f"""SELECT number FROM handrail_sessions WHERE behind = 1
    AND EXISTS (SELECT 1 FROM handrail_lines
        WHERE place >= (number << {BITS}) + seen AND place < (number + 1) << {BITS})"""
_LINE = "SELECT id, line FROM handrail_sessions, handrail_lines WHERE number = ? AND place = ?"


def _rows(base: int, lines: Iterator[bytes], now: int) -> Iterator[tuple[int, bytes, int]]:
    start = 0
    for line in lines:
        refuse_too_long(start)
        yield base + start, line, now
        start += len(line) + 1


def _id(data: object) -> str:
    # No store writes an id that is no UTF-8; others may.
    return data_of(data).decode(errors="replace")


def _entry(store: str, row: Sequence[Any]) -> Entry:
    id, labels, summary, created_at, updated_at, parent, size = row
    known, seen = understood(store, labels, Labels), understood(store, summary, Summary)
    return Entry(
        id=_id(id),
        title=known.title or seen.title,
        tags=known.tags,
        agents=tuple(seen.agents),
        messages=seen.counted,
        created_at=seen.created_at or created_at,
        updated_at=updated_at,
        parent=_id(parent) if parent is not None else None,
        size=size,
        encrypted=seen.encrypted,
    )
