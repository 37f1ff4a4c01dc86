"""What a store adds to an append, what a sync adds, and the end of a long session."""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.floors import files
from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from handrail import filters, sessions
from handrail.sessions.codec import encode

TIMES = 200
SYNCS = 20
SHORT, LONG = 1_000, 1_000_000


def said(number: int) -> sessions.MessageRecord:
    message = filters.assistant(files.WORDS.format(number), id=f"m{number}", agent="Clerk")
    return sessions.MessageRecord(path="Clerk", message=message)


@row("store-append")
def store_append(scale: Scale) -> Iterator[Result]:
    """One message a commit: ours, and a bare INSERT of as many bytes into one table, both in WAL mode."""
    with TemporaryDirectory() as name:
        bare = sqlite3.connect(f"{name}/bare.db", isolation_level=None)
        bare.execute("PRAGMA journal_mode = WAL")
        bare.execute("PRAGMA synchronous = NORMAL")
        bare.execute("CREATE TABLE lines (place INTEGER PRIMARY KEY, line BLOB)")
        record = said(1)
        size = len(encode(record)) + 76
        with closing(bare), sessions.open_store(f"{name}/ours.db") as store, store.open("desk") as session:
            session.append(record)

            async def ours() -> None:
                session.append(record)

            async def floor() -> None:
                bare.execute("INSERT INTO lines (line) VALUES (?)", (bytes(size),))

            subjects = {"ours": clocked(ours, TIMES), "bare": clocked(floor, TIMES)}
            found = asyncio.run(alternate(scale.rounds(80), subjects))
        yield Result(
            "append a message to a SQLite store",
            found.least("ours") * 1e6,
            "µs",
            found.ratio("ours", "bare"),
            Target(3, "× a bare WAL commit"),
            {"a bare WAL commit": found.least("bare") * 1e6},
        )


@row("append-fsync")
def append_fsync(scale: Scale) -> Iterator[Result]:
    """One message and one sync: ours, and a write of as many bytes with a sync.

    Each sample is some in a row, as an application that says `always` makes them. Of a single one right after the
    collector ran, most would be the time to bring code back into the caches, and ours has more of it than two calls.
    """
    with TemporaryDirectory() as name:
        record = said(1)
        data = bytes(len(encode(record)) + 76)
        file = os.open(f"{name}/bare", os.O_WRONLY | os.O_CREAT)
        sync = getattr(os, "fdatasync", os.fsync)
        with sessions.Journal.open(f"{name}/ours.jsonl", fsync="always") as journal:

            async def ours() -> None:
                journal.append(record)

            async def floor() -> None:
                os.write(file, data)
                sync(file)

            subjects = {"ours": clocked(ours, SYNCS), "bare": clocked(floor, SYNCS)}
            found = asyncio.run(alternate(scale.rounds(120), subjects))
        os.close(file)
        yield Result(
            "append a message with a sync",
            found.least("ours") * 1e6,
            "µs",
            found.typically_more("ours", "bare") * 1e6,
            Target(20, "µs more than a write and a sync"),
            {"a write and a sync": found.least("bare") * 1e6},
        )


@row("tail")
def tail(scale: Scale) -> Iterator[Result]:
    """A session opened at its end, its last messages read and one more appended: of a long one and a short one."""
    long = LONG // 10 if scale.quick else LONG
    with TemporaryDirectory() as name:
        for kind in ("", "sqlite:///"):
            counts = {"short": SHORT, "long": long}
            places = {size: _session(kind, Path(name), size, count) for size, count in counts.items()}
            subjects = {size: clocked(_end_of(*places[size])) for size in places}
            found = asyncio.run(alternate(scale.rounds(80), subjects))
            for store, _ in places.values():
                store.close()
            yield Result(
                f"the last 10 of {long:,} messages and one more, {'SQLite' if kind else 'a file'}",
                found.least("long") * 1e6,
                "µs",
                found.ratio("long", "short"),
                Target(1.5, f"× the same of {SHORT:,}"),
                {f"of {SHORT:,}": found.least("short") * 1e6},
            )


def _session(kind: str, folder: Path, name: str, count: int) -> tuple[sessions.Store, str]:
    made = folder / f"{name}.jsonl"
    if not made.exists():
        with sessions.Journal.create(made, fsync="never") as journal:
            for start in range(0, count, 500):
                journal.append(*[said(number) for number in range(start, min(count, start + 500))])
    store = sessions.open_store(f"{kind}{folder}/{name}.db" if kind else f"{folder}/{name}/", fsync="never")
    store.import_(made, as_="desk")
    return store, "desk"


def _end_of(store: sessions.Store, id: str) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        session = store.open(id)
        if len(session.tail(10)) != 10:
            raise ValueError("the last messages are not there")
        session.append(said(0))
        session.close()

    return work
