"""`handrail sessions rm` and `prune`: sessions taken away for good, after asking."""

import re
import sys
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK, one_line
from handrail.cli.reporting import counted
from handrail.cli.screens import aside, say, say_json, shortened
from handrail.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from handrail.sessions import Store

_Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NAMED = 5


def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The sessions.")],
    store: StoreOption = None,
    yes: _Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Remove sessions for good; forks of them stay. Where one is not there, none is removed."""
    wanted = list(dict.fromkeys(ids))
    with opened_store(store) as opened:
        for id in wanted:
            opened.entry(id)
        _ask(f"remove {_these(wanted)} from {opened.name} for good", yes)
        removed = _deleted(opened, wanted)
    _tell(removed, as_json)
    raise typer.Exit(OK if len(removed) == len(wanted) else FAILED)


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Not written to for so long: 90m, 12h, 30d, 8w.")
    ],
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    parents: Annotated[bool, typer.Option("--parents", help="Also those with forks that stay.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which, and remove nothing.")] = False,
    store: StoreOption = None,
    yes: _Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Remove sessions that nobody wrote to for a while; those that are open for writing stay."""
    age = _age(older_than)
    with opened_store(store) as opened:
        old = opened.prune(age, tag=tag, parents=parents, dry_run=True)
        if dry_run or not old:
            _tell(old, as_json, removed=not dry_run)
            return
        _ask(f"remove {_these(old)} from {opened.name} for good", yes)
        # Meanwhile some may have been gone on with, and others have grown old that nobody was asked about.
        still = opened.prune(age, tag=tag, parents=parents, dry_run=True)
        _tell(_deleted(opened, [id for id in still if id in old]), as_json)


def _deleted(store: "Store", ids: Iterable[str]) -> list[str]:
    from handrail.sessions import SessionError

    deleted: list[str] = []
    for id in ids:
        try:
            store.delete(id)
            deleted.append(id)
        except SessionError as error:
            aside(f"handrail: {one_line(error)}")
    return deleted


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", text)
    if found is None:
        raise UnfitInput(f"--older-than {text!r} is no age; write a number and m, h, d or w, such as 30d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _these(ids: "list[str] | tuple[str, ...]") -> str:
    named = ", ".join([shortened(id, 60) for id in ids[:_NAMED]])
    return f"{counted(len(ids), 'session')} ({named}{', …' if len(ids) > _NAMED else ''})"


def _ask(what: str, yes: bool) -> None:
    """Goes on only where somebody says yes. Raises `UnfitInput` where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UnfitInput(f"to {what}, pass --yes: there is no terminal here to ask at")
    say(f"{what[0].upper()}{what[1:]}? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        say("Nothing was removed.")
        raise typer.Exit(FAILED)


def _tell(ids: "list[str] | tuple[str, ...]", as_json: bool, *, removed: bool = True) -> None:
    if as_json:
        say_json({"removed" if removed else "would_remove": ids})
        return
    for id in ids:
        say(f"{'removed' if removed else 'would remove'} {shortened(id, 200)}")
    if not ids:
        say("there is nothing to remove")
