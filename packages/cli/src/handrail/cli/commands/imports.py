"""`handrail import`: a transcript that another tool wrote, as a session file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.reporting import counted
from handrail.cli.screens import say, say_json
from handrail.cli.sources import new_name, on_disk, place_for

if TYPE_CHECKING:
    from handrail.sessions import SessionRecord


def command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An OpenAI chat transcript or request log; - is standard input.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="The new session file; a folder where FILE holds several transcripts."),
    ] = None,
    agent: Annotated[str, typer.Option(help="The name of whoever answers in it.")] = "assistant",
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a session.")] = False,
) -> None:
    """Keep another tool's transcript as a session; several in one file become a folder."""
    from handrail.cli.transcripts import is_session
    from handrail.sessions import Session, import_file, parse_file

    keys = Keys(passphrase_file)
    with on_disk(file) as path:
        if is_session(path):
            raise UnfitInput(f"{file}: is a Handrail session already; export makes a sealed copy of it")
        several = len(parse_file(path)[1]) != 1
        target = out if out is not None else new_name(file, "" if several else ".session.jsonl")
        written = import_file(path, place_for(target), agent=agent, passphrase=keys.new)
    for each in written:
        session = Session(each, passphrase=keys.new)
        described = _described(each, len(session.log), session.about)
        if as_json:
            say_json(described)
            continue
        say(f"{each}: {counted(described['messages'], 'message')}")
        for loss in described["losses"]:
            say(f"  not kept as it was: {loss}")
        for breach in described["breaches"]:
            say(f"  kept as it was, though unlawful: {breach}")


def _described(path: Path, messages: int, about: "SessionRecord | None") -> dict[str, Any]:
    return {
        "session": str(path),
        "source": about.source if about is not None else None,
        "messages": messages,
        "losses": list(about.losses) if about is not None else [],
        "breaches": list(about.breaches) if about is not None else [],
    }
