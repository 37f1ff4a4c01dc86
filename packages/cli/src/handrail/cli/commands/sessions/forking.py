"""`handrail sessions fork`: a new session that begins as another one did."""

from itertools import count
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.commands.sessions.showing import said
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.reporting import counted
from handrail.cli.screens import say, say_json
from handrail.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from handrail.sessions import Store


def fork(
    id: Annotated[str, typer.Argument(metavar="ID", help="The session to fork.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="MESSAGE", help="The id of the last message to take; all if not given."),
    ] = None,
    new: Annotated[str | None, typer.Option("--as", metavar="NEW", help="The id of the fork.")] = None,
    store: StoreOption = None,
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the fork as one JSON object.")] = False,
) -> None:
    """Make a new session of the first messages of another; `show` and `search` say what messages are called."""
    keys = Keys(passphrase_file)
    with opened_store(store) as opened:
        opened.entry(id)
        chosen = new if new is not None else _free(opened, id)
        made = opened.fork(id, at=at, as_=chosen, passphrase=keys.of(opened.place(id)))
        entry, messages = opened.entry(chosen), sum(1 for _ in said(made))
    if as_json:
        say_json(entry)
    else:
        say(f"{chosen}: begins with {counted(messages, 'message')} of {id}")


def _free(store: "Store", id: str) -> str:
    from handrail.sessions.places import is_begun

    names = (f"{id}-fork{number if number > 1 else ''}" for number in count(1))
    return next(name for name in names if not is_begun(store.place(name)))
