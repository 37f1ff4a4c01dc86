"""Where the passphrase of encrypted sessions comes from: a file that is named, or the environment."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from handrail.cli.errors import UnfitInput

if TYPE_CHECKING:
    from handrail.sessions import Passphrase
    from handrail.sessions.places import Where

VARIABLE = "HANDRAIL_PASSPHRASE"

PassphraseFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help=f"Its first line is the passphrase of encrypted sessions; else {VARIABLE}.",
    ),
]
"""The option of every command that reads or writes sessions."""


class Keys:
    """The passphrase that a command was given, if any. Raises `UnfitInput` for a file without one, and `OSError`."""

    def __init__(self, file: Path | None) -> None:
        self._named = file is not None
        self.new: Passphrase | None = _from_file(file) if file is not None else _from_environment()
        """What a new session is encrypted with."""

    def of(self, path: "Where", *, mixed: bool = False) -> "Passphrase | None":
        """What a session is opened with. The environment's passphrase is for those that are encrypted; so is one from a
        file where sessions are `mixed`, and else it says that the session has to be."""
        from handrail.sessions import PassphraseMissing, SessionError, read

        if self.new is None or (self._named and not mixed):
            return self.new
        try:
            read(path)
        except PassphraseMissing:
            return self.new
        except (SessionError, OSError):
            return None  # what is wrong with it is told by whoever opens it
        return None

    def of_session(self, path: "Where") -> "Passphrase | None":
        """What a session is written with, which may be there or not."""
        from handrail.sessions.places import is_begun

        return self.of(path) if is_begun(path) else self.new


def _from_file(file: Path) -> "Passphrase":
    from handrail.sessions import Passphrase

    with file.open("rb") as lines:
        first = lines.readline(1 << 16).rstrip(b"\r\n")
    if not first:
        raise UnfitInput(f"{file}: its first line is empty, and was to be a passphrase")
    try:
        text: str | bytes = first.decode()
    except UnicodeDecodeError:
        text = first
    return Passphrase(text)


def _from_environment() -> "Passphrase | None":
    from handrail.sessions import Passphrase

    return Passphrase(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
