"""Agent paths: who within whom.

A session-level view has the agent's name as its path. A sub-agent's is `<caller path>/<name>@<call id>`; so is that of
an agent handed to within that call, under its own name. Where one call asks several agents, each is asked in a scope of
its own, counted from 1: `<caller path>/<name>@<call id>@<part>`. `/`, `@` and `%` in a name or a call id are written as
`%2F`, `%40` and `%25`.
"""

from __future__ import annotations


def top_path(name: str) -> str:
    """The path of an agent at the level of the session."""
    return _quoted(name) if "/" in name or "@" in name or "%" in name else name


def scope_mark(call_id: str, part: int = 0) -> str:
    """What ends the paths of the agents within a sub-agent call; `part` tells apart what one call asks of several."""
    return f"@{_quoted(call_id)}@{part}" if part else f"@{_quoted(call_id)}"


def sub_path(caller: str, name: str, call_id: str, part: int = 0) -> str:
    """The path of the agent with this name within a sub-agent call made at the path `caller`."""
    return f"{caller}/{_quoted(name)}{scope_mark(call_id, part)}"


def sibling_path(path: str, name: str) -> str:
    """The path of an agent that the one at `path` hands over to: the same scope, another name."""
    scope, slash, own = path.rpartition("/")
    return f"{scope}/{_quoted(name)}@{own.partition('@')[2]}" if slash else top_path(name)


def name_of(path: str) -> str:
    """The name of the agent at a path."""
    name = path.rpartition("/")[2].partition("@")[0]
    return name.replace("%2F", "/").replace("%40", "@").replace("%25", "%")


def is_top(path: str) -> bool:
    """Whether the path is at the level of the session, in no sub-agent call."""
    return "/" not in path


def in_scope(path: str, caller: str, call_id: str, part: int = 0) -> bool:
    """Whether the path lies in the sub-agent call `call_id`, or that part of it, that was made at the path `caller`."""
    if not path.startswith(f"{caller}/"):
        return False
    _, at, mark = path[len(caller) + 1 :].partition("/")[0].partition("@")
    return at + mark == scope_mark(call_id, part)


def _quoted(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F").replace("@", "%40")
