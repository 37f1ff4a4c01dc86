"""`handrail diff`: what differs between two sessions by meaning."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.screens import say, say_json
from handrail.cli.sources import place_for, write_new
from handrail.cli.stores import called, session_at

if TYPE_CHECKING:
    from handrail.sessions import Difference, Session
    from handrail.sessions.places import Where

_STYLES = {"-": "red", "+": "green", "~": "yellow"}


def command(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A session (a file or STORE#ID) or a foreign transcript; - is standard input."
        ),
    ],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    agent: Annotated[str, typer.Option(help="Who answers in a foreign transcript.")] = "assistant",
    passphrase_file: PassphraseFile = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Make a page that shows both side by side.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what differs as one JSON object.")] = False,
) -> None:
    """Compare two sessions by meaning: exit code 0 where they mean the same, and 1 where they do not."""
    if html is not None:
        place_for(html)
    difference = compared(first, second, agent, Keys(passphrase_file))
    if html is not None:
        from handrail.cli.viewer.pages import page
        from handrail.cli.viewer.sides import sides

        write_new(html, page("diff", sides(difference)))
    if as_json:
        say_json({"same": difference.same, **_fields(difference.only_differing())})
    elif html is not None:
        say(f"{html}: the two {'mean the same' if difference.same else 'differ'}")
    else:
        for line in difference.lines():
            say(line, style=_STYLES.get(line.lstrip()[:1], ""))
    raise typer.Exit(OK if difference.same else FAILED)


def compared(first: str, second: str, agent: str, keys: Keys) -> "Difference":
    """The difference between two files, named as they were typed: what every form of the output is made of."""
    import msgspec

    from handrail.sessions import diff

    if first == second == "-":
        raise UnfitInput("standard input can be read once: name one of the two files")
    with session_at(first) as a, session_at(second) as b:
        found = diff(_opened(a, keys), _opened(b, keys), agent=agent)
    return msgspec.structs.replace(found, a=called(first), b=called(second))


def _opened(path: "Where", keys: Keys) -> "Where | Session":
    from handrail.sessions import Session

    passphrase = keys.of(path, mixed=True)
    return path if passphrase is None else Session(path, passphrase=passphrase)


def _fields(difference: "Difference") -> dict[str, object]:
    return {name: getattr(difference, name) for name in difference.__struct_fields__}
