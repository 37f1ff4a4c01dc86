"""What the commands print with: text and JSON on standard output, the rest and progress on standard error."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.cli.exits import printable

if TYPE_CHECKING:
    from rich.console import Console

Progress: TypeAlias = Callable[[int], None]
"""Called now and then with how much is done."""

_MOVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str = "", *, end: str = "\n", style: str = "") -> None:
    """Text for a person, at once, on standard output; a terminal shows it in the style, and obeys nothing in it."""
    if not sys.stdout.isatty():
        print(text, end=end, flush=True)
    elif style:
        _console().print(_MOVES.sub("", text), end=end, style=style, markup=False, highlight=False, soft_wrap=True)
    else:
        print(_MOVES.sub("", text), end=end, flush=True)


@cache
def _console() -> "Console":
    from rich.console import Console

    return Console()


def aside(text: str) -> None:
    """What is not the result itself: on standard error, one line."""
    print(printable(text), file=sys.stderr, flush=True)


def say_json(value: Any) -> None:
    """A value as JSON on one line of standard output; structs by their fields."""
    import msgspec

    print(msgspec.json.encode(value).decode(), flush=True)


def shortened(text: str, width: int = 100) -> str:
    """The text on one line of at most this width."""
    line = printable(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


@contextmanager
def progress_bar(what: str, path: str | os.PathLike[str]) -> Iterator[Progress | None]:
    """A bar on standard error that fills as bytes of a file are read; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=os.path.getsize(path) or None)
        yield lambda done: bar.update(task, completed=done)
