"""What a resolver is told of a boundary of a run, and the filter that it gives."""

from typing import TYPE_CHECKING, Literal

from handrail.filters import Edge, EdgeInfo, Filter, History, resolve, unresolved

if TYPE_CHECKING:
    from handrail.agent.loop import Turn


async def resolved(
    turn: "Turn",
    edge: Edge,
    filter: Filter,
    kind: Literal["handoff", "subagent"],
    target: str,
    reason: str,
    input: str,
    asked_by: str,
) -> Filter:
    """The filter that runs at this boundary; the same one where it is no resolver. Raises `FilterFailed`."""
    if not unresolved(filter):
        return filter
    if turn.run.world is not None and (known := turn.run.world.filter(asked_by, filter)) is not None:
        return known
    run, bound, other = turn.run, turn.bound, turn.run.graph.agents[target]
    info = EdgeInfo(
        source=bound.name,
        target=target,
        kind=kind,
        reason=reason,
        input=input,
        deps=turn.context.deps,
        now=run.clock(),
        target_tools=(*other.tools, *other.handoffs),
        model=bound.model,
        said=_said(turn, edge.view),
    )
    return await resolve(filter, edge.messages, info, edge.view)


def _said(turn: "Turn", view: History) -> frozenset[str] | None:
    if turn.seeded:
        given = {message.id for message in turn.entered}
        said: list[str] = []
        for message in reversed(view):
            if message.id in given or turn.base.position(message.id) is not None:
                break
            said.append(message.id)
        return frozenset(said)
    start = _began(turn, view)
    return None if start is None else frozenset([message.id for message in view[start:]])


def _began(turn: "Turn", view: History) -> int | None:
    # The conversation goes on in a new run. What came over a boundary in an earlier one stands before the agent's
    # first words after it last gave control away, or before its first words of all.
    now = next((place for place in range(len(view) - 1, -1, -1) if view[place].role == "assistant"), 0)
    given_away = [place for place in view.survey().transfers if place < now]
    if not given_away and turn.bound.name == turn.run.graph.root:
        return None
    after = given_away[-1] + 1 if given_away else 0
    own = (p for p in range(after, len(view)) if view[p].role == "assistant" and view[p].agent == turn.bound.name)
    return min(next(own, len(view)), turn.start)
