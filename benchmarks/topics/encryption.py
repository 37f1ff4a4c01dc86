"""What encryption adds to a record: written, and read back."""

import asyncio
import os
from binascii import b2a_base64
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from benchmarks.measuring import alternate, clocked
from benchmarks.rows import Result, Scale, Target, row
from handrail import sessions
from handrail.filters import user

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

RECORDS = 2_000
TEXT = "The parcel left the depot this morning and is with the carrier. " * 5


def records() -> list[sessions.MessageRecord]:
    return [
        sessions.MessageRecord(path="desk", message=user(TEXT, id=f"m{number}", created_at=1_700_000_000_000 + number))
        for number in range(RECORDS)
    ]


def written(path: Path, passphrase: sessions.Passphrase | None) -> Work:
    """Every record in a write of its own, into a file that is opened for it."""
    said = records()

    async def work() -> None:
        with sessions.Journal.open(path, fsync="never", passphrase=passphrase) as journal:
            for record in said:
                journal.append(record)

    return work


def bare_cipher() -> Work:
    """AES-256-GCM and base64 alone, of a text as long as such a record, with a nonce of its own."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key, text = AESGCM(os.urandom(32)), (TEXT + " " * 120).encode()

    async def work() -> None:
        for number in range(RECORDS):
            nonce = os.urandom(12)
            b2a_base64(nonce + key.encrypt(nonce, text, b"%d" % number), newline=False)

    return work


def read_back(path: Path, passphrase: sessions.Passphrase | None) -> Work:
    """Every record of a file that was written before."""

    async def work() -> None:
        for _ in sessions.read(path, passphrase=passphrase).records():
            pass

    return work


@row("encryption")
def encryption(scale: Scale) -> Iterator[Result]:
    with TemporaryDirectory() as name:
        plain, secret = Path(name) / "plain.jsonl", Path(name) / "secret.jsonl"
        passphrase = sessions.Passphrase("correct horse battery staple")
        # The key is made once, before any clock runs.
        asyncio.run(written(secret, passphrase)())
        asyncio.run(written(plain, None)())
        subjects = {
            "encrypted": clocked(written(secret, passphrase)),
            "plain": clocked(written(plain, None)),
            "bare": clocked(bare_cipher()),
        }
        found = asyncio.run(alternate(scale.rounds(20), subjects))
        floors = {
            "plain": found.least("plain") / RECORDS * 1e6,
            "the cipher alone": found.least("bare") / RECORDS * 1e6,
        }
        each, more = found.least("encrypted") / RECORDS * 1e6, found.more("encrypted", "plain") / RECORDS * 1e6
        yield Result("a record written encrypted", each, "µs", more, Target(10, "µs more a record"), floors)
        for path, given in ((secret, passphrase), (plain, None)):
            path.unlink()
            asyncio.run(written(path, given)())
        readers = {"encrypted": clocked(read_back(secret, passphrase)), "plain": clocked(read_back(plain, None))}
        found = asyncio.run(alternate(scale.rounds(20), readers))
        each, more = found.least("encrypted") / RECORDS * 1e6, found.more("encrypted", "plain") / RECORDS * 1e6
        floors = {"plain": found.least("plain") / RECORDS * 1e6}
        yield Result("a record read encrypted", each, "µs", more, Target(10, "µs more a record"), floors)
