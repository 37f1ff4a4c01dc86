"""`handrail sessions`: what there is in a store, and what can be done with it."""

import typer

from handrail.cli.commands.sessions import copies, forking, labels, listing, removing, showing

_ABOUT = "List, show, search, fork, name, tag, copy and remove the sessions of a store."


def group() -> typer.Typer:
    """The command with its subcommands."""
    made = typer.Typer(help=_ABOUT, add_completion=False)
    made.callback(invoke_without_command=True)(_helped)
    made.command("list")(listing.list_sessions)
    made.command("show")(showing.show)
    made.command("search")(listing.search)
    made.command("fork")(forking.fork)
    made.command("rename")(labels.rename)
    made.command("tag")(labels.tag)
    made.command("untag")(labels.untag)
    made.command("export")(copies.export)
    made.command("import")(copies.import_sessions)
    made.command("rm")(removing.remove)
    made.command("prune")(removing.prune)
    return made


def _helped(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
