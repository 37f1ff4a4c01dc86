"""The agents that can be reached from one, with their targets resolved and their chains composed."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.asking import ask_model
from handrail.agent.calling import run_tool
from handrail.agent.crossing import cross
from handrail.agent.errors import BuildError, NameClash, UnknownTarget
from handrail.agent.handoffs import Handoff
from handrail.agent.kernel.chains import compose_hook
from handrail.agent.kernel.middlewares import AROUND, defines, layer_name
from handrail.agent.kernel.requests import TurnRequest, TurnResult
from handrail.agent.models import ToolSpec
from handrail.agent.subagents import AgentTool
from handrail.sessions import AgentRecord

if TYPE_CHECKING:
    from handrail.agent.agents import Agent


class Bound:
    """An agent ready to run: what a step needs, worked out once."""

    __slots__ = (
        "agent",
        "around_tool",
        "chat",
        "crossing",
        "gated",
        "handoffs",
        "instructions",
        "introduced",
        "model",
        "name",
        "settings",
        "specs",
        "targets",
        "tool",
        "tools",
        "turn",
    )

    def __init__(self, agent: "Agent", targets: Mapping[str, str], specs: Sequence[ToolSpec]) -> None:
        self.agent = agent
        self.name = agent.name
        self.model = agent.model
        self.settings = agent.settings
        self.instructions = agent.instructions
        self.tools = {tool.name: tool for tool in agent.tools}
        self.handoffs = {spec.name: edge for spec, edge in zip(specs, agent.handoffs, strict=True)}
        self.targets = targets
        self.specs = (*[tool.prepare().spec for tool in agent.tools], *specs)
        layers = agent.middleware
        self.turn = compose_hook(layers, "around_turn", _play)
        self.chat = compose_hook(layers, "around_chat", ask_model)
        self.tool = compose_hook(layers, "around_tool", run_tool)
        self.crossing = compose_hook(layers, "around_handoff", cross)
        self.introduced: AgentRecord | None = None
        self.gated = any(edge.enabled is not True for edge in agent.handoffs)
        self.around_tool = any(defines(layer, "around_tool") for layer in layers)

    def introduction(self) -> AgentRecord:
        """The agent as a session's record has it; worked out once."""
        if self.introduced is None:
            self.introduced = AgentRecord(
                name=self.name,
                instructions=tuple(self.instructions.values()),
                model=self.model.name,
                tools=tuple(self.tools),
                handoffs={name: edge.filter.descriptor for name, edge in self.handoffs.items()},
            )
        return self.introduced

    def describe(self) -> Iterator[str]:
        """The agent in lines, for a person to read."""
        labels = ", labels inherit" if self.agent.labels == "inherit" else ""
        policy = f", policy {self.agent.policy.file}" if self.agent.policy is not None else ""
        yield f"agent {self.name} ({self.model.name}{labels}{policy})"
        for hook in AROUND:
            layers = [layer_name(layer) for layer in self.agent.middleware if defines(layer, hook)]
            yield f"  {hook.removeprefix('around_')}: {' > '.join([*layers, hook.removeprefix('around_')])}"
        for tool in self.agent.tools:
            if isinstance(tool, AgentTool):
                yield f"  tool {tool.name} = agent {tool.child.name}, filter {tool.filter!r}, returns {tool.returns!r}"
            else:
                label = f", gives {tool.output_sensitivity}" if tool.output_sensitivity else ""
                yield f"  tool {tool.name} ({tool.side_effects}{label})"
        for name, edge in self.handoffs.items():
            returns = f", returns {edge.returns!r}" if edge.returns is not None else ""
            turn = f", next turn {edge.next_turn}" if edge.next_turn != "target" else ""
            kind = getattr(edge.input_type, "__name__", edge.input_type)
            takes = f", input {kind}" if edge.input_type is not None else ""
            parts = ("on_handoff", "deps", "policy")
            has = [part for part in parts if getattr(edge, part) is not None] + ["enabled"] * (edge.enabled is not True)
            also = f", with {', '.join(has)}" if has else ""
            yield f"  handoff {name} -> {self.targets[name]}, filter {edge.filter!r}{takes}{returns}{turn}{also}"


class Graph:
    """The agents reachable from a root, by name."""

    __slots__ = ("agents", "descriptors", "root")

    def __init__(self, root: str, agents: Mapping[str, Bound]) -> None:
        self.root = root
        self.agents = agents
        seals = [edge.filter for bound in agents.values() for edge in bound.handoffs.values()]
        seals += [
            tool.filter for bound in agents.values() for tool in bound.tools.values() if isinstance(tool, AgentTool)
        ]
        self.descriptors = {id(seal): (seal, seal.descriptor) for seal in seals}

    def describe(self) -> str:
        """Every agent with its chains, tools and handoffs."""
        return "\n".join([line for bound in self.agents.values() for line in bound.describe()])

    async def aclose(self) -> None:
        """Closes every model; the first that fails to close is raised when all were asked to."""
        models = {id(bound.model): bound.model for bound in self.agents.values()}
        ended = await asyncio.gather(*[model.aclose() for model in models.values()], return_exceptions=True)
        for problem in ended:
            if problem is not None:
                raise problem


def _play(request: TurnRequest) -> Coroutine[Any, Any, TurnResult]:
    played: Coroutine[Any, Any, TurnResult] = request.run.turn.play(request)
    return played


def resolve(root: "Agent") -> Graph:
    """The graph of all that an agent can reach.

    Raises `NameClash` for one name on two agents or on two tools of an agent, `UnknownTarget` for a name that is not
    among the reachable agents, `UnfitName` for a name that makes no tool name, and `BuildError` for what is no agent.
    """
    found: dict[str, Agent] = {root.name: root}
    targets: dict[str, list[str]] = {}
    waiting = [root]
    while waiting:
        agent = waiting.pop(0)
        edges = [(edge.target if isinstance(edge.target, str) else _target(agent, edge)) for edge in agent.handoffs]
        targets[agent.name] = [edge if isinstance(edge, str) else edge.name for edge in edges]
        children = [tool.child for tool in agent.tools if isinstance(tool, AgentTool)]
        for other in [*[edge for edge in edges if not isinstance(edge, str)], *children]:
            known = found.setdefault(other.name, other)
            if known is not other:
                raise NameClash(other.name, f"an agent ({_about(known)})", f"another ({_about(other)})")
            if other.name not in targets and other not in waiting:
                waiting.append(other)
    return Graph(root.name, {name: _bind(agent, targets[name], found) for name, agent in found.items()})


def _about(agent: "Agent") -> str:
    return agent.description or f"model {agent.model.name}, {len(agent.tools)} tools"


def _target(agent: "Agent", edge: Handoff) -> "Agent":
    target: Any = edge.target
    if not isinstance(target, type(agent)) and callable(target):
        target = target()
    if not isinstance(target, type(agent)):
        raise BuildError(f"a handoff of {agent.name} leads to {target!r}, which is no agent")
    return target


def _bind(agent: "Agent", targets: Sequence[str], found: "Mapping[str, Agent]") -> Bound:
    for name in targets:
        if name not in found:
            raise UnknownTarget(name, agent.name, sorted(found))
    check_offered(agent, targets)
    specs = [edge.spec(name, found[name].description) for edge, name in zip(agent.handoffs, targets, strict=True)]
    return Bound(agent, {spec.name: name for spec, name in zip(specs, targets, strict=True)}, specs)


def check_offered(agent: "Agent", targets: Sequence[str | None]) -> None:
    """Whether the tools and handoffs of an agent can be told apart; a target of None is not known yet.

    Raises `NameClash` naming both, `UnfitName`, or `BuildError` for an agent that hands over to itself.
    """
    taken: dict[str, str] = {}
    for tool in agent.tools:
        what = f"the agent {tool.child.name!r} as a tool" if isinstance(tool, AgentTool) else f"the tool {tool.name!r}"
        if tool.name in taken:
            raise NameClash(tool.name, taken[tool.name], f"{what} of {agent.name}")
        taken[tool.name] = what
    for edge, name in zip(agent.handoffs, targets, strict=True):
        if name is None:
            continue
        if name == agent.name:
            raise BuildError(f"{agent.name} hands over to itself; leave the handoff out, its turn goes on anyway")
        offered, what = edge.tool_name(name), f"the handoff of {agent.name} to the agent {name!r}"
        if offered in taken:
            raise NameClash(offered, taken[offered], what)
        taken[offered] = what
