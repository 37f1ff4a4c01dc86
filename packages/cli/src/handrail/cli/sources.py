"""Where a command reads from and writes to: a file, or standard input or output where the file is `-`."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.cli.errors import UnfitInput
from handrail.filters import HandrailError

if TYPE_CHECKING:
    from handrail.sessions.places import Where

_DATABASE = b"SQLite format 3\0"
_HANDED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


@contextmanager
def on_disk(name: str) -> Iterator[Path]:
    """The path of a file; what comes from standard input, or from a pipe that a shell made (`<(…)`), is put into a
    temporary file first.

    Raises `OSError` where the file cannot be opened, and `UnfitInput` where it is another pipe, or a device.
    """
    if name != "-" and not _is_handed(name):
        _open_once(name)
        yield Path(name)
        return
    with tempfile.TemporaryDirectory(prefix="handrail-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file, nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as source:
            while block := source.read(1 << 20):
                file.write(block)
        try:
            yield path
        except HandrailError as error:
            error.args = (str(error).replace(str(path), "standard input" if name == "-" else name),)
            raise


def _is_handed(name: str) -> bool:
    """Whether this is an open pipe or terminal of this process under a name, which can be read once."""
    return name.startswith(_HANDED) and os.path.exists(name) and not os.path.isfile(name)


def _open_once(name: str) -> None:
    mode = os.stat(name).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise UnfitInput(f"{name}: is {kind} and no file; to read it, pass - as the file and {name} as standard input")
    with open(name, "rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE:
            problem = (
                f"is a store; name a session of it, as {name}#ID: `handrail sessions list --store {name}` has the ids"
            )
            raise UnfitInput(f"{name}: {problem}")


def size_of(where: "Where") -> int:
    """How many bytes a session, or another file, has where it is."""
    if isinstance(where, Path):
        return where.stat().st_size
    with where.open_to_read() as lines:
        return lines.seek(0, os.SEEK_END)


def new_name(name: str, suffix: str) -> Path:
    """The name in the current folder for what is made of a file."""
    file = Path(name).name
    for packed in (".gz", ".zst"):
        file = file.removesuffix(packed)
    stem = "stdin" if name == "-" else file.rsplit(".", 1)[0]
    return Path(f"{stem.removesuffix('.session')}{suffix}")


def place_for(path: Path) -> Path:
    """The path, for a file that is to be made. Raises `UnfitInput` where its folder is not there."""
    if not path.parent.is_dir():
        raise UnfitInput(f"{path}: there is no folder {path.parent}; make it first, or choose another place")
    return path


def write_new(path: Path, body: bytes) -> None:
    """Writes a file that is there whole or not at all, for its owner alone, as what it is made of is.

    Raises `SessionExists` where there is a file already, and `JournalFailed` where none can be made.
    """
    from handrail.sessions.making import making

    with making(path) as file:
        file.write(body)
