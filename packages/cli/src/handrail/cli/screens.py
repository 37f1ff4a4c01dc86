"""What the commands print with: text and JSON on standard output, the rest and progress on standard error."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.cli.exits import printable

if TYPE_CHECKING:
    from rich.console import Console

    from handrail.sessions.places import Where

Progress: TypeAlias = Callable[[int], None]
"""Called now and then with how much is done."""

_MOVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


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

    from handrail.sessions.codec import without_halves

    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file's name may be no UTF-8
        text = msgspec.json.encode(without_halves(value))
    print(text.decode(), flush=True)


def shortened(text: str, width: int = 100) -> str:
    """The text on one line of at most this width."""
    line = printable(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


@contextmanager
def progress_bar(what: str, where: "Where") -> Iterator[Progress | None]:
    """A bar on standard error that fills as bytes of a session are read; nothing where that is no terminal."""
    from handrail.cli.sources import size_of

    with bar_of(what, size_of(where) if sys.stderr.isatty() else 0) as progress:
        yield progress


@contextmanager
def bar_of(what: str, total: int) -> Iterator[Progress | None]:
    """A bar on standard error that fills up to so many bytes; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(printable(what), total=total or None)
        yield lambda done: bar.update(task, completed=done)


_WIDE = 4096


def say_table(columns: Sequence[str], rows: Iterable[Sequence[str] | None], *, title: str = "") -> None:
    """A table on standard output; None in place of a row draws a line. Where that is no terminal, nothing is folded."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(printable(title)) if title else None, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*[Text(printable(cell)) for cell in row])
    console = _console() if sys.stdout.isatty() else Console(file=sys.stdout, width=_WIDE, color_system=None)
    console.print(table)
