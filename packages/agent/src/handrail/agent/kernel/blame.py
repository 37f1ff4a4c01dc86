"""Which layer an error came from, read from its traceback, so that no layer costs anything while all goes well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CodeType, FrameType, TracebackType

from handrail.agent.kernel.middlewares import HOOKS, Middleware, defines, layer_name

_INSIDE = frozenset(
    [
        f"handrail.agent.{room}"
        for room in ("asking", "bounds", "calling", "crossing", "editing", "kernel.lowering", "loop", "turns")
    ]
)


def blame(error: BaseException, layers: Iterable[Middleware]) -> str | None:
    """The hook of these layers that raised the error, as `Layer.hook`; None where it came from elsewhere."""
    hooks: dict[CodeType, dict[str, Middleware]] = {}
    for layer in layers:
        for hook in HOOKS:
            code = getattr(getattr(layer, hook), "__code__", None)
            if code is not None and defines(layer, hook):
                hooks.setdefault(code, {})[f"{layer_name(layer)}.{hook}"] = layer
    found: str | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code in hooks:
            found = _which(hooks[frame.f_code], frame)
        elif frame.f_globals.get("__name__") in _INSIDE:
            # The hook called on, and what it called on to raised.
            found = None
        trace = trace.tb_next
    return found


def _which(named: Mapping[str, Middleware], frame: FrameType) -> str:
    # Layers of one class share their code; which of them it was stands in its first argument.
    first = frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_argcount else None
    own = [name for name, layer in named.items() if layer is first]
    return own[0] if own else " or ".join(named)


def wrong_return(layers: Sequence[Middleware], agent: str, hook: str, found: object, wanted: str) -> str:
    """What is wrong where a chain gave something else than its response, naming the layer that gave it: the outermost,
    or where that only passes on what it was given, one further in."""
    return within(layers, agent, hook, f"{type(found).__name__}, not a {wanted}")


def within(layers: Sequence[Middleware], agent: str, hook: str, what: str) -> str:
    """What a chain gave, naming the layer as `wrong_return` does."""
    names = [layer_name(layer) for layer in layers if defines(layer, hook)]
    if not names:
        return f"the {hook.removeprefix('around_')} chain of {agent} gave {what}"
    inside = f"; what is inside it ({', '.join(names[1:])}) may have given it that" if names[1:] else ""
    return f"{names[0]}.{hook} of {agent} returned {what}{inside}"
