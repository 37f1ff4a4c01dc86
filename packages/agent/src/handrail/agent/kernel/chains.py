"""The one onion: layers around a terminal, the first in the list outermost, composed once for each agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import MethodType
from typing import Any, TypeAlias, TypeVar

import msgspec

from handrail.agent.kernel.middlewares import Middleware, defines, layer_name
from handrail.agent.kernel.privates import NO_STATE
from handrail.agent.kernel.requests import ChatRequest, Request
from handrail.agent.kernel.tokens import TokenTransform

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT")
T = TypeVar("T")
_replace = msgspec.structs.replace
Call: TypeAlias = Callable[[T], Awaitable[ResponseT]]
Around: TypeAlias = Callable[[T, Call[T, ResponseT]], Awaitable[ResponseT]]


def chain(layers: Sequence[Around[T, ResponseT]], terminal: Call[T, ResponseT]) -> Call[T, ResponseT]:
    """The terminal with the layers around it."""
    call = terminal
    for layer in reversed(layers):
        call = link(layer, call)
    return call


def link(layer: Around[T, ResponseT], call_next: Call[T, ResponseT]) -> Call[T, ResponseT]:
    """One layer around the next call."""
    if isinstance(layer, MethodType):
        function, owner = _parted(layer)
        return lambda request: function(owner, request, call_next)
    return lambda request: layer(request, call_next)


def _parted(layer: Callable[..., Any]) -> tuple[Callable[..., Any], object]:
    # A function that is handed its owner is called faster than the method of both.
    if isinstance(layer, MethodType):
        return layer.__func__, layer.__self__
    return lambda _, request, call_next: layer(request, call_next), None


def compose_hook(
    middleware: Sequence[Middleware],
    hook: str,
    terminal: Call[RequestT, ResponseT],
    *,
    without: frozenset[int] = frozenset(),
    heard: Callable[[Call[RequestT, ResponseT]], Call[RequestT, ResponseT]] | None = None,
) -> Call[RequestT, ResponseT]:
    """The chain of one hook: of each middleware that defines it, showing each its own private state and no other's.
    The layer at the place `without` is left out; `heard` is put around what each layer calls on to."""
    layers = [(place, layer) for place, layer in enumerate(middleware) if defines(layer, hook) and place not in without]
    stateful = [place for place, layer in layers if defines(layer, "init_state")]
    call = terminal
    for place, layer in reversed(layers):
        around: Around[RequestT, ResponseT] = getattr(layer, hook)
        call = heard(call) if heard is not None else call
        if place in stateful:
            call = _own_link(around, call, place)
        elif stateful and place > stateful[0]:
            # One outside it has left its state on the request.
            call = _hidden_link(around, call)
        else:
            call = link(around, call)
    return call


def _own_link(
    around: Around[RequestT, ResponseT], call_next: Call[RequestT, ResponseT], place: int
) -> Call[RequestT, ResponseT]:
    function, owner = _parted(around)

    def call(request: RequestT) -> Awaitable[ResponseT]:
        # As `with_state`, without a call of its own: this is on the way of every step.
        try:
            own = _replace(request, state=request.run.states[place])
        except KeyError:
            own = with_state(request, place)
        return function(owner, own, call_next)  # type: ignore[no-any-return]

    return call


def with_state(request: RequestT, place: int) -> RequestT:
    """The request as the layer at this place sees it: with its own private state."""
    return _replace(request, state=request.run.private_state(place))


def _hidden_link(
    around: Around[RequestT, ResponseT], call_next: Call[RequestT, ResponseT]
) -> Call[RequestT, ResponseT]:
    def call(request: RequestT) -> Awaitable[ResponseT]:
        return around(_replace(request, state=NO_STATE), call_next)

    return call


def transforms_of(middleware: Sequence[Middleware]) -> tuple[tuple[str, Callable[[ChatRequest], TokenTransform]], ...]:
    """What makes each layer's token transform, with the layer's name, in list order. Each is shown its own private
    state and no other's."""
    layers = [(place, layer) for place, layer in enumerate(middleware) if defines(layer, "token_transform")]
    return tuple([(layer_name(layer), _transform_of(place, layer)) for place, layer in layers])


def _transform_of(place: int, layer: Middleware) -> Callable[[ChatRequest], TokenTransform]:
    stateful = defines(layer, "init_state")

    def make(request: ChatRequest) -> TokenTransform:
        return layer.token_transform(with_state(request, place) if stateful else request.replace(state=NO_STATE))

    return make
