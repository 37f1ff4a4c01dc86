"""Sessions in a Postgres database: for many machines. It needs the extra `postgres`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from hashlib import sha256
from threading import Condition, RLock
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakValueDictionary

from handrail.filters.sources import Clock
from handrail.sessions.errors import StoreFailed, UnknownStore, UnsupportedStore
from handrail.sessions.owning import own
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.rows import Release
from handrail.sessions.table_stores import TableStore
from handrail.sessions.tables import VERSION, Connection, Cursor, Database
from handrail.sessions.writer import Fsync

if TYPE_CHECKING:
    import psycopg

_POLL = 0.01
_SCHEMA = """
CREATE TABLE IF NOT EXISTS handrail_store (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS handrail_sessions (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    labels bytea NOT NULL DEFAULT '{}',
    seen bigint NOT NULL DEFAULT 0,
    summary bytea NOT NULL DEFAULT '{}',
    parent bytea,
    encrypted integer NOT NULL DEFAULT 0,
    behind integer NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS handrail_lines (place bigint PRIMARY KEY, line bytea NOT NULL, written_at bigint NOT NULL);
CREATE TABLE IF NOT EXISTS handrail_texts (place bigint PRIMARY KEY, folded text NOT NULL);
INSERT INTO handrail_store SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM handrail_store);
"""


class PostgresStore(TableStore):
    """Sessions in the Postgres database that a `postgresql://` URL names, in tables that are made at the first use.

    A session that is open for writing is held by an advisory lock of the store's one connection; where that is lost the
    lock is too, and what another writer wrote then is not written over. The password is in no name, error or log.
    """

    def __init__(
        self,
        url: str,
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        passphrase: Passphrase | None = None,
    ) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError:
            known = ("a folder/", "sqlite:///path.db", "with `pip install handrail-sessions[postgres]` this one")
            raise UnknownStore("psycopg is not installed", known) from None
        name = _shown(url)
        super().__init__(name, _Postgres(name, url), fsync, lock_timeout, clock, passphrase)


class _Postgres(Database):
    add_text = "INSERT INTO handrail_texts (place, folded) VALUES (?, ?)"
    drop_texts = "DELETE FROM handrail_texts WHERE place >= ? AND place < ?"
    for_update = " FOR UPDATE"

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None
        self._process = 0
        self._durable = True
        self._forked: list[object] = []
        self.disown()
        own(self)

    def disown(self) -> None:
        # A thread that was at it while the process was forked is not in the child: it would never be through. Nor is
        # whoever had a session open there.
        self._lock = RLock()
        self._free = Condition(self._lock)
        self._held: WeakValueDictionary[str, Release] = WeakValueDictionary()
        self._locked: dict[str, psycopg.Connection[Any]] = {}

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._lock, self._told():
            yield _Statements(self._connected())

    @contextmanager
    def writing(self, *, durable: bool = False) -> Iterator[Connection]:
        with self._lock, self._told():
            connection = self._committing(durable)
            with connection.transaction():
                yield _Statements(connection)

    def run(self, sql: str, values: Sequence[object], *, durable: bool) -> int:
        with self._lock, self._told():
            return self._committing(durable).execute(_spelt(sql), values).rowcount

    def _committing(self, durable: bool) -> psycopg.Connection[Any]:
        connection = self._connected()
        if durable is not self._durable:
            connection.execute(f"SET synchronous_commit = {'on' if durable else 'off'}".encode())
            self._durable = durable
        return connection

    def _connected(self) -> psycopg.Connection[Any]:
        connection = self._connection
        # A connection must not be used, nor closed, in a process that was forked from the one that made it.
        if connection is not None and self._process != os.getpid():
            self._forked.append(connection)
            connection = None
        if connection is None or connection.closed:
            connection = self._connection = self._connect()
            self._process = os.getpid()
        return connection

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        connection = psycopg.connect(self._url, autocommit=True, application_name="handrail")
        try:
            with connection.transaction():
                # Two processes that make the tables at once would each find that they are there halfway through.
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_number("schema"),))
                found = connection.execute("SELECT to_regclass('handrail_store')").fetchone()
                if not found or found[0] is None:
                    connection.execute(_SCHEMA)
                row = connection.execute("SELECT version FROM handrail_store").fetchone()
            if row is None or row[0] != VERSION:
                raise UnsupportedStore(self.name, row[0] if row else 0, VERSION)
        except BaseException:
            connection.close()
            raise
        self._durable = True
        return connection

    def hold(self, key: str, timeout: float) -> Release | None:
        until = time.monotonic() + timeout
        while True:
            with self._free:
                self._unlock_dropped()
                if not self._free.wait_for(lambda: key not in self._held, max(0.0, until - time.monotonic())):
                    return None
                if (release := self._try(key)) is not None:
                    return release
            if (left := until - time.monotonic()) <= 0:
                return None
            time.sleep(min(_POLL, left))

    def _try(self, key: str) -> Release | None:
        with self._told():
            connection = self._connected()
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_number(key),)).fetchone()
        if row is None or not row[0]:
            return None
        self._locked[key] = connection
        release = self._held[key] = partial(self._let_go, key)
        return release

    def _let_go(self, key: str) -> None:
        with self._free:
            self._held.pop(key, None)
            self._free.notify_all()
            self._unlock_dropped()

    def _unlock_dropped(self) -> None:
        # What was never let go of, but nobody has any more, goes too.
        for key in [key for key in self._locked if key not in self._held]:
            connection = self._locked.pop(key)
            if not connection.closed:  # else the lock went with it
                with suppress(StoreFailed), self._told():
                    connection.execute("SELECT pg_advisory_unlock(%s)", (_number(key),))

    def matching(self, connection: Connection, words: tuple[str, ...]) -> list[int]:
        each = " AND ".join(["folded LIKE ?"] * len(words))
        patterns = [f"%{_SPECIAL.sub(_ESCAPED, word)}%" for word in words]
        return [key for (key,) in connection.execute(_MATCHING.format(each), patterns).fetchall()]

    @contextmanager
    def _told(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise StoreFailed(self.name, _without_password(str(error), self._url)) from None

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                connection.close()


class _Statements:
    """A connection that takes `?` for a value."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Cursor:
        return self._connection.execute(_spelt(sql), values)

    def executemany(self, sql: str, values: Iterable[Sequence[object]], /) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_spelt(sql), values)


_SPECIAL = re.compile(r"[\\%_]")
_ESCAPED = r"\\\g<0>"
_MATCHING = """SELECT place FROM handrail_texts JOIN handrail_sessions ON number = place >> 36
    WHERE {} ORDER BY updated_at DESC, number DESC, place DESC"""


@lru_cache
def _spelt(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _number(key: str) -> int:
    return int.from_bytes(sha256(f"handrail {key}".encode()).digest()[:8], signed=True)


def _shown(url: str) -> str:
    parts = urlsplit(url)
    who, at, where = parts.netloc.rpartition("@")
    return f"postgresql://{who.partition(':')[0]}{at}{where}{parts.path}"


def _without_password(text: str, url: str) -> str:
    parts = urlsplit(url)
    secrets = [parts.netloc.rpartition("@")[0].partition(":")[2], *_PASSWORD.findall(parts.query)]
    for secret in filter(None, [*secrets, *map(unquote, secrets)]):
        text = text.replace(secret, "***")
    return " ".join(text.replace(url, _shown(url)).split())


_PASSWORD = re.compile(r"password=([^&]*)")
