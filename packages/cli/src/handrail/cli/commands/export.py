"""`handrail export`: a sealed copy of a session, or its messages in another tool's format."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import aside, progress_bar, say, say_json
from handrail.cli.sources import new_name, place_for, write_new
from handrail.cli.stores import called, plain_name, session_at

if TYPE_CHECKING:
    from handrail.sessions import Passphrase
    from handrail.sessions.places import Where


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A session file, or STORE#ID; - is standard input.")],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The new file; with --to, standard output if not given.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="A foreign format: openai-chat.")] = None,
    agent: Annotated[str | None, typer.Option(help="With --to: one agent's view, and not all that was said.")] = None,
    compress: Annotated[
        Literal["gzip", "zstd"] | None,
        typer.Option(help="Compress the sealed copy; so does a new file that ends in .gz or .zst."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say as JSON what was written, and what was lost.")] = False,
) -> None:
    """Make a sealed copy of a session, which has a footer that counts and closes it.

    A plain session becomes an encrypted copy with --passphrase-file.
    """
    import_modules(modules)
    keys = Keys(passphrase_file)
    if out is not None:
        place_for(out)
    with session_at(file) as path:
        if to is not None:
            _foreign(called(file), path, out, to, agent, keys.of(path), as_json)
            return
        if agent is not None:
            raise UnfitInput("a sealed copy holds the whole session; --agent goes with --to openai-chat")
        suffix = {"gzip": ".gz", "zstd": ".zst"}.get(compress or "", "")
        target = out or new_name(plain_name(file), f".sealed.jsonl{suffix}")
        _sealed(called(file), path, target, keys.of(path), compress, as_json)


def _sealed(
    file: str,
    path: "Where",
    out: Path,
    passphrase: "Passphrase | None",
    compress: Literal["gzip", "zstd"] | None,
    as_json: bool,
) -> None:
    from handrail.sessions import export

    with progress_bar(f"sealing {file}", path) as progress:
        export(path, out, progress=progress, passphrase=passphrase, compression=compress)
    if as_json:
        say_json({"written": str(out), "sealed": True, "losses": []})
    else:
        say(f"{out}: a sealed copy of {file}")


def _foreign(
    file: str,
    path: "Where",
    out: Path | None,
    to: str,
    agent: str | None,
    passphrase: "Passphrase | None",
    as_json: bool,
) -> None:
    from handrail.sessions import export_to

    if out is None and as_json:
        raise UnfitInput("--json says what was written where, so it needs -o FILE")
    exported = export_to(path, to, agent=agent, passphrase=passphrase)
    if out is None:
        sys.stdout.buffer.write(exported.body)
        if sys.stdout.isatty() and not exported.body.endswith(b"\n"):
            sys.stdout.buffer.write(b"\n")  # so that the prompt does not stand beside it
        sys.stdout.buffer.flush()
    else:
        write_new(out, exported.body)
    if as_json:
        say_json({"written": str(out), "sealed": False, "losses": list(exported.losses)})
        return
    for loss in exported.losses:
        aside(f"not carried: {loss}")
    if out is not None:
        say(f"{out}: {to} of {file}")
