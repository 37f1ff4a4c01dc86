"""`handrail sessions list` and `search`: what a store holds, and where something was said."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.reporting import counted
from handrail.cli.screens import aside, say_json, say_table, shortened
from handrail.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from handrail.sessions import Entry

_COLUMNS = ("id", "title", "tags", "agents", "messages", "last written to", "bytes", "fork of")


def list_sessions(
    store: StoreOption = None,
    tag: Annotated[str | None, typer.Option(help="Those with this tag.")] = None,
    agent: Annotated[str | None, typer.Option(help="Those in which this agent spoke.")] = None,
    text: Annotated[
        str | None, typer.Option(help="Those with all of these words in the title or in one message.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="So many at most.")] = None,
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a session.")] = False,
) -> None:
    """List the sessions of a store, the last written to first."""
    passphrase = Keys(passphrase_file).new
    with opened_store(store) as opened:
        found = opened.list(tag=tag, agent=agent, text=text, limit=limit, passphrase=passphrase)
        name = opened.name
    _tell_of_locked(found.locked)
    if as_json:
        for entry in found:
            say_json(entry)
        return
    if found:
        say_table(_COLUMNS, [_row(entry) for entry in found])
    else:
        aside(f"{name}: there is no {'such ' if tag or agent or text else ''}session here")


def _tell_of_locked(ids: Sequence[str]) -> None:
    if ids:
        aside(f"not looked into, as encrypted: {counted(len(ids), 'session')}, such as {shortened(ids[0], 60)}")


def _row(entry: "Entry") -> Sequence[str]:
    return (
        entry.id,
        shortened(entry.title, 60),
        ", ".join(entry.tags),
        ", ".join(entry.agents),
        "encrypted" if entry.messages is None else f"{entry.messages:,}",
        at(entry.updated_at),
        f"{entry.size:,}",
        entry.parent or "",
    )


def at(milliseconds: int) -> str:
    """A time for a person to read, as the clock here shows it; to the second, with its offset."""
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().isoformat(" ", "seconds")


def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words that one message holds, also within longer ones.")],
    store: StoreOption = None,
    limit: Annotated[int, typer.Option(min=1, help="So many messages at most.")] = 20,
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a message.")] = False,
) -> None:
    """Find messages by their words, those of the session last written to first."""
    passphrase = Keys(passphrase_file).new
    with opened_store(store) as opened:
        found = opened.search(text, limit=limit + 1, passphrase=passphrase)
        name = opened.name
    _tell_of_locked(found.locked)
    for each in found[:limit] if as_json else ():
        say_json(each)
    if not as_json and found:
        rows = [(each.session, each.message, each.agent, each.snippet) for each in found[:limit]]
        say_table(("session", "message", "agent", "words"), rows)
    if not found:
        aside(f"{name}: no message holds {shortened(text, 60)!r}")
    elif len(found) > limit:
        aside(f"and more than {counted(limit, 'message')}; --limit shows more")
