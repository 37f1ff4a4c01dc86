"""`handrail view`: a session as one page to look at, or a folder of them with a list."""

import os
from pathlib import Path
from typing import Annotated

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.reporting import counted
from handrail.cli.screens import aside, bar_of, progress_bar, say, say_json
from handrail.cli.sources import new_name, place_for, write_new
from handrail.cli.stores import called, plain_name, session_at


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|DIR", help="A session file, STORE#ID, or a folder of *.jsonl; - is standard input."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The new page; for a folder, the new folder of pages.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a page.")] = False,
) -> None:
    """Make a page of a session: every message, what crossed each handoff and what stayed, tokens and errors."""
    import_modules(modules)
    make = _folder if os.path.isdir(file) else _page
    made = make(file, out, Keys(passphrase_file), as_json=as_json)
    if show:
        import webbrowser

        if not webbrowser.open(made.resolve().as_uri()):
            aside(f"handrail: no browser could be opened; open {made} yourself")


def _page(file: str, out: Path | None, keys: Keys, *, as_json: bool) -> Path:
    from handrail.cli.viewer.folders import described
    from handrail.cli.viewer.pages import page
    from handrail.cli.viewer.sheets import sheet

    target = place_for(out if out is not None else new_name(plain_name(file), ".html"))
    with session_at(file) as path, progress_bar(f"reading {called(file)}", path) as progress:
        found = sheet(path, "standard input" if file == "-" else called(file), progress, keys.of(path))
    write_new(target, page("page", found))
    if as_json:
        say_json(described(found, str(target)))
    else:
        sums = found.totals
        held = f"{counted(sums.messages, 'message')}, {counted(sums.handoffs, 'handoff')}"
        say(f"{target}: {held}; {found.verified.text}")
    return target


def _folder(folder: str, out: Path | None, keys: Keys, *, as_json: bool) -> Path:
    from handrail.cli.audits import sessions_in
    from handrail.cli.viewer.folders import written
    from handrail.sessions import SessionExists

    target = place_for(out if out is not None else Path(f"{Path(folder).resolve().name}.view"))
    if target.exists():
        raise SessionExists(target)
    if target.resolve().is_relative_to(Path(folder).resolve()):
        raise UnfitInput(f"{target}: is within the folder that is looked at; name another place with -o")
    with sessions_in([folder]) as places, bar_of("reading", places.size) as progress:
        target.mkdir(mode=0o700)  # the pages hold what the sessions hold, which their owner alone may read
        many = broken = 0
        for entry in written(folder, places, target, keys, progress):
            many += 1
            broken += not entry.ok
            if as_json:
                say_json(entry)
            elif not entry.ok:
                aside(f"handrail: {entry.file}: {entry.problem or entry.state}")
    index = target / "index.html"
    if not as_json:
        say(f"{index}: {counted(many, 'session')}, {f'{broken} not intact' if broken else 'all intact'}")
    return index
