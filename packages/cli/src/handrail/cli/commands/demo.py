"""`handrail demo`: a support desk of three agents, on what a person types or pipes in."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.exits import FAILED, OK, one_line
from handrail.cli.lines import next_line
from handrail.cli.screens import aside, say
from handrail.cli.sources import place_for

if TYPE_CHECKING:
    from handrail.agent import Agent
    from handrail.sessions import Session

WELCOME = """A support desk: triage hands over to billing and back; billing asks a research agent.
Ask for opening hours, parcel 8841, or whether invoice 1042 was charged twice. `quit` ends it."""


def command(
    session: Annotated[
        Path | None, typer.Option(help="The session file to write, or to go on with; a new one if not given.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="A model such as openai:NAME; without one, rules in the process answer.")
    ] = "",
    base_url: Annotated[str, typer.Option(help="The address of a server that speaks Chat Completions.")] = "",
) -> None:
    """Talk to a support desk of three agents, and see what crosses between them."""
    import tempfile

    from handrail.cli.desk import support_desk
    from handrail.cli.finding import model_called
    from handrail.sessions import Session

    desk = support_desk(model_called(model, base_url))
    path = (
        place_for(session) if session is not None else Path(tempfile.mkdtemp(prefix="handrail-")) / "desk.session.jsonl"
    )
    say(WELCOME)
    say(f"Session file: {path}\n", style="dim")
    try:
        with Session(path) as opened:
            opened.append()  # so that a file which cannot be written to is told before anybody types
            answered = _talk(desk, opened)
    except KeyboardInterrupt:
        if sys.stdin.isatty():
            say()  # the line that was being typed
        _closing(path, kept=session is not None, by_rules=not model)
        raise
    sound = _closing(path, kept=session is not None, by_rules=not model)
    raise typer.Exit(OK if sound and answered else FAILED)


def _talk(desk: "Agent", session: "Session") -> bool:
    """Whether every message was answered. A run that fails is told in one line, and the talk goes on."""
    import asyncio

    from handrail.agent import RunError

    answered = True
    with asyncio.Runner() as runner:
        try:
            for line in _lines():
                try:
                    runner.run(_answer(desk, line, session))
                except RunError as error:
                    answered = False
                    aside(f"handrail: {one_line(error)}")
        finally:
            runner.run(desk.graph().aclose())
    return answered


async def _answer(desk: "Agent", line: str, session: "Session") -> None:
    from handrail.cli.telling import DeskTeller

    run = desk.stream(line, session=session)
    teller = DeskTeller(run)
    try:
        async with run:
            async for event in run:
                teller.tell(event)
    finally:
        teller.close()
        say()


def _lines() -> Iterator[str]:
    while (line := next_line()) is not None and line.lower() not in ("quit", "exit"):
        if line:
            yield line


def _closing(path: Path, *, kept: bool, by_rules: bool) -> bool:
    from handrail.sessions import Session, verify

    views = Session(path).views
    if not views and not kept:
        shutil.rmtree(path.parent)
        say("Nothing was said, so no session is kept.")
        return True
    verdict = verify(path)
    again = f" ({verdict.boundaries})" if verdict.boundaries else ""
    say(f"Verified: {verdict}{again}.")
    if not views:
        say(f"Nothing was said; {path} holds no message yet.")
        return verdict.ok
    command, name = _this_command(), shlex.quote(str(path))
    say(f"The session is in {path}. To look at it:")
    say(f"  {command} view {name} --open")
    say(f'  {command} filter {name} --agent triage --filter "last_n(4, keep_user=True) | strip_tool_calls" --explain')
    if by_rules:
        say(f'  {command} replay {name} handrail.cli.desk:triage --filter "triage->billing=last_user()"')
    return verdict.ok


def _this_command() -> str:
    """How to run this command from a shell of the same folder: its name, where the shell finds it by that."""
    if shutil.which("handrail"):
        return "handrail"
    beside = Path(sys.executable).with_name("handrail")
    if not beside.exists():
        return f"{shlex.quote(sys.executable)} -m handrail.cli"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))
