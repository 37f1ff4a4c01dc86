"""An agent ready to run: its tools, chains and state, worked out once."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.asking import ask_model
from handrail.agent.crossing import cross
from handrail.agent.errors import BuildError, NameClash
from handrail.agent.executing import run_kept, run_tool
from handrail.agent.gates import check_approved
from handrail.agent.introducing import introduced
from handrail.agent.kernel.chains import Call, compose_hook, transforms_of
from handrail.agent.kernel.lowering import agent_chain, step_chain
from handrail.agent.kernel.middlewares import (
    AROUND,
    STATE_HOOKS,
    Middleware,
    defines,
    layer_name,
)
from handrail.agent.kernel.requests import ChatRequest, TurnRequest, TurnResult
from handrail.agent.kernel.states import declared, together
from handrail.agent.models import ChatResponse, ToolSpec
from handrail.agent.tools import Tool
from handrail.sessions import AgentRecord

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.loop import Turn
    from handrail.agent.strategies import Plan


class Bound:
    """An agent ready to run: what a step needs, worked out once."""

    __slots__ = (
        "_without",
        "agent",
        "alone",
        "around_chat",
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
        "names",
        "output",
        "plain",
        "raised",
        "requires",
        "settings",
        "specs",
        "step",
        "targets",
        "tool",
        "tool_kept",
        "tool_states",
        "tools",
        "transforms",
        "turn",
        "whole",
    )

    def __init__(
        self,
        agent: Agent,
        targets: Mapping[str, str],
        specs: Sequence[ToolSpec],
        layers: Sequence[Middleware],
    ) -> None:
        self.agent = agent
        self.name = agent.name
        self.names = (agent.name,)
        self.model = agent.model
        self.settings = agent.settings
        self.layers = tuple(layers)
        tools = offered_tools(agent, layers)
        check_approved(agent.name, tools, layers)
        self.instructions = {**agent.instructions, **brought_instructions(agent, layers)}
        self.tools = {tool.name: tool for tool in tools}
        self.handoffs = {spec.name: edge for spec, edge in zip(specs, agent.handoffs, strict=True)}
        self.targets = targets
        self.output = planned(agent, tools)
        answers = self.output.specs if self.output is not None else ()
        self.specs = (*[tool.prepared.spec for tool in tools], *answers, *specs)
        self.turn = compose_hook(layers, "around_turn", _play, heard=_passing_through)
        self.whole = agent_chain(layers, _enter_turn)
        self.step = step_chain(layers, _ask)
        # Nothing stands around a turn, and nothing judges its answer: what the loop gives is its result.
        self.alone = self.turn is _play and self.whole is _enter_turn and self.step is None and self.output is None
        self.chat = compose_hook(layers, "around_chat", ask_model)
        self.around_chat = self.chat is not ask_model
        self.around_tool = any(defines(layer, "around_tool") for layer in layers)
        self.tool = compose_hook(layers, "around_tool", run_tool)
        self.tool_kept = compose_hook(layers, "around_tool", run_kept) if self.around_tool else self.tool
        self.crossing = compose_hook(layers, "around_handoff", cross)
        self.transforms = transforms_of(layers)
        self._without: dict[frozenset[int], Any] = {}
        # All that its model can call are tools.
        self.plain = not self.handoffs and self.output is None
        self.direct = any([tool.return_direct for tool in tools])
        self.raised = frozenset([error_class for error_class, how in agent.tool_errors.items() if how == "raise"])
        self.introduced: AgentRecord | None = None
        _load_rooms(self)
        self.gated = any(edge.enabled is not True for edge in agent.handoffs)
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

    def chat_without(self, places: frozenset[int]) -> Call[ChatRequest, ChatResponse]:
        """The chat chain without the layers at these places, for the own calls of one of them."""
        if places not in self._without:
            self._without[places] = compose_hook(self.layers, "around_chat", ask_model, without=places)
        call: Call[ChatRequest, ChatResponse] = self._without[places]
        return call

    def introduction(self) -> AgentRecord:
        """The agent as a session's record has it; worked out once."""
        if self.introduced is None:
            self.introduced = introduced(self)
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


def _enter_turn(turn: Turn) -> Coroutine[Any, Any, TurnResult]:
    return turn.enter_turn()


def _ask(turn: Turn) -> Coroutine[Any, Any, None]:
    return turn.ask()


def _passing_through(call: Call[TurnRequest, TurnResult]) -> Call[TurnRequest, TurnResult]:
    # A turn that did not complete must pass through the layers outside: the loop is not entered once more.
    async def heard(request: TurnRequest) -> TurnResult:
        result = await call(request)
        if type(result) is TurnResult and result.status != "completed":
            request.run.turn.ended_as = result.status
        return result

    return heard


def _play(request: TurnRequest) -> Coroutine[Any, Any, TurnResult]:
    played: Coroutine[Any, Any, TurnResult] = request.run.turn.play_on(request)
    return played


def _load_rooms(bound: Bound) -> None:
    """Loads what the first call of this agent needs and few programs do: no run is to wait for it."""
    asks = any([tool.children for tool in bound.tools.values()])
    if asks or bound.handoffs:
        import json  # noqa: F401
    if asks:
        import hashlib  # noqa: F401

        import handrail.agent.delegating
    if bound.output is not None:
        import handrail.agent.accepting  # noqa: F401


def offered_tools(agent: Agent, layers: Sequence[Middleware]) -> list[Tool]:
    """The agent's own tools, and those that its layers bring. Raises `BuildError` for what is no tool."""
    tools = list(agent.tools)
    for layer in layers:
        for each in layer.tools:
            if not isinstance(each, Tool):
                raise BuildError(f"{layer_name(layer)} brings {each!r}, which is no tool, to {agent.name}")
            tools.append(each)
    return tools


def planned(agent: Agent, tools: Sequence[Tool]) -> Plan | None:
    """How the agent's model is asked for its output type; None where plain text is all that is wanted."""
    if agent.output is None or agent.output.whole is None:
        return None
    from handrail.agent.strategies import plan

    return plan(agent.output, agent.model.profile, tools=bool(tools or agent.handoffs), agent=agent.name)


def brought_instructions(agent: Agent, layers: Sequence[Middleware]) -> dict[str, str]:
    """The blocks of instructions that layers bring. Raises `NameClash` for one that the agent has itself."""
    brought = {layer_name(layer): layer.instructions for layer in layers if layer.instructions}
    for name in brought:
        if name in agent.instructions:
            raise NameClash(name, f"a block of instructions of {agent.name}", f"that of its layer {name}")
    return brought
