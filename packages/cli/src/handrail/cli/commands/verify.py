"""`handrail verify`: whether session files are whole, untouched, and would hand over the same again."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.exits import FAILED, OK
from handrail.cli.screens import progress_bar, say, say_json
from handrail.cli.sources import on_disk

if TYPE_CHECKING:
    from handrail.sessions import Verdict


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Session files; - is standard input.")],
    integrity_only: Annotated[
        bool, typer.Option("--integrity-only", help="Check the chain of lines, and do not run the filters again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a file.")] = False,
) -> None:
    """Check session files: exit code 0 when all are intact, sealed or not, and 1 when one is not."""
    from handrail.sessions import verify

    sound = True
    for name in files:
        with on_disk(name) as path, progress_bar(f"verifying {name}", path) as progress:
            verdict = verify(path, progress=progress, integrity_only=integrity_only)
        sound = sound and verdict.ok
        if as_json:
            say_json(_described(name, verdict))
        else:
            say(f"{name}: {verdict}")
            say(f"  {sum(verdict.counts.values())} records, {verdict.handoffs} boundaries run again")
    raise typer.Exit(OK if sound else FAILED)


def _described(name: str, verdict: "Verdict") -> dict[str, Any]:
    return {
        "file": name,
        "ok": verdict.ok,
        "state": verdict.state,
        "sealed": verdict.sealed,
        "line": verdict.line,
        "problem": verdict.problem,
        "counts": verdict.counts,
        "boundaries": verdict.handoffs,
        "drifts": list(verdict.drifts),
        "not_runnable": list(verdict.not_runnable),
        "torn": str(verdict.torn) if verdict.torn is not None else None,
    }
