"""Where a command reads from and writes to: a file, or standard input or output where the file is `-`."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handrail.filters import HandrailError


@contextmanager
def on_disk(name: str) -> Iterator[Path]:
    """The path of a file; what comes from standard input is put into a temporary file first.

    Raises `OSError` where the file cannot be opened.
    """
    if name != "-":
        with open(name, "rb"):
            pass
        yield Path(name)
        return
    with tempfile.TemporaryDirectory(prefix="handrail-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            while block := sys.stdin.buffer.read(1 << 20):
                file.write(block)
        try:
            yield path
        except HandrailError as error:
            error.args = (str(error).replace(str(path), "standard input"),)
            raise


def new_name(name: str, suffix: str) -> Path:
    """The name in the current folder for what is made of a file."""
    stem = "stdin" if name == "-" else Path(name).name.rsplit(".", 1)[0]
    return Path(f"{stem.removesuffix('.session')}{suffix}")


def write_new(path: Path, body: bytes) -> None:
    """Writes a file that is there whole or not at all.

    Raises `SessionExists` where there is a file already, and `OSError` where none can be made.
    """
    from handrail.sessions import SessionExists

    if path.exists():
        raise SessionExists(path)
    part = Path(f"{os.fspath(path)}.part")
    try:
        part.write_bytes(body)
        part.rename(path)
    finally:
        part.unlink(missing_ok=True)
