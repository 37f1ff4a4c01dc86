"""The agents that can be reached from one, with their targets resolved and their chains composed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.bounds import Bound, brought_instructions, offered_tools, planned
from handrail.agent.errors import BuildError, NameClash, UnknownTarget
from handrail.agent.gates import check_gates
from handrail.agent.handoffs import Handoff
from handrail.agent.kernel.middlewares import (
    Middleware,
    check_middleware,
    layer_name,
)
from handrail.agent.kernel.states import together
from handrail.agent.subagents import AgentTool

if TYPE_CHECKING:
    from handrail.agent.agents import Agent


class Graph:
    """The agents reachable from a root, by name."""

    __slots__ = ("_layered", "agents", "channels", "descriptors", "requires", "root")

    def __init__(self, root: str, agents: Mapping[str, Bound]) -> None:
        self.root = root
        self.agents = agents
        check_gates([(bound.name, bound.tools, bound.layers) for bound in agents.values()])
        self.channels = together([bound.channels for bound in agents.values()])
        self.requires = any([bound.requires for bound in agents.values()])
        self._layered: tuple[tuple[Middleware, ...], Graph] | None = None
        seals = [edge.filter for bound in agents.values() for edge in bound.handoffs.values()]
        seals += [each.filter for bound in agents.values() for tool in bound.tools.values() for each in tool.children]
        self.descriptors = {id(seal): (seal, seal.descriptor) for seal in seals}

    def layered(self, middleware: Sequence[Middleware]) -> Graph:
        """The same agents with these layers outside each one's own. Raises `BuildError` as for an agent's own."""
        if not isinstance(middleware, Sequence):
            raise BuildError(f"the middleware of a run is a list of Middleware values, not {middleware!r}")
        if not middleware:
            return self
        layers = tuple(middleware)
        # A program that gives the same layers to run after run has them composed once.
        if (
            self._layered is None
            or len(self._layered[0]) != len(layers)
            or any([a is not b for a, b in zip(self._layered[0], layers, strict=True)])
        ):
            agents = {name: _bind_again(bound, layers) for name, bound in self.agents.items()}
            self._layered = layers, Graph(self.root, agents)
        return self._layered[1]

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


def resolve(root: Agent) -> Graph:
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
        children = [each.child for tool in offered_tools(agent, agent.middleware) for each in tool.children]
        for other in [*[edge for edge in edges if not isinstance(edge, str)], *children]:
            known = found.setdefault(other.name, other)
            if known is not other:
                raise NameClash(other.name, f"an agent ({_about(known)})", f"another ({_about(other)})")
            if other.name not in targets and other not in waiting:
                waiting.append(other)
    return Graph(root.name, {name: _bind(agent, targets[name], found) for name, agent in found.items()})


def _about(agent: Agent) -> str:
    return agent.description or f"model {agent.model.name}, {len(agent.tools)} tools"


def _target(agent: Agent, edge: Handoff) -> Agent:
    target: Any = edge.target
    if not isinstance(target, type(agent)) and callable(target):
        target = target()
    if not isinstance(target, type(agent)):
        raise BuildError(f"a handoff of {agent.name} leads to {target!r}, which is no agent")
    return target


def _bind(agent: Agent, targets: Sequence[str], found: Mapping[str, Agent]) -> Bound:
    for name in targets:
        if name not in found:
            raise UnknownTarget(name, agent.name, sorted(found))
    check_offered(agent, targets)
    specs = [edge.spec(name, found[name].description) for edge, name in zip(agent.handoffs, targets, strict=True)]
    return Bound(agent, {spec.name: name for spec, name in zip(specs, targets, strict=True)}, specs, agent.middleware)


def _bind_again(bound: Bound, outer: Sequence[Middleware]) -> Bound:
    layers = (*outer, *bound.agent.middleware)
    check_middleware(layers, bound.name)
    check_offered(bound.agent, list(bound.targets.values()), layers)
    for layer in outer:
        if any([each.children for each in layer.tools]):
            raise BuildError(
                f"{layer_name(layer)} is given to a run, so it cannot bring an agent; give it to {bound.name}"
            )
    edges = [spec for spec in bound.specs if spec.name in bound.handoffs]
    return Bound(bound.agent, bound.targets, edges, layers)


def check_offered(agent: Agent, targets: Sequence[str | None], layers: Sequence[Middleware] | None = None) -> None:
    """Whether the tools, handoffs and blocks of an agent can be told apart; a target of None is not known yet.

    Raises `NameClash` naming both, `UnfitName`, or `BuildError` for an agent that hands over to itself, and for a tool
    that would answer in the place of an output type.
    """
    taken: dict[str, str] = {}
    layers = agent.middleware if layers is None else layers
    brought_instructions(agent, layers)
    for tool in offered_tools(agent, layers):
        what = f"the agent {tool.child.name!r} as a tool" if isinstance(tool, AgentTool) else f"the tool {tool.name!r}"
        if tool.name in taken:
            raise NameClash(tool.name, taken[tool.name], f"{what} of {agent.name}")
        taken[tool.name] = what
        if tool.return_direct and agent.output is not None:
            raise BuildError(f"{agent.name} has an output type, and {tool.name} would return another answer directly")
    output = planned(agent, offered_tools(agent, layers))
    for answer in output.tools if output is not None else ():
        if answer in taken:
            raise NameClash(answer, taken[answer], f"the output of {agent.name}")
        taken[answer] = f"the output of {agent.name}"
    for edge, name in zip(agent.handoffs, targets, strict=True):
        if name is None:
            continue
        if name == agent.name:
            raise BuildError(f"{agent.name} hands over to itself; leave the handoff out, its turn goes on anyway")
        offered, what = edge.tool_name(name), f"the handoff of {agent.name} to the agent {name!r}"
        if offered in taken:
            raise NameClash(offered, taken[offered], what)
        taken[offered] = what
