"""One command from its arguments to its exit code: every error becomes one line."""

import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from handrail.cli.exits import (
    DEBUGGING,
    FAILED,
    INTERRUPTED,
    MISUSED,
    exit_code,
    is_full,
    one_line,
    printable,
    show_traceback,
)


def perform(arguments: Sequence[str] | None = None) -> int:
    """Runs one command, of `sys.argv` where none is given, and returns its exit code: 0 done, 1 failed, 2 what was
    given cannot be used, 130 interrupted.

    An error is one line on standard error; `--debug` anywhere before `--` shows its traceback as well.
    """
    _open_what_is_closed()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what cannot be read or shown is no reason to stop
    given, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    asked = DEBUGGING.set(debug)
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _unheard()
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except Exception as error:  # noqa: BLE001  # the last place where an error can be told in one line
        show_traceback()
        if is_full(error):
            _unheard()
        return _say(one_line(error), exit_code(error))
    finally:
        DEBUGGING.reset(asked)


def _open_what_is_closed() -> None:
    # In this order, so that no file that is opened later gets the number of a standard stream.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, _nowhere(mode))


def _nowhere(mode: str) -> Any:
    # Like the interpreter's own streams it is never closed, which is no reason for a warning at the end.
    return open(os.open(os.devnull, os.O_RDWR), mode, closefd=False)


def _without_debug(given: list[str]) -> tuple[list[str], bool]:
    end = given.index("--") if "--" in given else len(given)
    own = [argument for argument in given[:end] if argument != "--debug"]
    return [*own, *given[end:]], len(own) < end or bool(os.environ.get("HANDRAIL_DEBUG"))


def _run(given: list[str]) -> int:
    from typer import Abort, TyperException

    from handrail.cli.commands.app import app

    try:
        code = app()(given or ["--help"], prog_name="handrail", standalone_mode=False)
    except TyperException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "handrail")
        return _say(f"{error.format_message().rstrip('.').replace('Value error, ', '')}; see {where} --help", MISUSED)
    except Abort:
        return _say("interrupted", INTERRUPTED)
    if code == INTERRUPTED:
        return _say("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _say(line: str, code: int) -> int:
    print(f"handrail: {printable(line)}", file=sys.stderr)
    return code


def _unheard() -> int:
    # Whoever read standard output is gone, or it is full; what is left in its buffer has nowhere to go.
    sys.stdout = _nowhere("w")
    return FAILED
