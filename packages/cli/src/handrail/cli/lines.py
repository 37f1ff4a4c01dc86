"""What a person types, or a pipe brings in their place, line by line."""

import sys
from contextlib import suppress

from handrail.cli.screens import say


def is_typed() -> bool:
    """Whether somebody sits at a terminal and types."""
    return sys.stdin.isatty()


def edited_lines() -> None:
    """Gives a terminal's lines the keys and the memory of a shell's, where the system has them."""
    if is_typed():
        with suppress(ImportError):
            import readline  # noqa: F401  # it is enough that it is there


def next_line(prompt: str = "you> ") -> str | None:
    """The next line without the space around it; None at the end. A line that is piped in is shown as if typed."""
    if is_typed():
        try:
            return input(prompt).strip()
        except EOFError:
            say()
            return None
    line = sys.stdin.readline()
    if not line:
        return None
    line = line.strip()
    if line:
        say(f"{prompt}{line}")
    return line
