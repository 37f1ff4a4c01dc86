"""State hooks as layers of the same onion: *before* and *after* are *around* with a part left out.

The step chain stands around the model call and what is retried within it, the agent chain around a whole turn. A layer
that jumps leaves what is inside it out; what is outside it still runs its after-part.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from handrail.agent.kernel.chains import Around, Call, chain
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import Middleware, Update, defines
from handrail.agent.kernel.requests import TurnResult

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

Hook: TypeAlias = Callable[[Any, Any], Awaitable[Update]]
Step: TypeAlias = "Call[Turn, Target | None]"
"""One step up to the answer, and where it says the turn goes on."""
WholeTurn: TypeAlias = "Call[Turn, TurnResult]"


def step_chain(middleware: Sequence[Middleware], asked: Step) -> "Step | None":
    """The layers around a step; None where no middleware has a hook there."""
    layers = [
        _step_layer(place, layer)
        for place, layer in enumerate(middleware)
        if defines(layer, "before_model") or defines(layer, "after_model")
    ]
    return chain(layers, asked) if layers else None


def _step_layer(place: int, layer: Middleware) -> "Around[Turn, Target | None]":
    before: Hook = layer.before_model
    after: Hook = layer.after_model
    has_before, has_after = defines(layer, "before_model"), defines(layer, "after_model")

    async def only_before(turn: "Turn", call_next: Step) -> Target | None:
        state = turn.looks[place] if place in turn.looks else turn.look(place)
        update = await before(state, turn.context)
        if update is not None and (jump := turn.apply(layer, "before_model", update)) is not None:
            return jump
        return await call_next(turn)

    async def both(turn: "Turn", call_next: Step) -> Target | None:
        state = turn.looks[place] if place in turn.looks else turn.look(place)
        if has_before:
            update = await before(state, turn.context)
            if update is not None and (jump := turn.apply(layer, "before_model", update)) is not None:
                return jump
        inner = await call_next(turn)
        update = await after(state, turn.context)
        if update is not None and (jump := turn.apply(layer, "after_model", update)) is not None:
            return jump
        return inner

    return both if has_after else only_before


def agent_chain(middleware: Sequence[Middleware], played: WholeTurn) -> WholeTurn:
    """The layers around a whole turn: once a turn, outside everything that may enter it again."""
    layers = [
        _agent_layer(place, layer)
        for place, layer in enumerate(middleware)
        if defines(layer, "before_agent") or defines(layer, "after_agent")
    ]
    return chain(layers, played) if layers else played


def _agent_layer(place: int, layer: Middleware) -> "Around[Turn, TurnResult]":
    has_before, has_after = defines(layer, "before_agent"), defines(layer, "after_agent")

    async def around(turn: "Turn", call_next: WholeTurn) -> TurnResult:
        result = None
        if has_before:
            update = await layer.before_agent(turn.look(place), turn.context)
            jump = turn.apply(layer, "before_agent", update) if update is not None else None
            if jump == "end":
                # It passes this layer's own after-part too, and those outside.
                result = turn.end_at_once()
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
