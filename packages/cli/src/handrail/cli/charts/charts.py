"""What there is to draw of an agent and all that it can reach: boxes with tools, and arrows with filters."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from handrail.agent import Agent
from handrail.agent.subagents import AgentTool
from handrail.cli.exits import printable
from handrail.filters import Filter, full
from handrail.filters.reasoning import StripReasoning


class Box(msgspec.Struct, frozen=True):
    """One agent: its name, its model, and its tools with what they may do."""

    name: str
    model: str
    tools: tuple[str, ...] = ()


class Arrow(msgspec.Struct, frozen=True):
    """One way to another agent; `lines` are the tool that takes it, each step of its filter, and what else holds."""

    kind: Literal["handoff", "subagent"]
    source: int
    target: int
    lines: tuple[str, ...]


class Chart(msgspec.Struct, frozen=True):
    """Everything reachable from the first box; arrows name boxes by their place."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def chart(agent: Agent) -> Chart:
    """The chart of an agent and all that it can reach. Raises `BuildError` for what cannot work."""
    bounds = agent.graph().agents
    places = {name: place for place, name in enumerate(bounds)}
    boxes = [
        Box(
            printable(name),
            printable(bound.model.name),
            tuple([_tool(tool) for tool in bound.agent.tools if not tool.children]),
        )
        for name, bound in bounds.items()
    ]
    arrows: list[Arrow] = []
    for name, bound in bounds.items():
        for tool_name, edge in bound.handoffs.items():
            lines = (tool_name, *steps(edge.filter.filter), *_conditions(edge))
            arrows.append(Arrow("handoff", places[name], places[bound.targets[tool_name]], _printable(lines)))
        for tool in bound.agent.tools:
            for each in tool.children:
                lines = (tool.name, *steps(each.filter.filter), *_conditions(each))
                arrows.append(Arrow("subagent", places[name], places[each.child.name], _printable(lines)))
    return Chart(tuple(boxes), tuple(arrows))


def steps(filter: Filter) -> list[str]:
    """Each step of a filter as it prints; without the closing strip that every boundary has anyway."""
    flat = filter.flat
    shown = flat[:-1] if len(flat) > 1 and isinstance(flat[-1], StripReasoning) else flat
    return [f"{'| ' if place else ''}{step!r}" for place, step in enumerate(shown)]


def _tool(tool: Any) -> str:
    label = f", {tool.output_sensitivity}" if tool.output_sensitivity else ""
    return printable(f"{tool.name} ({tool.side_effects.replace('_', ' ')}{label})")


def _conditions(edge: Any) -> Iterator[str]:
    if (kind := getattr(edge, "input_type", None)) is not None:
        yield f"input: {getattr(kind, '__name__', kind)}"
    if edge.returns is not None and edge.returns.filter != full():
        yield f"and back: {' '.join(steps(edge.returns.filter))}"
    elif edge.returns is not None and not isinstance(edge, AgentTool):
        yield "and back"
    if (turn := getattr(edge, "next_turn", "target")) != "target":
        yield f"next turn: {turn}"
    if (enabled := getattr(edge, "enabled", True)) is not True:
        yield "when enabled" if callable(enabled) else "not enabled"
    if getattr(edge, "capability", None):
        yield edge.capability.replace("_", " ")
    if getattr(edge, "policy", None) is not None:
        yield "under a policy"


def _printable(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(printable, lines))
