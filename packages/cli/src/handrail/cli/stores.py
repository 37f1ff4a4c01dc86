"""Where sessions are on the command line: in files, or in stores.

`FILE` is a session file, `STORE#ID` a session of a store (`chats.db#customer-17`), and `#ID` one of the store that
`HANDRAIL_STORE` names, else of `handrail.db` in the current folder. A file that is there by that name comes first.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.sources import on_disk, place_for

if TYPE_CHECKING:
    from handrail.cli.keys import Keys
    from handrail.sessions import Session, Store
    from handrail.sessions.places import Where

VARIABLE = "HANDRAIL_STORE"
DEFAULT = "handrail.db"

StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help=f"sqlite:///PATH.db, PATH.db, a folder/, or postgresql://…; else {VARIABLE}, else {DEFAULT}.",
    ),
]
"""The option of every command about a store's sessions."""


@contextmanager
def opened_store(url: str | None, *, new: bool = False) -> Iterator["Store"]:
    """The store of this URL, or the one that is meant where none is named. It is made only where it may be `new`.

    Raises `UnknownStore`, or `UnfitInput` where there is none, and for one that would end with this command.
    """
    from handrail.sessions import open_store

    url = url or default_store()
    with open_store(url) as store:
        if store.name.startswith("memory:"):
            raise UnfitInput(
                f"{url}: ends with the program that has it; name a folder/, a PATH.db or a postgresql:// URL"
            )
        if (path := _path_of(store)) is not None:
            if new:
                place_for(path)
            elif not path.exists():
                raise UnfitInput(f"{url}: there is no store here; name one with --store, or in {VARIABLE}")
        yield store


def default_store() -> str:
    """The store that is meant where none is named."""
    return os.environ.get(VARIABLE) or DEFAULT


def _path_of(store: "Store") -> Path | None:
    if store.name.startswith("postgres"):
        return None
    return Path(store.name.removeprefix("sqlite:///"))


def split(name: str) -> tuple[str, str] | None:
    """The store and the id that `STORE#ID` names; None for a file.

    Raises `UnknownStore` for a URL that is none of a store.
    """
    store, mark, id = name.partition("#")
    if not mark or os.path.lexists(name):
        return None
    from handrail.sessions import UnknownStore, open_store

    try:
        if store:
            open_store(store).close()
    except UnknownStore:
        if "://" in store:
            raise
        return None
    return store, id


@contextmanager
def session_at(name: str) -> Iterator["Where"]:
    """Where a session is that is to be read: the path of a file, as `on_disk` gives it, or its place in a store.

    Raises what `on_disk` and `opened_store` raise, and `UnknownSession` where the store holds none of this id.
    """
    found = split(name)
    if found is None:
        with on_disk(name) as path:
            yield path
        return
    from handrail.sessions import UnknownSession
    from handrail.sessions.places import is_begun

    with opened_store(found[0]) as store:
        place = store.place(found[1])
        if not is_begun(place):
            raise UnknownSession(store.name, found[1])
        yield place


@contextmanager
def session_to_write(name: str, keys: "Keys") -> Iterator["Session"]:
    """A session that is gone on with, or begun where there is none; it is held for as long as the block lasts."""
    from handrail.sessions import Session

    with ExitStack() as stack:
        found = split(name)
        if found is None:
            path = place_for(Path(name))
            yield stack.enter_context(Session(path, passphrase=keys.of_session(path)))
            return
        store, id = stack.enter_context(opened_store(found[0], new=True)), found[1]
        store.prepare(id)
        place = store.place(id)
        yield stack.enter_context(Session(place, passphrase=keys.of_session(place)))


def called(name: str) -> str:
    """What a session is called where it is told of: as it was typed, without the password of a URL."""
    found = split(name) if "://" in name else None
    if found is None:
        return name
    with opened_store(found[0], new=True) as store:
        return f"{store.name}#{found[1]}"


def plain_name(name: str) -> str:
    """What a file that is made of this session is named after: the file's own name, or the id."""
    found = split(name) if name != "-" else None
    return name if found is None else f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', found[1])}.jsonl"
