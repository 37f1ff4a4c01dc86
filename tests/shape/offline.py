"""Runs a Python file, or the Python blocks of a Markdown page, with no way out of this machine.

    python offline.py FILE

The blocks of a page run in their order and share their names, as a reader would type them; `await` may stand at their
top level. Line numbers in a traceback are those of the page.
"""

import ast
import asyncio
import inspect
import re
import sys
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOOPBACK = ("127.", "::1", "localhost")


def stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook that refuses names and addresses of other machines."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host is not None and not str(host).startswith(LOOPBACK):
        raise PermissionError(f"{event} to {host!r}: what is documented runs offline")


def blocks(page: str) -> list[str]:
    """The Python blocks of a page, each moved down to the lines where it stands."""
    return ["\n" * page.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(page)]


def run(path: Path) -> None:
    """Run one file as a person would."""
    sources = blocks(path.read_text()) if path.suffix == ".md" else [path.read_text()]
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    for source in sources:
        code = compile(source, str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)


if __name__ == "__main__":
    sys.addaudithook(stay_here)
    run(Path(sys.argv[1]))
