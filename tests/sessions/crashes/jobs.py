"""What is done in processes that are killed while they do it."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import cast

from handrail.filters import user
from handrail.sessions import (
    Journal,
    MessageRecord,
    Session,
    export,
    export_to,
    import_file,
    migrate,
    open_store,
    verify,
)
from handrail.sessions.writer import Fsync
from sessions.conversations import secret
from sessions.crashes.killing import Tell

SIZES = (3, 40, 300, 300, 5_000, 400_000)


def warm_up() -> None:
    """Does everything once."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        with Session(path, passphrase=secret()) as session:
            session.append(*batch_of("1", Random(1)))
        assert verify(path, passphrase=secret()).ok
        with open_store(f"{folder}/store.db") as store, store.open("one") as session:
            session.append(*batch_of("1", Random(1)))
            plain = store.export("one", Path(folder, "plain.jsonl"))
        plain.with_suffix(".json").write_bytes(export_to(plain, "openai-chat").body)
        for how, maker in MAKERS.items():
            maker(plain, Path(folder, f"{how}.jsonl"))
        for end in (".gz", ".zst"):
            export(plain, Path(folder, f"compressed{end}"))


def batch_of(name: str, dice: Random, sizes: Sequence[int] = SIZES) -> list[MessageRecord]:
    """Some records that say which batch they are of, and how many are in it."""
    many = dice.randrange(1, 6)
    texts = ["x" * dice.choice(sizes) for _ in range(many)]
    return [
        MessageRecord(path="desk", message=user(text, id=f"{name}/{part}/{many}")) for part, text in enumerate(texts, 1)
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


def make(tell: Tell, how: str, source: str, folder: str, end: str) -> None:
    """Makes one file after the other of the same session, and says which are made."""
    for number in count(1):
        tell("begun")
        made = MAKERS[how](Path(source), Path(folder, f"{number}{end}"))
        tell(made)


def _import(source: Path, target: Path) -> str:
    return str(import_file(source.with_suffix(".json"), target, agent="desk")[0])


def _keep(source: Path, target: Path) -> str:
    with open_store(f"{target.parent}/store/") as store:
        return str(store.place(store.import_(source, as_=target.name)))


def _fork_kept(source: Path, target: Path) -> str:
    with open_store(f"{target.parent}/store/") as store:
        if not store.place("first").exists():
            store.import_(source, as_="first")
        return str(store.fork("first", as_=target.name).path)


MAKERS: dict[str, Callable[[Path, Path], str]] = {
    "export": lambda source, target: str(export(source, target)),
    "encrypt": lambda source, target: str(export(source, target, passphrase=secret())),
    "migrate": lambda source, target: str(migrate(source, target).path),
    "fork": lambda source, target: str(Session(source).fork(target).path),
    "go on": lambda source, target: str(Session.continue_from(source, target).path),
    "import": _import,
    "keep": _keep,
    "fork kept": _fork_kept,
}
"""Every way to make a session's file of another one's."""


def store(tell: Tell, url: str, fsync: str, seed: str) -> None:
    """Goes on with the sessions of a store, and says after each batch the session and its last message."""
    dice = Random(seed)
    with open_store(url, fsync=cast(Fsync, fsync)) as kept:
        sessions = [kept.open(name) for name in "ab"]
        tell("begun")
        for number in count(1):
            session, batch = dice.choice(sessions), batch_of(f"{seed}.{number}", dice, SIZES[:-1])
            session.append(*batch)
            tell(f"{str(session.path)[-1]} {batch[-1].message.id}")
            if dice.random() < 0.2:
                session.turn_end()
