"""`handrail sessions show`: one session of a store, with its agents and what was said."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.commands.sessions.listing import at
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.reporting import counted, shown
from handrail.cli.screens import say, say_json
from handrail.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from handrail.filters import Message
    from handrail.sessions import Entry, Session


def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="The session.")],
    store: StoreOption = None,
    agent: Annotated[str | None, typer.Option(help="What this agent sees, and not all that was said.")] = None,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="The last N messages.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Show system prompts whole.")] = False,
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a session: what it is called, who took part and what each sees, and the messages."""
    from handrail.sessions import Session

    keys = Keys(passphrase_file)
    with opened_store(store) as opened:
        entry, forks = opened.entry(id), opened.forks(id)
        place = opened.place(id)
        session = Session(place, passphrase=keys.of(place))
        messages = _messages(session, agent, tail)
        if as_json:
            say_json({**_described(entry, forks, session), "messages": list(messages)})
            return
        for line in _lines(entry, forks, session):
            say(line)
        for message in messages:
            say(shown(message, full=full))


def _messages(session: "Session", agent: str | None, tail: int | None) -> "Iterable[Message]":
    if agent is not None:
        history = session.history(agent)
        return history if tail is None else history[max(0, len(history) - tail) :]
    return said(session) if tail is None else session.tail(tail)


def said(session: "Session") -> "Iterator[Message]":
    """Every message that was said, in the order it came in."""
    from handrail.sessions import MessageRecord, ToolResultRecord

    return (record.message for record in session.records() if isinstance(record, MessageRecord | ToolResultRecord))


def _described(entry: "Entry", forks: tuple[str, ...], session: "Session") -> dict[str, Any]:
    import msgspec

    views = {path: len(view.history) for path, view in session.views.items()}
    return {
        **msgspec.structs.asdict(entry),
        "forks": forks,
        "active_agent": session.active_agent,
        "views": views,
        "usage": session.usage,
    }


def _lines(entry: "Entry", forks: tuple[str, ...], session: "Session") -> Iterator[str]:
    from handrail.cli.exits import printable

    title = f": {printable(entry.title)}" if entry.title else ""
    yield f"{printable(entry.id)}{title}"
    if entry.tags:
        yield f"  tags       {printable(', '.join(entry.tags))}"
    yield f"  begun      {at(entry.created_at)}"
    yield f"  written to {at(entry.updated_at)}"
    if entry.parent is not None:
        yield f"  fork of    {printable(entry.parent)}"
    if forks:
        yield f"  forks      {printable(', '.join(forks))}"
    usage = session.usage
    yield f"  models     {counted(usage.requests, 'call')}, tokens {usage.input_tokens} in, {usage.output_tokens} out"
    for path, view in session.views.items():
        active = " and goes on" if path == session.active_agent else ""
        yield f"  agent      {printable(path)}: sees {counted(len(view.history), 'message')}{active}"
    yield ""
