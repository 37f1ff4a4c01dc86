"""`handrail sessions export` and `import`: sessions of a store as files and back, byte for byte."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import OK, exit_code, one_line
from handrail.cli.reporting import counted
from handrail.cli.screens import aside, bar_of, say, say_json
from handrail.cli.sources import on_disk, place_for
from handrail.cli.stores import StoreOption, opened_store
from handrail.filters import HandrailError

if TYPE_CHECKING:
    from handrail.sessions import Store


def export(
    id: Annotated[str, typer.Argument(metavar="ID", help="The session.")],
    file: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="The new file, or the folder that it is put into.")],
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say as JSON what was written.")] = False,
) -> None:
    """Copy a session to a file, byte for byte; a sealed copy is made by `handrail export STORE#ID`."""
    with opened_store(store) as opened:
        opened.entry(id)
        target = file / f"{quote(id, safe='')}.jsonl" if file.is_dir() else place_for(file)
        opened.export(id, target)
    if as_json:
        say_json({"id": id, "written": str(target), "bytes": target.stat().st_size})
    else:
        say(f"{target}: a copy of {id}")


def import_sessions(
    places: Annotated[
        list[str],
        typer.Argument(metavar="FILE|DIR...", help="Session files, or folders of *.jsonl; - is standard input."),
    ],
    as_: Annotated[
        str | None,
        typer.Option("--as", metavar="ID", help="The id of the one session; else its file's name without .jsonl."),
    ] = None,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a session.")] = False,
) -> None:
    """Copy session files into a store, byte for byte; a store that is not there is made."""
    from handrail.cli.audits import foreign
    from handrail.sessions import NotASession

    files = list(_files(places))
    if not files:
        raise UnfitInput(f"{', '.join(places)}: holds no session; sessions are files that end in .jsonl")
    if as_ is not None and len(files) > 1:
        raise UnfitInput(f"--as is the id of one session, and here are {len(files)}")
    total = sum([_size(name) for name in files])
    with opened_store(store, new=True) as opened, bar_of("importing", total) as progress:
        code, done, passed_over = OK, 0, 0
        for name in files:
            try:
                _tell(name, _imported(opened, name, as_), as_json)
            except (HandrailError, OSError) as error:
                if files == places and len(files) == 1:
                    raise
                if isinstance(error, NotASession) and name not in places and foreign(Path(name)):
                    passed_over += 1  # in a folder other files are to be expected
                else:
                    aside(f"handrail: {one_line(error)}")
                    code = max(code, exit_code(error))
            done += _size(name)
            if progress is not None:
                progress(done)
    if passed_over:
        aside(f"{counted(passed_over, 'other file')} passed over; `handrail import` reads transcripts of other tools")
    raise typer.Exit(code)


def _size(name: str) -> int:
    return os.path.getsize(name) if os.path.isfile(name) else 0


def _files(places: Sequence[str]) -> Iterator[str]:
    from handrail.cli.audits import session_files

    for name in places:
        if name != "-" and os.path.isdir(name):
            yield from [str(path) for path in session_files(name)]
        else:
            yield name


def _imported(store: "Store", name: str, as_: str | None) -> str:
    with on_disk(name) as path:
        return store.import_(path, as_=_id_for(name) if as_ is None else as_)


def _id_for(name: str) -> str | None:
    """The id for a file of this name; None where it is none, and the id is the one in the session."""
    if name == "-":
        return None
    stem = Path(name).name
    for suffix in (".gz", ".zst", ".jsonl", ".session"):
        stem = stem.removesuffix(suffix)
    return unquote(stem) or None


def _tell(name: str, id: str, as_json: bool) -> None:
    if as_json:
        say_json({"file": name, "id": id})
    else:
        say(f"{id}: a copy of {name}")
