"""What is done in processes that are killed while they do it."""

import fcntl  # noqa: F401  # so that no worker has to
from itertools import count
from pathlib import Path
from random import Random
from typing import cast

import cryptography.hazmat.primitives.ciphers.aead  # noqa: F401

from handrail.filters import user
from handrail.sessions import Journal, MessageRecord
from handrail.sessions.writer import Fsync
from sessions.conversations import secret
from sessions.crashes.killing import Tell

SIZES = (3, 40, 300, 300, 5_000, 400_000)


def batch_of(name: str, dice: Random) -> list[MessageRecord]:
    """Some records that say which batch they are of, and how many are in it."""
    many = dice.randrange(1, 6)
    texts = ["x" * dice.choice(SIZES) for _ in range(many)]
    return [
        MessageRecord(path="desk", message=user(text, id=f"{name}/{part}/{many}"))
        for part, text in enumerate(texts, 1)
    ]


def append(tell: Tell, path: str, fsync: str, words: str, seed: str) -> None:
    """Goes on with a session, and says the head after each batch."""
    dice = Random(seed)
    tell("begun")
    with Journal.open(path, fsync=cast(Fsync, fsync), passphrase=secret(words) if words else None) as journal:
        for number in count(1):
            journal.append(*batch_of(f"{seed}.{number}", dice))
            tell(journal.head)
            if dice.random() < 0.2:
                journal.turn_end()


def repair(tell: Tell, folder: str, torn: str, fsync: str) -> None:
    """Opens one torn session after the other, all alike, and says which are mended."""
    data = Path(torn).read_bytes()
    for number in count(1):
        path = Path(folder, f"{number}.jsonl")
        path.with_suffix(".new").write_bytes(data)
        path.with_suffix(".new").rename(path)
        tell(f"torn {number}")
        Journal.open(path, fsync=cast(Fsync, fsync)).close()
        tell(f"mended {number}")
