"""`handrail run`: any agent of any module, on one input."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import aside, say_json
from handrail.cli.sources import place_for
from handrail.cli.stores import called, session_to_write, split

if TYPE_CHECKING:
    from handrail.agent import Agent, RunResult
    from handrail.sessions import Session


def command(
    agent: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="Where it is; modules of this folder too.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="What to say to it; - reads it from standard input.")],
    session: Annotated[
        str | None,
        typer.Option(metavar="FILE|STORE#ID", help="The session to write, or to go on with: a file, or of a store."),
    ] = None,
    continue_from: Annotated[
        Path | None, typer.Option("--continue-from", help="A sealed copy from which the new file --session goes on.")
    ] = None,
    start: Annotated[
        Literal["active", "self"],
        typer.Option(help="`active` goes on with the agent that a session was handed to, `self` with this one."),
    ] = "active",
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON once the run has ended.")] = False,
) -> None:
    """Run an agent: its words stream to standard output, tools and handoffs are told on standard error."""
    import asyncio

    from handrail.cli.finding import find_agent

    text = sys.stdin.read() if input == "-" else input
    if not text.strip():
        raise UnfitInput("there is nothing to say to the agent; pass a text, or - to read one from standard input")
    import_modules(modules)
    found = find_agent(agent)
    keys = Keys(passphrase_file)
    if continue_from is not None:
        _continue(continue_from, session, keys)
    held = session_to_write(session, keys) if session is not None else nullcontext(None)
    with asyncio.Runner() as runner, held as kept:
        result = runner.run(_run(found, text, kept, start, quiet=as_json))
    if as_json:
        say_json(_described(result, session))
    elif session is not None:
        aside(f"The session is in {called(session)}")


def _continue(sealed: Path, session: str | None, keys: Keys) -> None:
    from handrail.sessions import Session

    if session is None:
        raise UnfitInput("--continue-from begins a new file; say with --session which")
    if split(session) is not None:
        raise UnfitInput(
            "--continue-from begins a new file; `handrail sessions import` takes it into a store after that"
        )
    Session.continue_from(sealed, place_for(Path(session)), passphrase=keys.new).close()


async def _run(
    agent: "Agent", text: str, session: "Session | None", start: Literal["active", "self"], *, quiet: bool
) -> "RunResult":
    from handrail.cli.telling import RunTeller

    teller = RunTeller()
    try:
        async with agent.stream(text, session=session, start=start) as run:
            async for event in run:
                if not quiet:
                    teller.tell(event)
        return run.result
    finally:
        teller.close()
        await agent.graph().aclose()


def _plain(output: object) -> object:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(output, by_alias=True, fallback=str)


def _described(result: "RunResult", session: str | None) -> dict[str, object]:
    return {
        "status": result.status,
        "agent": result.agent,
        "output": _plain(result.output),
        "steps": result.steps,
        "usage": result.usage,
        "handoffs": [
            {
                "kind": each.kind,
                "source": each.source,
                "target": each.target,
                "path": each.path,
                "messages_before": each.messages_before,
                "messages_after": each.messages_after,
                "stayed": [message.id for message in each.stayed],
                "filter": each.filter.descriptor,
            }
            for each in result.handoffs
        ],
        "messages": list(result.new_messages),
        "session": called(session) if session else None,
    }
