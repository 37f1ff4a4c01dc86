"""Sessions in a SQLite database: one file for all of them, for one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock

from handrail.filters.sources import Clock
from handrail.sessions.errors import SessionConflict, StoreBusy, StoreFailed, UnsupportedStore
from handrail.sessions.opening import FLAGS, lock
from handrail.sessions.owning import OpenFile, own
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.rows import Release
from handrail.sessions.table_stores import TableStore
from handrail.sessions.tables import VERSION, Connection, Database
from handrail.sessions.writer import Fsync

# Another session's commit takes well under a millisecond and is no conflict: it is waited for longer than any queue of
# them lasts.
_BUSY = 30.0
_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS handrail_store (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS handrail_sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    labels BLOB NOT NULL DEFAULT '{}',
    seen INTEGER NOT NULL DEFAULT 0,
    summary BLOB NOT NULL DEFAULT '{}',
    parent BLOB,
    encrypted INTEGER NOT NULL DEFAULT 0,
    behind INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS handrail_lines (place INTEGER PRIMARY KEY, line BLOB NOT NULL, written_at INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS handrail_texts USING fts5 (folded, tokenize = 'trigram');
INSERT INTO handrail_store SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM handrail_store);
COMMIT;
"""


class SqliteStore(TableStore):
    """Sessions in the SQLite database at this path, which is made at the first use.

    It is in WAL mode: readers and a writer do not wait for each other, and writers of different sessions only for each
    other's commits. `lock_timeout` is how many seconds a session waits for another writer of the same session.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        passphrase: Passphrase | None = None,
    ) -> None:
        name = f"sqlite:///{os.fspath(path)}"
        database = _Sqlite(name, Path(path), max(_BUSY, lock_timeout))
        super().__init__(name, database, fsync, lock_timeout, clock, passphrase)


class _Sqlite(Database):
    # A SELECT from the table that it inserts into is written to a table of its own first. Here no time is found, and
    # so no row is added, where the line before is not there.
    go_on = """INSERT OR IGNORE INTO handrail_lines (place, line, written_at)
        VALUES (?, ?, (SELECT ? FROM handrail_lines WHERE place = ?))"""
    line_length = "CASE typeof(line) WHEN 'blob' THEN length(line) ELSE length(CAST(line AS BLOB)) END"
    add_text = "INSERT INTO handrail_texts (rowid, folded) VALUES (?, ?)"
    drop_texts = "DELETE FROM handrail_texts WHERE rowid >= ? AND rowid < ?"

    def __init__(self, name: str, path: Path, busy: float) -> None:
        self.name = name
        self._path = path.absolute()
        self._busy = busy
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._durable = False
        self._forked: list[sqlite3.Connection | None] = []
        own(self)

    def disown(self) -> None:
        # A thread that was at it while the process was forked is not in the child: it would never be through.
        self._lock = RLock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._lock, _told(self.name):
            yield self._connected()

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Connection]:
        with self._lock, _told(self.name):
            connection = self._connected()
            if durable is not self._durable:
                self._set(connection, durable)
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def run(self, sql: str, values: Sequence[object], *, durable: bool) -> int:
        with self._lock:
            try:
                connection = self._connected()
                if durable is not self._durable:
                    self._set(connection, durable)
                return connection.execute(sql, values).rowcount
            except sqlite3.Error as error:
                raise _failure(self.name, error) from error

    def _set(self, connection: sqlite3.Connection, durable: bool) -> None:
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._durable = durable

    def _connected(self) -> sqlite3.Connection:
        # A connection must not be used, nor closed, in a process that was forked from the one that made it.
        if self._connection is None or self._process != os.getpid():
            self._forked.append(self._connection)
            self._connection, self._process = self._connect(), os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | FLAGS, 0o600))
        except (OSError, ValueError) as error:
            raise StoreFailed(self.name, getattr(error, "strerror", None) or str(error)) from error
        # Two that make the tables at once would be told that the database is locked.
        release = self.hold("schema", self._busy)
        if release is None:
            raise StoreBusy(self.name, "another process is making its tables")
        connection = sqlite3.connect(self._path, timeout=self._busy, isolation_level=None, check_same_thread=False)
        try:
            found = _version(connection)
            if found is not None and found != VERSION:
                raise UnsupportedStore(self.name, found, VERSION)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            self._durable = False
            if found is None:
                connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        finally:
            release()
        return connection

    def hold(self, key: str, timeout: float) -> Release | None:
        path = self._path.with_name(f"{self._path.name}-{sha256(key.encode()).hexdigest()[:20]}.lock")
        until = time.monotonic() + timeout
        while True:
            try:
                file = OpenFile(os.open(path, os.O_RDWR | os.O_CREAT | FLAGS, 0o600), str(path))
            except (OSError, ValueError) as error:
                raise StoreFailed(self.name, getattr(error, "strerror", None) or str(error)) from error
            try:
                lock(file.fileno(), path, max(0.0, until - time.monotonic()))
                if os.fstat(file.fileno()).st_nlink:
                    return _Lock(path, file)
            except BaseException as error:
                file.close()
                if isinstance(error, SessionConflict):
                    return None
                raise
            file.close()  # who had it before has taken the file away: there may be a new one

    def matching(self, connection: Connection, words: tuple[str, ...]) -> list[int]:
        # The index knows three letters in a row; what is shorter is looked for in the texts themselves.
        indexed = " AND ".join([f'"{word.replace(_QUOTE, _QUOTE * 2)}"' for word in words if len(word) >= 3])
        match, values = ("handrail_texts MATCH ? AND ", [indexed]) if indexed else ("", [])
        each = " AND ".join(["instr(folded, ?) > 0"] * len(words))
        return [key for (key,) in connection.execute(_MATCHING.format(match + each), (*values, *words)).fetchall()]

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                connection.close()


_QUOTE = '"'
_MATCHING = """SELECT handrail_texts.rowid FROM handrail_texts
    JOIN handrail_sessions ON number = handrail_texts.rowid >> 36
    WHERE {} ORDER BY updated_at DESC, number DESC, handrail_texts.rowid DESC"""


class _Lock:
    """A file that is locked, and goes with its lock."""

    def __init__(self, path: Path, file: OpenFile) -> None:
        self._path = path
        self._file = file

    def __call__(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def _version(connection: sqlite3.Connection) -> int | None:
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'handrail_store'").fetchone()
    row = connection.execute("SELECT version FROM handrail_store").fetchone() if known else None
    return int(row[0]) if row else None


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _failure(name, error) from error


def _failure(name: str, error: sqlite3.Error) -> StoreFailed:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(name, "busy with other writers")
    return StoreFailed(name, str(error))
