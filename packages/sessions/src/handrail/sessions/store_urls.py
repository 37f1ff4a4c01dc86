"""How a store is named: by a URL, or by a path."""

from __future__ import annotations

import os

from handrail.filters.sources import Clock
from handrail.sessions.errors import UnknownStore
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.storing import Store
from handrail.sessions.writer import Fsync


def open_store(
    url: str | os.PathLike[str],
    *,
    fsync: Fsync = "turn",
    lock_timeout: float = 0.0,
    clock: Clock | None = None,
    passphrase: Secret = None,
) -> Store:
    """The store that a URL or a path names: `memory:`, `folder/` (or a folder that is there), `sqlite:///path.db` or a
    path that ends in `.db`, `.sqlite` or `.sqlite3`, `postgresql://…`. It is made at the first use.

    `fsync`, `lock_timeout` and `passphrase` are those of its sessions (see `Session`). Raises `UnknownStore` for
    anything else, or where the package that it needs is not installed, and `EmptyPassphrase`.
    """
    passphrase = hidden(passphrase)
    text = os.fspath(url)
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower() if colon and os.sep not in scheme else ""
    if scheme == "memory" and not rest:
        from handrail.sessions.stores.memory import MemoryStore

        return MemoryStore(fsync=fsync, lock_timeout=lock_timeout, clock=clock, passphrase=passphrase)
    if scheme in ("postgresql", "postgres"):
        from handrail.sessions.stores.postgres import PostgresStore

        return PostgresStore(text, fsync=fsync, lock_timeout=lock_timeout, clock=clock, passphrase=passphrase)
    if (scheme == "sqlite" and rest[:3] == "///" and rest[3:]) or (not scheme and text.endswith(_DATABASES)):
        from handrail.sessions.stores.sqlite import SqliteStore

        return SqliteStore(
            rest[3:] if scheme else text, fsync=fsync, lock_timeout=lock_timeout, clock=clock, passphrase=passphrase
        )
    if not scheme and (text.endswith(os.sep) or os.path.isdir(text)):
        from handrail.sessions.stores.folder import FolderStore

        return FolderStore(text, fsync=fsync, lock_timeout=lock_timeout, clock=clock, passphrase=passphrase)
    named = f"no store is named by {scheme}:…" if scheme else f"{text!r} names no store"
    raise UnknownStore(named, _POSSIBLE)


_DATABASES = (".db", ".sqlite", ".sqlite3")
_POSSIBLE = ("memory:", "a folder/", "sqlite:///path.db", "path.db", "postgresql://host/database")
