"""`handrail chat`: a conversation in the terminal with any agent of any module, which goes on where it stopped."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import say
from handrail.cli.stores import StoreOption, called, default_store, session_to_write

if TYPE_CHECKING:
    from handrail.agent import Agent, Model


def command(
    agent: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="Where it is; modules of this folder too.")],
    session: Annotated[
        str | None,
        typer.Option(metavar="FILE|STORE#ID", help="The session to go on with, or to begin; a new file if not given."),
    ] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="The id of the session in --store.")] = None,
    store: StoreOption = None,
    model: Annotated[str, typer.Option(help="A model such as openai:NAME, in place of each agent's own.")] = "",
    base_url: Annotated[str, typer.Option(help="The address of a server that speaks Chat Completions.")] = "",
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
) -> None:
    """Talk to an agent: /help says what else can be typed, Ctrl-C stops an answer, and Ctrl-D ends the conversation."""
    from handrail.cli.finding import find_agent, model_called

    import_modules(modules)
    found, chosen, keys = find_agent(agent), model_called(model, base_url), Keys(passphrase_file)
    with _named(session, store, id) as name:
        whole = _talk(found, name, keys, chosen)
    raise typer.Exit(OK if whole else FAILED)


@contextmanager
def _named(session: str | None, store: str | None, id: str | None) -> Iterator[str]:
    """The session that is meant; without one a new file, which stays if anything is said."""
    if id is None and store is not None:
        raise UnfitInput("--store says where a session is; say with --id which")
    if id is not None:
        if session is not None:
            raise UnfitInput("--session and --id both name a session; give one of them")
        yield f"{store or default_store()}#{id}"
        return
    if session is not None:
        yield session
        return
    folder = Path(tempfile.mkdtemp(prefix="handrail-"))
    path = folder / "chat.session.jsonl"
    try:
        yield str(path)
    finally:
        if not _was_used(path):
            shutil.rmtree(folder)


def _was_used(path: Path) -> bool:
    from handrail.sessions import PassphraseMissing, Session

    try:
        return path.exists() and bool(Session(path).views)
    except PassphraseMissing:
        return True


def _talk(agent: "Agent", name: str, keys: Keys, model: "Model | None") -> bool:
    from handrail.cli.chatting import Chat

    with session_to_write(name, keys) as session:
        chat = Chat(agent, session, called(name), model)
        session.append()  # so that what cannot be written to is told before anybody types
        chat.begin()
        try:
            chat.talk()
        finally:
            said = bool(session.views)
            say(f"The session is in {called(name)}" if said else "Nothing was said.", style="dim")
    return chat.whole
