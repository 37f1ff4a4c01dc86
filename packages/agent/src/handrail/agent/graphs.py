"""The agents that can be reached from one, with their targets resolved and their chains composed."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.asking import ask_model
from handrail.agent.crossing import cross
from handrail.agent.errors import BuildError, NameClash, UnknownTarget
from handrail.agent.executing import run_tool
from handrail.agent.gates import check_approved, check_gates
from handrail.agent.handoffs import Handoff
from handrail.agent.kernel.chains import Call, compose_hook, transforms_of
from handrail.agent.kernel.lowering import agent_chain, step_chain
from handrail.agent.kernel.middlewares import (
    AROUND,
    STATE_HOOKS,
    Middleware,
    check_middleware,
    defines,
    layer_name,
)
from handrail.agent.kernel.requests import ChatRequest, TurnRequest, TurnResult
from handrail.agent.kernel.states import declared, together
from handrail.agent.models import ChatResponse, ToolSpec
from handrail.agent.strategies import Plan, plan
from handrail.agent.subagents import AgentTool
from handrail.agent.tools import Tool
from handrail.sessions import AgentRecord

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.loop import Turn


class Bound:
    """An agent ready to run: what a step needs, worked out once."""

    __slots__ = (
        "_without",
        "agent",
        "around_tool",
        "channels",
        "chat",
        "crossing",
        "direct",
        "gated",
        "handoffs",
        "instructions",
        "introduced",
        "lasting",
        "layers",
        "model",
        "name",
        "output",
        "raised",
        "requires",
        "settings",
        "specs",
        "step",
        "targets",
        "tool",
        "tool_states",
        "tools",
        "transforms",
        "turn",
        "whole",
    )

    def __init__(
        self,
        agent: "Agent",
        targets: Mapping[str, str],
        specs: Sequence[ToolSpec],
        layers: Sequence[Middleware],
    ) -> None:
        self.agent = agent
        self.name = agent.name
        self.model = agent.model
        self.settings = agent.settings
        self.layers = tuple(layers)
        tools = offered_tools(agent, layers)
        check_approved(agent.name, tools, layers)
        self.instructions = {**agent.instructions, **_brought_instructions(agent, layers)}
        self.tools = {tool.name: tool for tool in tools}
        self.handoffs = {spec.name: edge for spec, edge in zip(specs, agent.handoffs, strict=True)}
        self.targets = targets
        self.output = planned(agent, tools)
        answers = self.output.specs if self.output is not None else ()
        self.specs = (*[tool.prepare().spec for tool in tools], *answers, *specs)
        self.turn = compose_hook(layers, "around_turn", _play, heard=_passing_through)
        self.whole = agent_chain(layers, _enter_turn)
        self.step = step_chain(layers, _ask)
        self.chat = compose_hook(layers, "around_chat", ask_model)
        self.tool = compose_hook(layers, "around_tool", run_tool)
        self.crossing = compose_hook(layers, "around_handoff", cross)
        self.transforms = transforms_of(layers)
        self._without: dict[frozenset[int], Any] = {}
        self.direct = any([tool.return_direct for tool in tools])
        self.raised = frozenset([error_class for error_class, how in agent.tool_errors.items() if how == "raise"])
        self.introduced: AgentRecord | None = None
        self.gated = any(edge.enabled is not True for edge in agent.handoffs)
        self.around_tool = any(defines(layer, "around_tool") for layer in layers)
        in_calls = ["around_tool"] + ["around_handoff"] * any(tool.children for tool in tools)
        self.lasting = tuple(
            place for place, layer in enumerate(layers) if layer.scope == "session" and defines(layer, "init_state")
        )
        self.tool_states = tuple(
            place
            for place, layer in enumerate(layers)
            if defines(layer, "init_state") and any(defines(layer, hook) for hook in in_calls)
        )
        self.channels = together(
            [declared(agent.channels, agent.name), *[declared(layer.channels, layer_name(layer)) for layer in layers]]
        )
        required = [(agent.name, agent.requires), *[(layer_name(layer), layer.requires) for layer in layers]]
        self.requires = tuple([(owner, dict(names)) for owner, names in required if names])

    def chat_without(self, places: frozenset[int]) -> "Call[ChatRequest, ChatResponse]":
        """The chat chain without the layers at these places, for the own calls of one of them."""
        if places not in self._without:
            self._without[places] = compose_hook(self.layers, "around_chat", ask_model, without=places)
        call: Call[ChatRequest, ChatResponse] = self._without[places]
        return call

    def introduction(self) -> AgentRecord:
        """The agent as a session's record has it; worked out once."""
        if self.introduced is None:
            self.introduced = AgentRecord(
                name=self.name,
                instructions=tuple(self.instructions.values()),
                model=self.model.name,
                tools=tuple(self.tools),
                handoffs={name: edge.filter.descriptor for name, edge in self.handoffs.items()},
                output=self.output.record() if self.output is not None else {},
            )
        return self.introduced

    def describe(self) -> Iterator[str]:
        """The agent in lines, for a person to read."""
        labels = ", labels inherit" if self.agent.labels == "inherit" else ""
        policy = f", policy {self.agent.policy.file}" if self.agent.policy is not None else ""
        yield f"agent {self.name} ({self.model.name}{labels}{policy})"
        for hook in AROUND:
            layers = [layer_name(layer) for layer in self.layers if defines(layer, hook)]
            yield f"  {hook.removeprefix('around_')}: {' > '.join([*layers, hook.removeprefix('around_')])}"
        for hook in (*STATE_HOOKS, "token_transform"):
            # What comes after runs from the last to the first.
            order = reversed(self.layers) if hook.startswith("after_") else self.layers
            if layers := [layer_name(layer) for layer in order if defines(layer, hook)]:
                yield f"  {hook}: {', '.join(layers)}"
        for each in self.channels.values():
            how = f"{'private, ' * each.how.private}{'folded' if each.how.reducer else each.how.conflict}"
            yield f"  channel {each.name} of {each.owner} ({how})"
        for tool in self.tools.values():
            for to in tool.children:
                yield f"  tool {tool.name} = agent {to.child.name}, filter {to.filter!r}, returns {to.returns!r}"
            if not tool.children:
                label = f", gives {tool.output_sensitivity}" if tool.output_sensitivity else ""
                asks = ", needs approval" if tool.needs_approval is not False else ""
                yield f"  tool {tool.name} ({tool.side_effects}{label}{asks})"
        if self.output is not None:
            yield f"  output {self.output}"
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

    def layered(self, middleware: Sequence[Middleware]) -> "Graph":
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


def _enter_turn(turn: "Turn") -> Coroutine[Any, Any, TurnResult]:
    return turn.enter_turn()


async def _ask(turn: "Turn") -> None:
    await turn.ask()


def _passing_through(call: "Call[TurnRequest, TurnResult]") -> "Call[TurnRequest, TurnResult]":
    # A turn that did not complete must pass through the layers outside: the loop is not entered once more.
    async def heard(request: TurnRequest) -> TurnResult:
        result = await call(request)
        if type(result) is TurnResult and result.status != "completed":
            request.run.turn.ended_as = result.status
        return result

    return heard


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
        children = [each.child for tool in offered_tools(agent, agent.middleware) for each in tool.children]
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


def offered_tools(agent: "Agent", layers: Sequence[Middleware]) -> "list[Tool]":
    """The agent's own tools, and those that its layers bring. Raises `BuildError` for what is no tool."""
    tools = list(agent.tools)
    for layer in layers:
        for each in layer.tools:
            if not isinstance(each, Tool):
                raise BuildError(f"{layer_name(layer)} brings {each!r}, which is no tool, to {agent.name}")
            tools.append(each)
    return tools


def planned(agent: "Agent", tools: Sequence[Tool]) -> Plan | None:
    """How the agent's model is asked for its output type; None where plain text is all that is wanted."""
    if agent.output is None or agent.output.whole is None:
        return None
    return plan(agent.output, agent.model.profile, tools=bool(tools or agent.handoffs), agent=agent.name)


def _brought_instructions(agent: "Agent", layers: Sequence[Middleware]) -> dict[str, str]:
    brought = {layer_name(layer): layer.instructions for layer in layers if layer.instructions}
    for name in brought:
        if name in agent.instructions:
            raise NameClash(name, f"a block of instructions of {agent.name}", f"that of its layer {name}")
    return brought


def check_offered(agent: "Agent", targets: Sequence[str | None], layers: "Sequence[Middleware] | None" = None) -> None:
    """Whether the tools, handoffs and blocks of an agent can be told apart; a target of None is not known yet.

    Raises `NameClash` naming both, `UnfitName`, or `BuildError` for an agent that hands over to itself, and for a tool
    that would answer in the place of an output type.
    """
    taken: dict[str, str] = {}
    layers = agent.middleware if layers is None else layers
    _brought_instructions(agent, layers)
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
