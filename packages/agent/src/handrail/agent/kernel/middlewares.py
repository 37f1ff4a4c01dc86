"""What middleware is: a class whose hooks pass through by default; override one."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from handrail.agent.errors import BuildError, NameClash
from handrail.agent.kernel.jumps import TARGETS, Jump, Target
from handrail.agent.kernel.privates import Reducer
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
from handrail.agent.kernel.tokens import TokenTransform

if TYPE_CHECKING:
    from handrail.agent.contexts import RunContext
    from handrail.agent.kernel.states import State
    from handrail.agent.tools import Tool

CallTurn: TypeAlias = Callable[[TurnRequest], Awaitable[TurnResult]]
CallChat: TypeAlias = Callable[[ChatRequest], Awaitable[ChatResponse]]
CallTool: TypeAlias = Callable[[ToolRequest], Awaitable[ToolResponse]]
CallHandoff: TypeAlias = Callable[[HandoffRequest], Awaitable[HandoffResponse]]
Update: TypeAlias = "Mapping[str, Any] | Jump | None"
"""What a state hook returns: nothing, values by channel (`messages` among them), or a jump."""

AROUND = ("around_turn", "around_chat", "around_tool", "around_handoff")
STATE_HOOKS = ("before_agent", "before_model", "after_model", "after_agent")
HOOKS = (*AROUND, *STATE_HOOKS, "token_transform")
_HOOK_LIKE = ("around_", "before_", "after_", "wrap_", "on_", "token_transform")


class Middleware:
    """A layer around what agents do. Only the hooks that a class defines take part; the others cost nothing.

    Each around hook is `async def hook(self, request, call_next)`. Not calling `call_next` short-circuits; calling it
    again retries; what it raises travels outward. A state hook is `async def hook(self, state, run)`; it returns what
    is to be written, or a jump. One instance may serve many agents and runs at once, so what belongs to one turn is
    kept in `request.state`, which a class that wants it declares by defining `init_state`.
    """

    name: str = ""
    """What the layer is called in `describe()` and in errors; the class's name where it is empty."""
    jumps: Mapping[str, Sequence[Target]] = {}
    """Where each state hook may jump to, by the hook's name."""
    outside: Sequence[str] = ()
    """The names or classes (by name) of layers that this one must stand before, where they are in the same list."""
    inside: Sequence[str] = ()
    """The names or classes (by name) of layers that this one must stand after, where they are in the same list."""
    scope: Literal["turn", "session"] = "turn"
    """How long the private state lives."""
    reducers: Mapping[str, Reducer] = {}
    """What folds the writes of calls that run side by side into a key of the private state, by key."""
    channels: Any = None
    """The shared state that the layer declares: a TypedDict or a pydantic model."""
    requires: Mapping[str, Any] = {}
    """What the deps of a run must hold, by name, and of which type."""
    tools: Sequence[Tool] = ()
    """Tools that the layer brings to its agent."""
    instructions: str = ""
    """Instructions that the layer brings to its agent, as a block of the layer's name."""
    approves: bool = False
    """Whether the layer asks before tools that need approval."""
    gates: Collection[str] = ()
    """The names of tools that the layer keeps; one that no agent with this layer has is refused."""
    serves_answer: bool = False
    """Whether what its token transform delivers is the answer too. Of such layers a list has one at most: tokens pass
    the list from first to last, and answers from last to first, so two would deliver one thing and keep another."""

    def init_state(self) -> dict[str, Any]:
        """The private state at the start of each turn, or of the session for one that lives on."""
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

    async def before_agent(self, state: State, run: RunContext[Any]) -> Update:
        """Once, when the agent gets control, outside every `around_turn`."""

    async def before_model(self, state: State, run: RunContext[Any]) -> Update:
        """Before each step's model call; a retry around the call does not run it again."""

    async def after_model(self, state: State, run: RunContext[Any]) -> Update:
        """After each step's model call, with the answer that was accepted as the view's last message."""

    async def after_agent(self, state: State, run: RunContext[Any]) -> Update:
        """Once, when the agent has answered or handed over, outside every `around_turn`."""

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        """What is done to the tokens of this model call on their way to who listens."""
        return TokenTransform()


def layer_name(middleware: Middleware) -> str:
    """What a layer is called."""
    return middleware.name or type(middleware).__name__


def defines(middleware: Middleware, method: str) -> bool:
    """Whether the layer's class, and not only `Middleware`, defines a method."""
    return getattr(type(middleware), method) is not getattr(Middleware, method)


def check_middleware(layers: Sequence[Middleware], agent: str) -> None:
    """Raises `BuildError` for what is no middleware, a hook nobody calls or of a wrong shape, a jump that is none, a
    layer that stands on the wrong side of another, two that serve the answer, or a name given twice."""
    named: dict[str, Middleware] = {}
    if not isinstance(layers, Sequence):
        raise BuildError(f"the middleware of {agent} is a list of Middleware values, not {layers!r}")
    for layer in layers:
        if not isinstance(layer, Middleware):
            raise BuildError(f"the middleware of {agent} is made of Middleware values, not {layer!r}")
        if not isinstance(layer.name, str):
            raise BuildError(f"the name of the layer {type(layer).__name__} in {agent} is text, not {layer.name!r}")
        name = layer_name(layer)
        if name in named:
            raise NameClash(name, f"{type(named[name]).__name__} in {agent}", f"{type(layer).__name__} in {agent}")
        named[name] = layer
        for attribute in dir(type(layer)):
            if not attribute.startswith("_") and callable(getattr(layer, attribute)):
                _check_attribute(name, attribute, getattr(layer, attribute))
        _check_declared(name, layer)
    _check_order(list(named), list(named.values()), agent)
    serving = [name for name, layer in named.items() if layer.serves_answer]
    if len(serving) > 1:
        raise BuildError(
            f"{serving[0]} and {serving[1]} of {agent} both serve the answer: what is delivered passes them first to "
            f"last and the answer last to first, so they would differ; leave answer=True to one of them"
        )


def _check_attribute(layer: str, name: str, method: Callable[..., Any]) -> None:
    if name in HOOKS or name.startswith(_HOOK_LIKE):
        _check_hook(layer, name, method)
    elif not hasattr(Middleware, name):
        import difflib

        if near := difflib.get_close_matches(name, HOOKS, 1, 0.85):
            raise BuildError(f"{layer} defines {name}, which is no hook; did you mean {near[0]}?")


def _check_hook(layer: str, name: str, hook: Callable[..., Any]) -> None:
    if name not in HOOKS:
        raise BuildError(f"{layer} defines {name}, which is no hook; the hooks are {', '.join(HOOKS)}")
    takes = ("request",) if name == "token_transform" else ("state", "run") if name in STATE_HOOKS else _AROUND_TAKES
    parameters = [p for p in inspect.signature(hook).parameters.values() if p.default is inspect.Parameter.empty]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) != len(takes) or len(parameters) != len(takes):
        raise BuildError(f"{layer}.{name} takes (self, {', '.join(takes)}), not {inspect.signature(hook)}")
    if name == "token_transform":
        if inspect.iscoroutinefunction(hook):
            raise BuildError(f"{layer}.{name} is a plain function, not an async one: it makes what transforms tokens")
    elif not inspect.iscoroutinefunction(hook):
        raise BuildError(f"{layer}.{name} is not an async function")


_AROUND_TAKES = ("request", "call_next")


def _check_declared(name: str, layer: Middleware) -> None:
    for what, wanted in (("jumps", "the targets of each hook"), ("reducers", "functions"), ("requires", "types")):
        if not isinstance(getattr(layer, what), Mapping):
            raise BuildError(f"{name}.{what} are {wanted} by name, not {getattr(layer, what)!r}")
    for hook, targets in layer.jumps.items():
        if hook not in STATE_HOOKS:
            raise BuildError(f"{name}.jumps speaks of {hook!r}; only these hooks jump: {', '.join(STATE_HOOKS)}")
        if isinstance(targets, str) or (wrong := [target for target in targets if target not in TARGETS]):
            found = targets if isinstance(targets, str) else wrong[0]
            raise BuildError(f"{name}.jumps of {hook} are a list of {', '.join(TARGETS)}, not {found!r}")
    if layer.scope not in ("turn", "session"):
        raise BuildError(f"{name}.scope is 'turn' or 'session', not {layer.scope!r}")
    wrong_reducers = [key for key, reducer in layer.reducers.items() if not callable(reducer)]
    if wrong_reducers:
        raise BuildError(f"{name}.reducers of {wrong_reducers[0]!r} is no function")
    if not isinstance(layer.instructions, str):
        raise BuildError(f"{name}.instructions are text, not {layer.instructions!r}")


def _check_order(names: Sequence[str], layers: Sequence[Middleware], agent: str) -> None:
    # A layer with a name of its own is still one of its class, and of those that the class is made from.
    called = [
        {name, *[kind.__name__ for kind in type(layer).__mro__]} for name, layer in zip(names, layers, strict=True)
    ]
    for place, layer in enumerate(layers):
        for side, others in (("outside", layer.outside), ("inside", layer.inside)):
            wrong = range(place) if side == "outside" else range(place + 1, len(layers))
            for other in [others] if isinstance(others, str) else others:
                stands = next((each for each in wrong if other in called[each]), None)
                if stands is not None:
                    which = other if names[stands] == other else f"{other} {names[stands]!r}"
                    turned = "before" if side == "outside" else "after"
                    raise BuildError(
                        f"{names[place]} must stand {side} {which}, so {turned} it in the middleware of {agent}; "
                        f"the list is {', '.join(names)}"
                    )
