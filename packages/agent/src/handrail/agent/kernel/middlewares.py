"""What middleware is: a class whose hooks pass through by default; override one."""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from handrail.agent.errors import BuildError, NameClash
from handrail.agent.kernel.requests import (
    ChatRequest,
    ChatResponse,
    HandoffRequest,
    HandoffResponse,
    ToolRequest,
    ToolResponse,
    TurnRequest,
    TurnResult,
)

CallTurn: TypeAlias = Callable[[TurnRequest], Awaitable[TurnResult]]
CallChat: TypeAlias = Callable[[ChatRequest], Awaitable[ChatResponse]]
CallTool: TypeAlias = Callable[[ToolRequest], Awaitable[ToolResponse]]
CallHandoff: TypeAlias = Callable[[HandoffRequest], Awaitable[HandoffResponse]]

HOOKS = ("around_turn", "around_chat", "around_tool", "around_handoff")
_HOOK_LIKE = ("around_", "before_", "after_", "wrap_", "on_", "token_transform")


class Middleware:
    """A layer around what agents do. Only the hooks that a class defines take part; the others cost nothing.

    Each hook is `async def hook(self, request, call_next)`. Not calling `call_next` short-circuits; calling it again
    retries; what it raises travels outward. One instance may serve many agents and runs at once, so what belongs to
    one turn is kept in `request.state`, which a class that wants it declares by defining `init_state`.
    """

    name: ClassVar[str] = ""
    """What the layer is called in `describe()` and in errors; the class's name where it is empty."""

    def init_state(self) -> dict[str, Any]:
        """The private state at the start of each turn."""
        return {}

    async def around_turn(self, request: TurnRequest, call_next: CallTurn) -> TurnResult:
        """Around one agent's turn: from getting control to answering, handing over or failing."""
        return await call_next(request)

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Around one model call."""
        return await call_next(request)

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """Around one tool execution; a sub-agent's too."""
        return await call_next(request)

    async def around_handoff(self, request: HandoffRequest, call_next: CallHandoff) -> HandoffResponse:
        """Around one boundary crossing of this agent, a handoff or a sub-agent."""
        return await call_next(request)


def layer_name(middleware: Middleware) -> str:
    """What a layer is called."""
    return middleware.name or type(middleware).__name__


def defines(middleware: Middleware, method: str) -> bool:
    """Whether the layer's class, and not only `Middleware`, defines a method."""
    return getattr(type(middleware), method) is not getattr(Middleware, method)


def check_middleware(layers: Sequence[Middleware], agent: str) -> None:
    """Raises `BuildError` for what is no middleware, a hook nobody calls or of a wrong shape, or a name given twice."""
    named: dict[str, Middleware] = {}
    for layer in layers:
        if not isinstance(layer, Middleware):
            raise BuildError(f"the middleware of {agent} is made of Middleware values, not {layer!r}")
        name = layer_name(layer)
        if name in named:
            raise NameClash(name, f"{type(named[name]).__name__} in {agent}", f"{type(layer).__name__} in {agent}")
        named[name] = layer
        for attribute in dir(type(layer)):
            if attribute.startswith(_HOOK_LIKE) and callable(getattr(layer, attribute)):
                _check_hook(name, attribute, getattr(layer, attribute))


def _check_hook(layer: str, name: str, hook: Callable[..., Any]) -> None:
    if name not in HOOKS:
        raise BuildError(f"{layer} defines {name}, which is no hook; the hooks are {', '.join(HOOKS)}")
    parameters = [p for p in inspect.signature(hook).parameters.values() if p.default is inspect.Parameter.empty]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) != 2 or len(parameters) != 2:
        raise BuildError(f"{layer}.{name} takes (self, request, call_next), not {inspect.signature(hook)}")
    if not inspect.iscoroutinefunction(hook):
        raise BuildError(f"{layer}.{name} is not an async function")
