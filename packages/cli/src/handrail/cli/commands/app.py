"""All subcommands, put together as one typer application."""

from typing import Annotated, Any

import typer
from typer.main import get_command

from handrail.cli.commands import (
    audit,
    chat,
    demo,
    diff,
    export,
    filter,
    graph,
    imports,
    migrate,
    replay,
    run,
    stats,
    verify,
    view,
)
from handrail.cli.commands.sessions.group import group as sessions
from handrail.cli.screens import say

_ABOUT = "Run several agents together, and know exactly what crosses between them."


def app() -> Any:
    """The command with its subcommands, ready to be called with arguments."""
    made = typer.Typer(name="handrail", help=_ABOUT, add_completion=False)
    made.callback()(_options)
    made.command("demo")(demo.command)
    made.command("run")(run.command)
    made.command("chat")(chat.command)
    made.command("filter")(filter.command)
    made.command("import")(imports.command)
    made.command("export")(export.command)
    made.command("verify")(verify.command)
    made.command("migrate")(migrate.command)
    made.command("diff")(diff.command)
    made.command("replay")(replay.command)
    made.command("stats")(stats.command)
    made.command("audit")(audit.command)
    made.command("graph")(graph.command)
    made.command("view")(view.command)
    made.add_typer(sessions(), name="sessions")
    command = get_command(made)
    _plain_flags(command)
    return command


def _plain_flags(command: Any) -> None:
    # A flag takes no value, so that its help names none.
    for option in command.get_params(command.context_class(command)):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    for each in getattr(command, "commands", {}).values():
        _plain_flags(each)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"handrail {version('handrail')}")
        raise typer.Exit


def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show an error's traceback; it may stand anywhere.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    # `main` reads --debug before typer does, and the version is shown by its callback.
    pass
