"""Handoffs: an agent passes control, and a filter says what goes with it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.names import check_tool_name, tool_name
from handrail.filters import Filter, Seal, default_handoff_filter, seal
from handrail.filters.messages import Messages

if TYPE_CHECKING:
    from handrail.agent.agents import Agent

Target: TypeAlias = "Agent | str | Callable[[], Agent]"

REASON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "description": "Why the conversation is handed over."}},
    "additionalProperties": False,
}


class Handoff(msgspec.Struct, frozen=True, eq=False):
    """A way from one agent to another: its target, and the sealed filter that decides what crosses."""

    target: Any
    filter: Seal
    name: str = ""
    description: str = ""

    def tool_name(self, target_name: str) -> str:
        """What the transfer tool is called. Raises `UnfitName`."""
        return self.name or tool_name(target_name, "transfer_to_")

    def spec(self, target_name: str, target_description: str) -> ToolSpec:
        """The transfer tool that the source's model is offered. Raises `UnfitName`."""
        about = self.description or f"Hand the conversation over to {target_name}. {target_description}".strip()
        return ToolSpec(self.tool_name(target_name), about, REASON_SCHEMA)


def handoff(
    target: Target,
    *,
    filter: Filter | Callable[[Messages], Any] | None = None,
    name: str = "",
    description: str = "",
) -> Handoff:
    """A handoff to an agent; it adds a `transfer_to_<name>` tool with an optional `reason`.

    `target` is an agent, a callable that returns one, or the name of an agent that is reachable; so two agents can
    hand to each other. `filter` (default `default_handoff_filter()`) decides what crosses, and is always sealed.
    Raises `InvalidFilter`, and `BuildError` for a target that can be none.
    """
    if not isinstance(target, str) and not callable(target) and not hasattr(target, "handoffs"):
        raise BuildError(f"a handoff goes to an agent, a callable that returns one, or an agent's name, not {target!r}")
    if name:
        check_tool_name(name, "the handoff")
    return Handoff(target, sealed(filter), name, description)


def sealed(filter: Filter | Callable[[Messages], Any] | None) -> Seal:
    """The filter of an edge, sealed; the default one where none is given."""
    return seal(default_handoff_filter() if filter is None else filter)
