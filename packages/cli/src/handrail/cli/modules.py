"""Python modules by name, for `module:agent` and for the filters that `--import` registers."""

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, TypeAlias

import typer

from handrail.cli.errors import ModuleNotLoaded

Modules: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Import this module first: it registers filters. Repeatable."),
]
"""The option of every command that may meet filters of somebody's own."""


def import_modules(names: Sequence[str] | None) -> None:
    """Imports modules for what they register. Raises `ModuleNotLoaded`."""
    for name in names or ():
        load_module(name)


def load_module(name: str) -> ModuleType:
    """The module of this name, from the current folder or from what is installed. Raises `ModuleNotLoaded`."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ModuleNotLoaded(name, f"there is no module {name} here or among what is installed") from error
        raise ModuleNotLoaded(name, _broken(name, error)) from error
    except (Exception, SystemExit) as error:  # a module may raise whatever it likes
        raise ModuleNotLoaded(name, _broken(name, error)) from error


def _broken(name: str, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        where = f", in {error.filename}, line {error.lineno}"
    else:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        where = f", in {last.tb_frame.f_code.co_filename}, line {last.tb_lineno}" if last is not None else ""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"the module {name} cannot be imported: {type(error).__name__}: {said}{where}; --debug shows the whole way"
