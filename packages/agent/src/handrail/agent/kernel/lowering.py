"""State hooks as layers of the same onion: *before* and *after* are *around* with a part left out.

The step chain stands around the model call and what is retried within it, the agent chain around a whole turn. A layer
that jumps leaves what is inside it out; what is outside it still runs its after-part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from handrail.agent.kernel.chains import Around, Call, chain
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import Middleware, defines
from handrail.agent.kernel.requests import TurnResult

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

Step: TypeAlias = "Call[Turn, Target | None]"
"""One step up to the answer, and where it says the turn goes on."""
WholeTurn: TypeAlias = "Call[Turn, TurnResult]"


def step_chain(middleware: Sequence[Middleware], asked: Step) -> Step | None:
    """The layers around a step; None where no middleware has a hook there.

    Neighbours that have only a before-part, or only an after-part, make one layer: it is the same onion, and costs a
    step less.
    """
    groups: list[tuple[str, list[_Place]]] = []
    for place, layer in enumerate(middleware):
        parts = "".join([part for part in ("before", "after") if defines(layer, f"{part}_model")])
        if not parts:
            continue
        look = place if defines(layer, "init_state") else -1
        if groups and groups[-1][0] == parts and parts != "beforeafter":
            groups[-1][1].append((look, layer))
        else:
            groups.append((parts, [(look, layer)]))
    if not groups:
        return None
    kinds = {"before": _befores, "after": _afters, "beforeafter": _both}
    return chain([kinds[parts](group) for parts, group in groups], asked)


_Place: TypeAlias = tuple[int, Middleware]
"""A layer with where its private state is; -1 for one without."""


def _befores(group: Sequence[_Place]) -> Around[Turn, Target | None]:
    hooks = [(look, layer, layer.before_model) for look, layer in group]

    async def around(turn: Turn, call_next: Step) -> Target | None:
        looks, context = turn.looks, turn.context
        for look, layer, before in hooks:
            update = await before(looks[look] if look in looks else turn.look(look), context)
            if update is not None and (jump := turn.apply(layer, "before_model", update)) is not None:
                return jump
        return await call_next(turn)

    return around


def _afters(group: Sequence[_Place]) -> Around[Turn, Target | None]:
    hooks = [(look, layer, layer.after_model) for look, layer in reversed(group)]

    async def around(turn: Turn, call_next: Step) -> Target | None:
        jump = await call_next(turn)
        looks, context = turn.looks, turn.context
        for look, layer, after in hooks:
            update = await after(looks[look] if look in looks else turn.look(look), context)
            if update is not None:
                jump = turn.apply(layer, "after_model", update) or jump
        return jump

    return around


def _both(group: Sequence[_Place]) -> Around[Turn, Target | None]:
    [(look, layer)] = group

    async def around(turn: Turn, call_next: Step) -> Target | None:
        state = turn.look(look)
        update = await layer.before_model(state, turn.context)
        if update is not None and (jump := turn.apply(layer, "before_model", update)) is not None:
            return jump
        inner = await call_next(turn)
        update = await layer.after_model(state, turn.context)
        return inner if update is None else turn.apply(layer, "after_model", update) or inner

    return around


def agent_chain(middleware: Sequence[Middleware], played: WholeTurn) -> WholeTurn:
    """The layers around a whole turn: once a turn, outside everything that may enter it again."""
    layers = [
        _agent_layer(place, layer)
        for place, layer in enumerate(middleware)
        if defines(layer, "before_agent") or defines(layer, "after_agent")
    ]
    return chain(layers, played) if layers else played


def _agent_layer(place: int, layer: Middleware) -> Around[Turn, TurnResult]:
    has_before, has_after = defines(layer, "before_agent"), defines(layer, "after_agent")

    async def around(turn: Turn, call_next: WholeTurn) -> TurnResult:
        result = None
        if has_before:
            update = await layer.before_agent(turn.look(place), turn.context)
            jump = turn.apply(layer, "before_agent", update) if update is not None else None
            if jump == "end":
                # It passes this layer's own after-part too, and those outside.
                result = await turn.end_at_once()
            elif jump is not None:
                result = await turn.enter_at(jump)
        if result is None:
            result = await call_next(turn)
        if has_after:
            turn.result = result
            update = await layer.after_agent(turn.look(place), turn.context)
            jump = turn.apply(layer, "after_agent", update) if update is not None else None
            if jump is not None and jump != "end":
                result = await turn.enter_at(jump)
            elif update is not None:
                result = turn.refreshed(result)
        return result

    return around
