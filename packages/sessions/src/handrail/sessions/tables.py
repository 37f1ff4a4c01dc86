"""Sessions in a database's tables, as far as all databases do it alike: SQL that they all know, with `?` for a value.

A line's key is its session's number and its offset in one whole number, so that a session's lines stand together. What
entries tell and searches find is taken out of the lines when a turn ends, and at the latest when it is asked for.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol, TypeVar

import msgspec

from handrail.filters.sources import Clock
from handrail.sessions.codec import decode
from handrail.sessions.errors import StoreFailed
from handrail.sessions.lines import ZEROS, link
from handrail.sessions.rows import Release, Row, Rows
from handrail.sessions.searching import Summary

VERSION = 1
BITS = 36
"""A session has up to 64 GiB, and there are up to 2**27 of them over time."""
_SPAN = 1 << 20
_Kind = TypeVar("_Kind")


class Cursor(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What runs statements, within a transaction."""

    def execute(self, sql: str, values: Sequence[object] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, values: Iterable[Sequence[object]], /) -> object: ...


class Database(ABC):
    """A database with the tables of a store. What goes wrong in it is `StoreFailed`, or `StoreBusy` where others kept
    it busy for too long."""

    name: str
    """What errors call it; no password is in it."""
    add_text: str
    """The statement that keeps a text under its line's key."""
    drop_texts: str
    """The statement that drops the texts from one key up to another."""
    go_on = """INSERT INTO handrail_lines (place, line, written_at)
        SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM handrail_lines WHERE place = ?) ON CONFLICT DO NOTHING"""
    """The statement that adds a line where its key is free and that of the line before is taken, and else adds none."""
    line_length = "length(line)"
    """What gives the bytes of a line."""
    for_update = ""
    """What ends a SELECT whose row is changed next."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Connection]:
        """What a block reads, one block at a time in this process."""

    @abstractmethod
    def writing(self, *, durable: bool = False) -> AbstractContextManager[Connection]:
        """A transaction: what a block does happens whole, or not where it raises. With `durable` it is on the disk."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[object], *, durable: bool) -> int:
        """One statement as a transaction of its own; gives how many rows it changed."""

    @abstractmethod
    def hold(self, key: str, timeout: float) -> Release | None:
        """Keeps all others in this program and elsewhere from holding the same key; None where one did for so long."""

    @abstractmethod
    def matching(self, connection: Connection, words: tuple[str, ...]) -> list[int]:
        """The keys of the lines whose texts hold all of these words, in the order of `Store.found`."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of its connection."""


class TableRows(Rows):
    """The rows of one session. An append is one row of one table: that nobody else has appended is told by its key,
    which is free, and that of the line before, which is taken."""

    def __init__(self, database: Database, id: str, clock: Clock) -> None:
        self._database = database
        self._id = id.encode()
        self._clock = clock
        self._base = 0
        self._last = -1
        self._marked = False

    def size(self) -> int:
        key, length, _ = self._end(self._database.line_length)
        return key - self._base + length + 1 if key >= 0 else 0

    def head(self) -> str:
        key, line, _ = self._end("line")
        return link(data_of(line)) if key >= 0 else ZEROS

    def _end(self, what: str) -> Any:
        with self._database.reading() as connection:
            row = connection.execute(_LAST.format(what), (self._id,)).fetchone() or (-1, 0, 0)
        self._last, self._base = row[0], row[2] << BITS
        return row

    def since(self, offset: int, span: int) -> Sequence[Row]:
        base = self._base
        with self._database.reading() as connection:
            rows = connection.execute(_SINCE, (base, base + offset, base + offset + span)).fetchall()
        return [(key - base, data_of(line)) for key, line, _ in rows]

    def write(self, before: str, rows: Sequence[Row], head: str, end: int, *, durable: bool) -> bool:
        refuse_too_long(end)
        now = self._clock()
        if self._marked and len(rows) == 1:
            start, line = rows[0]
            values = self._base + start, line, now, self._last
            if not self._database.run(self._database.go_on, values, durable=durable):
                return False
        else:
            with self._database.writing(durable=durable) as connection:
                if not self._add(connection, before, rows, now):
                    return False
            self._marked = True
        self._last = self._base + rows[-1][0]
        return True

    def _add(self, connection: Connection, before: str, rows: Sequence[Row], now: int) -> bool:
        if before == ZEROS:
            row = connection.execute(BEGIN, (self._id, now, now)).fetchone()
            if row is None:
                return False
            self._base = row[0] << BITS
        else:
            start, line = rows[0]
            if connection.execute(self._database.go_on, (self._base + start, line, now, self._last)).rowcount != 1:
                return False
            connection.execute("UPDATE handrail_sessions SET behind = 1 WHERE number = ?", (self._base >> BITS,))
            rows = rows[1:]
        connection.executemany(ADD_LINE, [(self._base + start, line, now) for start, line in rows])
        return True

    def flush(self) -> None:
        touch = "UPDATE handrail_sessions SET behind = behind WHERE number = ?"
        self._database.run(touch, (self._base >> BITS,), durable=True)

    def settled(self) -> None:
        if self._marked:
            catch_up(self._database, self._base >> BITS, settled=True)
            self._marked = False

    def hold(self, timeout: float) -> Release | None:
        return self._database.hold(self._id.hex(), timeout)


_LAST = f"""SELECT place, {{}}, number FROM handrail_sessions, handrail_lines
    WHERE id = ? AND place >= number << {BITS} AND place < (number + 1) << {BITS} ORDER BY place DESC LIMIT 1"""
_SINCE = """SELECT place, line, written_at FROM handrail_lines
    WHERE place >= (SELECT max(place) FROM handrail_lines WHERE place >= ? AND place <= ?) AND place < ?
    ORDER BY place"""
BEGIN = """INSERT INTO handrail_sessions (id, created_at, updated_at, behind) VALUES (?, ?, ?, 1)
    ON CONFLICT DO NOTHING RETURNING number"""
ADD_LINE = "INSERT INTO handrail_lines (place, line, written_at) VALUES (?, ?, ?)"


def data_of(value: object) -> bytes:
    """What a column of bytes holds: others than a store may have written text there, or a number."""
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else str(value).encode()


def understood(store: str, data: object, kind: type[_Kind]) -> _Kind:
    """What a store keeps beside a session's lines. Raises `StoreFailed` where others have changed it."""
    try:
        return msgspec.json.decode(data_of(data), type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise StoreFailed(store, f"what stands beside a session's lines is not as it was written: {error}") from None


def refuse_too_long(end: int) -> None:
    """Raises `OSError` where a session would reach into the keys of the next."""
    if end >> BITS:
        raise OSError(errno.EFBIG, "a session in a database has up to 64 GiB")


def catch_up(database: Database, number: int, *, settled: bool = False) -> None:
    """Takes what entries tell and searches find out of the lines of a session that were written since the last time.
    Its writer says where it is `settled`: until it writes again there is nothing to catch up with."""
    while _step(database, number, settled):
        pass


def _step(database: Database, number: int, settled: bool) -> bool:
    base = number << BITS
    with database.writing() as connection:
        select = f"SELECT seen, summary, updated_at FROM handrail_sessions WHERE number = ?{database.for_update}"
        row = connection.execute(select, (number,)).fetchone()
        if row is None:
            return False
        begun, summary, at = int(row[0]), understood(database.name, row[1], Summary), row[2]
        seen, texts = begun, []
        rows = connection.execute(_AFTER, (base + seen, base + seen + _SPAN)).fetchall()
        for key, line, _ in rows:
            data = data_of(line)
            seen = key - base + len(data) + 1
            with suppress(ValueError):  # `verify` tells of it
                if not summary.encrypted and (text := summary.take(decode(data))):
                    texts.append((key, text))
        connection.executemany(database.add_text, texts)
        more = seen - begun >= _SPAN
        parent = summary.parent.encode() if summary.parent is not None else None
        values = seen, msgspec.json.encode(summary), parent, int(summary.encrypted), rows[-1][2] if rows else at
        connection.execute(_SEEN, (*values, int(more or not settled), number))
    return more


_AFTER = "SELECT place, line, written_at FROM handrail_lines WHERE place >= ? AND place < ? ORDER BY place"
_SEEN = """UPDATE handrail_sessions
    SET seen = ?, summary = ?, parent = ?, encrypted = ?, updated_at = ?, behind = ? WHERE number = ?"""
