"""Finding the agent that `module:agent` names."""

import importlib
import os
import sys
from types import ModuleType

from handrail.agent import Agent
from handrail.cli.errors import NoSuchAgent


def find_agent(place: str) -> Agent:
    """The agent at `module:agent`; modules of the current folder are found too.

    Raises `NoSuchAgent` for a place that leads to none, naming the agents that the module does hold.
    """
    name, colon, attribute = place.partition(":")
    if not name or not colon or not attribute:
        raise NoSuchAgent(place, "write module:agent, as in shop.desk:triage")
    module = _load(place, name)
    found: object = module
    for step in attribute.split("."):
        if not hasattr(found, step):
            raise NoSuchAgent(place, f"there is no {attribute!r} in the module {name}", _agents(module))
        found = getattr(found, step)
    if not isinstance(found, Agent):
        raise NoSuchAgent(place, f"this is no agent but {type(found).__name__}", _agents(module))
    found.check()
    return found


def _load(place: str, name: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise NoSuchAgent(place, f"there is no module {name} here or among what is installed") from error
        raise NoSuchAgent(place, _broken(name, error)) from error
    except (Exception, SystemExit) as error:  # a module may raise whatever it likes
        raise NoSuchAgent(place, _broken(name, error)) from error


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


def _agents(module: ModuleType) -> list[str]:
    return sorted(name for name, value in vars(module).items() if isinstance(value, Agent))
