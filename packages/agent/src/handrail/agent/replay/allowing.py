"""Which tools may touch the world in a replay."""

from collections.abc import Collection, Iterable

import msgspec

from handrail.agent.errors import ReplayRefused
from handrail.agent.tools import Tool

CLASSES = frozenset({"pure", "read_only"})
"""What may be permitted as a class: running it again changes nothing."""


class Allowed(msgspec.Struct, frozen=True):
    """The tools that are permitted: by name, and those of the classes `pure` and `read_only`."""

    names: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()

    def permits(self, tool: Tool, key: str | None, recorded: str | None) -> bool:
        """Whether the tool may run. One with an idempotency key may with the key that it had, and with no other: only
        so do both sides know that it is the same call."""
        if tool.name not in self.names and tool.side_effects not in self.classes:
            return False
        return key == recorded


def allowed(allow: Collection[str], tools: Iterable[str]) -> Allowed:
    """What is permitted by these names of tools and classes. Raises `ReplayRefused` for a name that is neither."""
    if isinstance(allow, str):
        raise ReplayRefused(f"allow is a list of tools, not the text {allow!r}")
    known = frozenset(tools)
    names = frozenset(allow) & known
    classes = (frozenset(allow) - names) & CLASSES
    for name in allow:
        if name not in names and name not in classes:
            possible = ", ".join(sorted(known)) or "none"
            raise ReplayRefused(
                f"allow names {name!r}, which is no tool of these agents: {possible}; nor pure, read_only"
            )
    return Allowed(names, classes)
