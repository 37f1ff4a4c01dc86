"""`handrail verify`: whether session files are whole, untouched, and would hand over the same again."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK, exit_code, is_full, one_line, show_traceback
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.reporting import counted
from handrail.cli.screens import aside, progress_bar, say, say_json
from handrail.cli.stores import called, session_at
from handrail.filters import HandrailError

if TYPE_CHECKING:
    from handrail.sessions import Verdict


def command(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Session files, or STORE#ID; - is standard input.")
    ],
    head: Annotated[
        str, typer.Option(metavar="HASH", help="The head that the file had when you noted it; another one fails.")
    ] = "",
    require_sealed: Annotated[
        bool, typer.Option("--require-sealed", help="Fail for a file without the footer of a sealed copy.")
    ] = False,
    integrity_only: Annotated[
        bool, typer.Option("--integrity-only", help="Check the chain of lines, and do not run the filters again.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a file.")] = False,
) -> None:
    """Check session files: exit code 0 when all are intact, sealed or not, and 1 when one is not."""
    if head and len(files) > 1:
        raise UnfitInput(f"--head is the head of one file, and here are {len(files)}")
    import_modules(modules)
    keys = Keys(passphrase_file)
    codes = {OK}
    for name in files:
        try:
            verdict = _verdict(name, keys, integrity_only)
        except (HandrailError, OSError) as error:
            codes.add(_told(error))
            continue
        unmet = _unmet(verdict, head.lower(), require_sealed)
        if unmet or not verdict.ok:
            codes.add(FAILED)
        if as_json:
            say_json(_described(called(name), verdict, unmet))
            continue
        say(f"{called(name)}: {verdict}")
        for problem in unmet:
            say(f"  {problem}")
        say(f"  {_summary(verdict)}")
    raise typer.Exit(FAILED if FAILED in codes else max(codes))


def _verdict(name: str, keys: Keys, integrity_only: bool) -> "Verdict":
    from handrail.sessions import verify

    with session_at(name) as path, progress_bar(f"verifying {called(name)}", path) as progress:
        return verify(path, progress=progress, integrity_only=integrity_only, passphrase=keys.of(path))


def _told(error: HandrailError | OSError) -> int:
    """Tells why a file cannot be verified, and gives its exit code: the other files are verified all the same."""
    if is_full(error):
        raise error
    show_traceback()
    aside(f"handrail: {one_line(error)}")
    return exit_code(error)


def _unmet(verdict: "Verdict", head: str, require_sealed: bool) -> list[str]:
    """What was asked for besides and does not hold."""
    unmet: list[str] = []
    if require_sealed and not verdict.sealed:
        unmet.append("not sealed: it has no footer, so its end may have been cut off")
    if head and verdict.head != head:
        found = verdict.head or "none, as its lines do not follow each other"
        unmet.append(f"another head: it is {found}, and was to be {head}")
    return unmet


def _summary(verdict: "Verdict") -> str:
    said = [counted(sum(verdict.counts.values()), "record"), verdict.boundaries]
    said += [f"head {verdict.head}"] if verdict.head else []
    return "; ".join([each for each in said if each])


def _described(name: str, verdict: "Verdict", unmet: list[str]) -> dict[str, Any]:
    return {
        "file": name,
        "ok": verdict.ok and not unmet,
        "state": verdict.state,
        "sealed": verdict.sealed,
        "encrypted": verdict.encrypted,
        "decrypted": verdict.decrypted,
        "head": verdict.head,
        "line": verdict.line,
        "problem": verdict.problem,
        "unmet": unmet,
        "counts": verdict.counts,
        "boundaries": verdict.handoffs,
        "run_again": verdict.run_again,
        "edited": verdict.edited,
        "unknown": verdict.unknown,
        "drifts": list(verdict.drifts),
        "not_runnable": list(verdict.not_runnable),
        "torn": str(verdict.torn) if verdict.torn is not None else None,
    }
