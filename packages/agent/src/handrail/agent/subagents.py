"""Sub-agents: an agent wrapped as another agent's tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from handrail.agent.errors import BuildError
from handrail.agent.handoffs import check_policy, sealed, sealed_back
from handrail.agent.models import ToolSpec
from handrail.agent.names import tool_name
from handrail.agent.telling import Forward
from handrail.agent.tools import InvalidArguments, Prepared, Tool
from handrail.filters import Filter, Seal, ToolCall, full
from handrail.filters.messages import Messages, whole

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.kernel.requests import ToolResponse
    from handrail.agent.loop import Turn
    from handrail.filters.policies import Policy

Expose: TypeAlias = Literal["final", "all", "none"]

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
    expose: Expose = "final"
    fold: bool | int = False
    capability: Literal["read_only"] | None = None
    forward_events: Forward = "all"
    policy: Policy | None = None
    deps: Callable[[Any], Any] | None = None

    @property
    def children(self) -> tuple[AgentTool, ...]:
        """Itself."""
        return (self,)

    async def answer(self, turn: Turn, call: ToolCall, input: str) -> ToolResponse:
        """Runs the agent in a scope of its own; one that does not complete is a tool error, never an empty success."""
        from handrail.agent.delegating import Delegation

        return (await Delegation(turn, self, call).run(input)).response

    def prepare(self) -> Prepared:
        """The child's one string needs no schema library."""
        return Prepared(ToolSpec(self.name, self.description, INPUT_SCHEMA), check_input, "", True)


def to_tool(
    child: Agent,
    *,
    filter: Filter | Callable[[Messages], Any] | None = None,
    returns: Filter | Callable[[Messages], Any] | None = None,
    name: str = "",
    description: str = "",
    expose: Expose = "final",
    fold: bool | int = False,
    capability: Literal["read_only"] | None = None,
    forward_events: Forward = "all",
    output_sensitivity: str | None = None,
    policy: Policy | None = None,
    deps: Callable[[Any], Any] | None = None,
) -> AgentTool:
    """An agent as a tool: the filtered history, then the input as the last user message.

    `filter` defaults to `default_handoff_filter()`, `returns` to `full()`; both are sealed. The child runs in its own
    scope: cancellation, deps, limits and usage flow through, and a child that does not complete is a tool error.

    - `expose`: the `final` answer, the words of `all` its turns, or `none` (a fixed text).
    - `fold`: a line of what was done, and the answer cut to so many characters (True: 2,000).
    - `capability="read_only"`: tools of the child and its descendants that have side effects are refused.
    - `forward_events`: which of its events the caller's stream hears: `all`, the `lifecycle`, or `none`.
    - `output_sensitivity` labels its answer; `policy` and `deps` are as for `handoff`.

    Raises `UnfitName` where the child's name makes no tool name and `name` is not given, and `BuildError`.
    """
    for what, value, possible in (
        ("expose", expose, get_args(Expose)),
        ("capability", capability, ("read_only", None)),
        ("forward_events", forward_events, get_args(Forward)),
    ):
        if value not in possible:
            raise BuildError(f"{what} is one of {', '.join(map(repr, possible))}, not {value!r}")
    check_policy(policy, f"the tool of {child.name}")
    if deps is not None and not callable(deps):
        raise BuildError(f"deps of a sub-agent is a function, not {deps!r}")
    if not isinstance(fold, int) or fold < 0:
        raise BuildError(f"fold is True, False, or a number of characters, not {fold!r}")
    about = description or f"Ask {child.name}. {child.description}".strip()
    return AgentTool(
        name=name or tool_name(child.name),
        description=about,
        fn=asked,
        parameters=INPUT_SCHEMA,
        child=child,
        filter=sealed(filter),
        returns=sealed_back(full() if returns is None else returns),
        expose=expose,
        fold=fold,
        capability=capability,
        forward_events=forward_events,
        output_sensitivity=output_sensitivity,
        policy=policy,
        deps=deps,
    )


def check_input(text: str) -> dict[str, Any]:
    """The arguments of a sub-agent's call. Raises `InvalidArguments`."""
    import json

    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"the arguments are not JSON: {error}") from error
    if not isinstance(arguments, dict) or set(arguments) != {"input"} or not isinstance(arguments["input"], str):
        raise InvalidArguments(f"the arguments are one string, input; found {text[:200]}")
    if not arguments["input"].strip():
        raise InvalidArguments("the input is empty; say what the agent is asked")
    return {"input": whole(arguments["input"])}


async def asked(input: str) -> str:
    """Stands in the place of a function that is never called."""
    raise TypeError("a sub-agent is run by the loop of the agent that has it as a tool")
