"""Tools behind which several agents work."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.limits import Limits
from handrail.agent.models import ToolSpec
from handrail.agent.subagents import INPUT_SCHEMA, AgentTool, check_input, to_tool
from handrail.agent.tools import Prepared, Tool

if TYPE_CHECKING:
    from handrail.agent.carrying import TeamResult, TeamStream
    from handrail.agent.entering import Input

_Read = TypeVar("_Read")


class TeamTool(Tool, frozen=True, kw_only=True, dict=True, eq=False):
    """Several agents as one tool: called with one string `input`, like a sub-agent, or run by itself.

    Each agent is asked as a sub-agent of the caller, in a scope of its own.
    """

    team: tuple[AgentTool, ...]

    @property
    def children(self) -> tuple[AgentTool, ...]:
        """The agents that it asks, each with the edge that leads to it."""
        return self.team

    def prepare(self) -> Prepared:
        """Its one string needs no schema library."""
        return Prepared(ToolSpec(self.name, self.description, INPUT_SCHEMA), check_input, "", True)

    async def run(self, input: "Input", **options: Any) -> "TeamResult":
        """Asks the agents without an agent that calls them; `options` are those of `Agent.run`.

        The conversation, in a session too, is that of an agent with this tool's name, which passes the input on and
        answers with the result. Raises `ToolFailed` where the result is an error, and what `Agent.run` raises.
        """
        from handrail.agent.carrying import Carrier

        carrier = Carrier(self)
        return carrier.result(await carrier.agent().run(input, **options))

    def run_sync(self, input: "Input", **options: Any) -> "TeamResult":
        """`run` for code that is not async. Models are closed at the end."""
        from handrail.agent.carrying import Carrier

        carrier = Carrier(self)
        return carrier.result(carrier.agent().run_sync(input, **options))

    def stream(self, input: "Input", **options: Any) -> "TeamStream":
        """The same run, heard as it goes; `options` are those of `Agent.stream`."""
        from handrail.agent.carrying import Carrier, TeamStream

        carrier = Carrier(self)
        return TeamStream(carrier.agent().stream(input, **options), carrier)


def edge_to(agent: Any, name: str, timeout: float | None, options: Mapping[str, Any]) -> AgentTool:
    """The edge from a team's tool to one of its agents: made of `to_tool`'s options, or as `to_tool` made it.

    Raises `BuildError` for what is no agent, and for a timeout that is none.
    """
    from handrail.agent.agents import Agent

    if not isinstance(agent, Agent | AgentTool):
        raise BuildError(f"{name} asks agents, or what to_tool makes of them, not {agent!r}")
    edge = agent if isinstance(agent, AgentTool) else to_tool(agent, **{**options, "name": name})
    return edge if timeout is None else msgspec.structs.replace(edge, timeout=timeout)


def edge_to_judge(agent: Any, name: str, timeout: float | None, options: Mapping[str, Any]) -> AgentTool:
    """The same, to one that is asked about what the others answered: what is shown or kept of theirs is not its own."""
    judged = {option: value for option, value in options.items() if option not in ("expose", "fold")}
    return edge_to(agent, name, timeout, judged)


def check_count(what: str, value: Any, name: str) -> None:
    """Raises `BuildError` for what is no whole number from 1."""
    if type(value) is not int or value < 1:
        raise BuildError(f"{what} of {name} is a whole number from 1, not {value!r}")


def check_function(what: str, fn: Callable[..., Any], takes: Sequence[str], name: str) -> None:
    """Raises `BuildError` for a function that cannot be called with these arguments."""
    try:
        inspect.signature(fn).bind(*takes)
    except TypeError as error:
        raise BuildError(f"the {what} of {name} takes ({', '.join(takes)}): {error}") from None
    except ValueError:
        pass  # it is built in and does not say what it takes


def check_budget(budget: Any, name: str) -> None:
    """Raises `BuildError` for what are no limits."""
    if budget is not None and not isinstance(budget, Limits):
        raise BuildError(f"the budget of {name} is Limits(…), not {budget!r}")


def read_json(text: str, kind: type[_Read]) -> _Read:
    """What an agent answered as JSON, also within a fence of backticks. Raises `msgspec.DecodeError`."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") : -3]
    return msgspec.json.decode(bare, type=kind)
