"""The one onion: layers around a terminal, the first in the list outermost, composed once for each agent."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from handrail.agent.kernel.middlewares import Middleware, defines
from handrail.agent.kernel.requests import Request

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT")
Call: TypeAlias = Callable[[RequestT], Awaitable[ResponseT]]
Around: TypeAlias = Callable[[RequestT, Call[RequestT, ResponseT]], Awaitable[ResponseT]]


def chain(
    layers: Sequence[Around[RequestT, ResponseT]], terminal: Call[RequestT, ResponseT]
) -> Call[RequestT, ResponseT]:
    """The terminal with the layers around it."""
    call = terminal
    for layer in reversed(layers):
        call = link(layer, call)
    return call


def link(layer: Around[RequestT, ResponseT], call_next: Call[RequestT, ResponseT]) -> Call[RequestT, ResponseT]:
    """One layer around the next call."""
    return lambda request: layer(request, call_next)


def compose_hook(
    middleware: Sequence[Middleware], hook: str, terminal: Call[RequestT, ResponseT]
) -> Call[RequestT, ResponseT]:
    """The chain of one hook: of each middleware that defines it, showing each its own private state and no other's."""
    layers: list[Around[RequestT, ResponseT]] = []
    shown = -1
    for place, layer in enumerate(middleware):
        if not defines(layer, hook):
            continue
        around: Around[RequestT, ResponseT] = getattr(layer, hook)
        sees = place if defines(layer, "init_state") else -1
        # A layer without state needs its own look only where one outside it has left its mark on the request.
        layers.append(around if sees == shown == -1 else _looking(around, sees))
        shown = sees if shown == -1 else shown
    return chain(layers, terminal)


def _looking(around: Around[RequestT, ResponseT], place: int) -> Around[RequestT, ResponseT]:
    def layer(request: RequestT, call_next: Call[RequestT, ResponseT]) -> Awaitable[ResponseT]:
        return around(_seen(request, place), call_next)

    return layer


def _seen(request: Any, place: int) -> Any:
    if request.layer == place:
        return request
    own = request.__copy__()
    msgspec.structs.force_setattr(own, "layer", place)
    return own
