"""`handrail sessions rename`, `tag` and `untag`: what a session is called and marked with."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from handrail.cli.screens import say, say_json
from handrail.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from handrail.sessions import Store

_Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The session.")]
_Tags: TypeAlias = Annotated[list[str], typer.Argument(metavar="TAG...", help="The tags.")]
_AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the session as one JSON object.")]


def rename(
    id: _Id,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The new title; an empty one takes it away.")],
    store: StoreOption = None,
    as_json: _AsJson = False,
) -> None:
    """Give a session a title; its id stays."""
    _change(store, id, lambda opened: opened.rename(id, title), as_json)


def tag(id: _Id, tags: _Tags, store: StoreOption = None, as_json: _AsJson = False) -> None:
    """Mark a session with tags."""
    _change(store, id, lambda opened: opened.tag(id, *tags), as_json)


def untag(id: _Id, tags: _Tags, store: StoreOption = None, as_json: _AsJson = False) -> None:
    """Take tags off a session."""
    _change(store, id, lambda opened: opened.untag(id, *tags), as_json)


def _change(store: str | None, id: str, change: "Callable[[Store], None]", as_json: bool) -> None:
    with opened_store(store) as opened:
        change(opened)
        entry = opened.entry(id)
    if as_json:
        say_json(entry)
    else:
        say(f"{id}: {entry.title or 'no title'}; tags: {', '.join(entry.tags) or 'none'}")
