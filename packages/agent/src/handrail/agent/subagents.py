"""Sub-agents: an agent wrapped as another agent's tool."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.agent.handoffs import sealed
from handrail.agent.models import ToolSpec
from handrail.agent.names import tool_name
from handrail.agent.tools import InvalidArguments, Prepared, Tool
from handrail.filters import Filter, Seal, full
from handrail.filters.messages import Messages, whole

if TYPE_CHECKING:
    from handrail.agent.agents import Agent

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "What the agent is asked."}},
    "required": ["input"],
    "additionalProperties": False,
}


class AgentTool(Tool, frozen=True, kw_only=True, dict=True, eq=False):
    """An agent as a tool: called with one string `input`; it answers, and control comes back.

    `filter` decides what the child sees of its caller's conversation, `returns` what comes back of its answer.
    """

    child: Any
    filter: Seal
    returns: Seal

    def prepare(self) -> Prepared:
        """The child's one string needs no schema library."""
        return Prepared(ToolSpec(self.name, self.description, INPUT_SCHEMA), check_input, "", True)


def to_tool(
    child: "Agent",
    *,
    filter: Filter | Callable[[Messages], Any] | None = None,
    returns: Filter | Callable[[Messages], Any] | None = None,
    name: str = "",
    description: str = "",
) -> AgentTool:
    """An agent as a tool: the filtered history, then the input as the last user message.

    `filter` defaults to `default_handoff_filter()`, `returns` to `full()`; both are sealed. The child runs in its own
    scope: cancellation, deps, limits and usage flow through, and a child that does not complete is a tool error.
    Raises `UnfitName` where the child's name makes no tool name and `name` is not given.
    """
    about = description or f"Ask {child.name}. {child.description}".strip()
    return AgentTool(
        name=name or tool_name(child.name),
        description=about,
        fn=_asked,
        parameters=INPUT_SCHEMA,
        child=child,
        filter=sealed(filter),
        returns=sealed(full() if returns is None else returns),
    )


def check_input(text: str) -> dict[str, Any]:
    """The arguments of a sub-agent's call. Raises `InvalidArguments`."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict) or set(arguments) != {"input"} or not isinstance(arguments["input"], str):
        raise InvalidArguments(f"the arguments are one string, input; found {text[:200]}")
    return {"input": whole(arguments["input"])}


async def _asked(input: str) -> str:
    raise TypeError("a sub-agent is run by the loop of the agent that has it as a tool")
