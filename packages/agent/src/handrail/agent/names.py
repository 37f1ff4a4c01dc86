"""Names: what agents and tools are called, for a model and in an agent path."""

from __future__ import annotations

from handrail.agent.errors import BuildError, UnfitName
from handrail.filters.patterns import lazy

_FIT = lazy(r"[A-Za-z0-9_-]{1,64}")
_OTHER = lazy(r"[^a-z0-9_-]+")


def tool_name(agent_name: str, prefix: str = "") -> str:
    """A tool name made from an agent's: lower case, each run of other characters than `[a-z0-9_-]` becomes `_`.

    Raises `UnfitName` where nothing is left of the name, or more than 64 characters come out.
    """
    made = _OTHER.sub("_", agent_name.lower())
    name = prefix + made
    if not made.strip("_-") or len(name) > 64:
        raise UnfitName(name, f"the agent {agent_name!r}")
    return name


def fit_name(text: str) -> str:
    """A tool name made from any text that begins as one: each run of other characters becomes `_`, at most 64."""
    return _OTHER.sub("_", text.lower()).strip("_")[:64]


def check_tool_name(name: str, what: str) -> str:
    """The name, or `UnfitName` where a provider would refuse it."""
    if not isinstance(name, str) or _FIT.fullmatch(name) is None:
        raise UnfitName(name, what)
    return name


def check_agent_name(name: str) -> str:
    """The name, or `BuildError` where it cannot stand in a path or a record."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise BuildError(f"an agent's name is printable text, not {name!r}")
    return name
