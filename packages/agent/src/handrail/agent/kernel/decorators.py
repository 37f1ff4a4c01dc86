"""Functions as middleware: a decorator of each hook's name makes a layer of one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from handrail.agent.errors import BuildError
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import Middleware

Fn = TypeVar("Fn", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Callable[..., Any]], Middleware]
_OPTIONS = (
    "outside",
    "inside",
    "scope",
    "reducers",
    "channels",
    "requires",
    "tools",
    "instructions",
    "approves",
    "gates",
)


def _layer(
    hook: str, fn: Callable[..., Any], name: str, jumps: Sequence[Target], options: dict[str, Any]
) -> Middleware:
    if not callable(fn):
        raise BuildError(f"@{hook} makes a layer of a function, not of {fn!r}")
    init_state: Mapping[str, Any] | Callable[[], dict[str, Any]] | None = options.pop("init_state", None)
    unknown = [option for option in options if option not in _OPTIONS]
    if unknown:
        known = ", ".join(("name", "jumps", "init_state", *_OPTIONS))
        raise BuildError(f"@{hook} knows no option {unknown[0]!r}; its options are {known}")
    called = name or str(getattr(fn, "__name__", type(fn).__name__))
    members: dict[str, Any] = {hook: staticmethod(fn), "name": called, "__doc__": fn.__doc__, **options}
    if jumps:
        members["jumps"] = {hook: (jumps,) if isinstance(jumps, str) else tuple(jumps)}
    if init_state is not None:
        made = init_state
        members["init_state"] = lambda self: made() if callable(made) else dict(made)
    layer: Middleware = type(called, (Middleware,), members)()
    return layer


class _Hook:
    """A decorator that makes a layer of one function; see the hook of its name in `Middleware`.

    Options are the class attributes of a middleware (`name`, `jumps` of this one hook, `outside`, `inside`, `scope`,
    `reducers`, `channels`, `requires`, `tools`, `instructions`, `approves`, `gates`), and `init_state`, values or a
    function.
    """

    def __init__(self, hook: str) -> None:
        self.__name__ = hook

    @overload
    def __call__(self, fn: Fn, /) -> Middleware: ...
    @overload
    def __call__(self, /, *, name: str = "", jumps: Sequence[Target] = (), **options: Any) -> Decorator: ...
    def __call__(
        self, fn: Callable[..., Any] | None = None, /, *, name: str = "", jumps: Sequence[Target] = (), **options: Any
    ) -> Middleware | Decorator:
        """A layer of the function, or what makes one."""
        if fn is None:
            return lambda function: _layer(self.__name__, function, name, jumps, options)
        return _layer(self.__name__, fn, name, jumps, options)

    def __repr__(self) -> str:
        return self.__name__


around_turn = _Hook("around_turn")
around_chat = _Hook("around_chat")
around_tool = _Hook("around_tool")
around_handoff = _Hook("around_handoff")
before_agent = _Hook("before_agent")
before_model = _Hook("before_model")
after_model = _Hook("after_model")
after_agent = _Hook("after_agent")
token_transform = _Hook("token_transform")
