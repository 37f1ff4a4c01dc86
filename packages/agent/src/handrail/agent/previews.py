"""What the next agent would see, without running anything."""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.agent.errors import BuildError, UnknownTarget
from handrail.agent.subagents import AgentTool
from handrail.filters import History, InvalidFilter, Note, Report, Seal, edge_history
from handrail.filters.messages import Messages
from handrail.filters.resolvers import EdgeInfo, Resolver, resolve, unresolved

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.graphs import Bound


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What would cross a boundary: `messages` are what the target would start from, `report` says what each step of
    the filter did to the `history` that it would be given."""

    kind: Literal["handoff", "subagent"]
    source: str
    target: str
    tool: str
    filter: Seal
    notes: tuple[Note, ...]
    history: Messages
    messages: Messages
    report: Report

    def __str__(self) -> str:
        from handrail.filters.hand import hand

        head = f"{self.source} -> {self.target}: {len(self.messages)} messages of {len(self.history)}"
        return f"{head}\n{self.report}\n\n{hand(self.messages)}"


def preview(
    agent: "Agent", target: "Agent | str", history: Messages, *, reason: str = "", input: str = "", deps: Any = None
) -> Preview:
    """What `target` would start from, were it handed (or asked, as a sub-agent) this history by `agent`.

    `target` is an agent or its name, or the name of the tool that leads to it where several do. `history` is what
    `agent` sees: its view up to the message that makes the call, with or without it. `reason` and `input` are what the
    call would bring along, `deps` the application's own object, for resolvers. No model is called, no hook is run, and
    nothing is written.

    Raises `UnknownTarget` where no edge leads there, `BuildError` where several do, `InvalidFilter` for a resolver that
    must wait for something (as `summarize` for its model), and what the boundary would raise: `FilterError`, or
    `NothingToHandOver`.
    """
    wanted = target if isinstance(target, str) else target.name
    bound = agent.graph().agents[agent.name]
    kind, tool, name, sealed = _edge(bound, wanted)
    view = History(history)
    given = edge_history(view, _call_id(view, tool), kind=kind).messages
    notes = tuple([Note(label, text) for label, text in _notes(reason, input) if text])
    if unresolved(sealed):
        bound = agent.graph().agents[name]
        tools = (*bound.tools, *bound.handoffs)
        info = EdgeInfo(
            source=agent.name, target=name, kind=kind, reason=reason, input=input, deps=deps, target_tools=tools
        )
        sealed = _resolved(sealed, given, info, view)
    return Preview(
        kind=kind,
        source=agent.name,
        target=name,
        tool=tool,
        filter=sealed,
        notes=notes,
        history=given,
        messages=sealed.hand_over(given, notes, view),
        report=sealed.explain(given),
    )


def _resolved(sealed: Seal, given: Messages, info: EdgeInfo, view: History) -> Seal:
    for step in sealed.flat:
        if isinstance(step, Resolver) and any(
            map(inspect.iscoroutinefunction, (step.resolve, getattr(step, "fn", None)))
        ):
            raise InvalidFilter(f"{step!r} waits for something, so what crosses can only be seen when it runs")
    running = resolve(sealed, given, info, view)
    try:
        running.send(None)
    except StopIteration as ended:
        return Seal(ended.value)
    running.close()
    raise InvalidFilter(f"{sealed!r} waits for something, so what crosses can only be seen when it runs")


def _notes(reason: str, input: str) -> tuple[tuple[Literal["reason", "input"], str], ...]:
    return ("reason", reason), ("input", input)


def _call_id(view: History, tool: str) -> str | None:
    calls = view[-1].tool_calls if view else ()
    return next((call.id for call in calls if call.name == tool), None)


def _edge(bound: "Bound", wanted: str) -> tuple[Literal["handoff", "subagent"], str, str, Any]:
    edges = list(_edges(bound))
    found = [edge for edge in edges if edge[1] == wanted] or [edge for edge in edges if edge[2] == wanted]
    if not found:
        raise UnknownTarget(wanted, bound.name, sorted({edge[2] for edge in edges}))
    if len(found) > 1:
        tools = ", ".join([edge[1] for edge in found])
        raise BuildError(f"several ways lead from {bound.name} to {wanted}; name one of the tools: {tools}")
    return found[0]


def _edges(bound: "Bound") -> Iterator[tuple[Literal["handoff", "subagent"], str, str, Any]]:
    for name, edge in bound.handoffs.items():
        yield "handoff", name, bound.targets[name], edge.filter
    for tool in bound.tools.values():
        if isinstance(tool, AgentTool):
            yield "subagent", tool.name, tool.child.name, tool.filter
