"""What the next agent would see, without running anything."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.agent.errors import BuildError, InvalidInput, UnknownTarget
from handrail.agent.tools import InvalidArguments
from handrail.filters import History, InvalidFilter, Note, Report, Seal, edge_history
from handrail.filters.messages import Message, Messages
from handrail.filters.reports import crossed
from handrail.filters.resolvers import EdgeInfo, Resolver, resolve, unresolved

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.bounds import Bound


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

        head = f"{self.source} -> {self.target}: {crossed(self.history, self.messages, 'would cross')}"
        return f"{head}\n{self.report}\n\n{hand(self.messages)}"


def preview(
    agent: Agent, target: Agent | str, history: Messages, *, reason: str = "", input: Any = None, deps: Any = None
) -> Preview:
    """What `target` would start from, were it handed (or asked, as a sub-agent) this history by `agent`.

    `target` is an agent or its name, or the name of the tool that leads to it where several do. `history` is what
    `agent` sees: its view up to the message that makes the call, with or without it. `reason` and `input` are what the
    call would bring along (for an edge with an `input_type` a value of it, or its JSON), `deps` the application's own
    object, for resolvers. No model is called, no hook is run, and
    nothing is written.

    Raises `InvalidInput` for what is no history and for an input that the call would refuse, `UnknownTarget` where no
    edge leads there, `BuildError` where several do, `InvalidFilter` for a resolver that must wait for something (as
    `summarize` for its model), and what the boundary would raise: `FilterError`, or `NothingToHandOver`.
    """
    if isinstance(history, str | Message) or not all([isinstance(message, Message) for message in history]):
        raise InvalidInput("the history of a preview is messages, such as [user('…')]")
    wanted = target if isinstance(target, str) else target.name
    bound = agent.graph().agents[agent.name]
    kind, tool, name, sealed = _edge(bound, wanted)
    view = History(history)
    given = edge_history(view, _call_id(view, tool), kind=kind).messages
    words = _words(bound, kind, tool, reason, input)
    notes = tuple([Note(label, text) for label, text in _notes(*words) if text])
    if unresolved(sealed):
        bound = agent.graph().agents[name]
        tools = (*bound.tools, *bound.handoffs)
        info = EdgeInfo(
            source=agent.name, target=name, kind=kind, reason=reason, input=words[1], deps=deps, target_tools=tools
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


def _words(bound: Bound, kind: str, tool: str, reason: str, input: Any) -> tuple[str, str]:
    """The reason and the input as the call would bring them along."""
    import json

    if kind == "subagent":
        if input is not None and not isinstance(input, str):
            raise InvalidInput(f"a sub-agent is asked with a text, not {input!r}")
        return reason, input or ""
    edge = bound.handoffs[tool]
    if input is None and edge.input_type is None:
        return reason, ""
    try:
        if isinstance(input, str) and edge.input_type is not str:
            input = json.loads(input)
        given = edge.given(reason, input, input is not None)
    except (InvalidArguments, ValueError, RecursionError) as error:
        raise InvalidInput(f"the handoff {tool} would refuse this input: {error}") from error
    return given.reason, given.input


def _notes(reason: str, input: str) -> tuple[tuple[Literal["reason", "input"], str], ...]:
    return ("reason", reason), ("input", input)


def _call_id(view: History, tool: str) -> str | None:
    calls = view[-1].tool_calls if view else ()
    return next((call.id for call in calls if call.name == tool), None)


def _edge(bound: Bound, wanted: str) -> tuple[Literal["handoff", "subagent"], str, str, Any]:
    edges = list(_edges(bound))
    found = [edge for edge in edges if edge[1] == wanted] or [edge for edge in edges if edge[2] == wanted]
    if not found:
        raise UnknownTarget(wanted, bound.name, sorted({edge[2] for edge in edges}))
    ways = [edge for place, edge in enumerate(found) if edge not in found[:place]]
    if len(ways) > 1:
        tools, targets = dict.fromkeys([edge[1] for edge in ways]), dict.fromkeys([edge[2] for edge in ways])
        named = f"tools: {', '.join(tools)}" if len(tools) > 1 else f"agents: {', '.join(targets)}"
        raise BuildError(f"several ways lead from {bound.name} to {wanted}; name one of the {named}")
    return ways[0]


def _edges(bound: Bound) -> Iterator[tuple[Literal["handoff", "subagent"], str, str, Any]]:
    for name, edge in bound.handoffs.items():
        yield "handoff", name, bound.targets[name], edge.filter
    for tool in bound.tools.values():
        for each in tool.children:
            yield "subagent", tool.name, each.child.name, each.filter
