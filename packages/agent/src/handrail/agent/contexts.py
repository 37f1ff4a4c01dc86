"""What a hook or a tool may know of the run it is part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from handrail.agent.events import Told, ToolProgress
from handrail.agent.kernel.privates import PrivateState
from handrail.agent.limits import Budget
from handrail.filters import Message
from handrail.sessions import Usage

if TYPE_CHECKING:
    from handrail.agent.kernel.middlewares import Middleware
    from handrail.agent.kernel.requests import Purpose
    from handrail.agent.kernel.states import State
    from handrail.agent.models import ChatResponse, Model, Settings
    from handrail.agent.tools import Tool

DepsT = TypeVar("DepsT")
_new = object.__new__
NO_STATES: Mapping[int, PrivateState] = MappingProxyType({})
"""Of an agent without layers: nobody has a state."""


class RunContext(Generic[DepsT]):
    """One turn of a run, as hooks (`request.run`) and tools see it.

    `run_id`, `path` (agent path) and `agent` (name) say where; `deps` is the application's own object, never
    serialised; `step` counts the turn's model calls from 1; `attempt` the tries of the present one; `budget` holds
    what was used; `call_id` is the tool call that a tool serves, `key` its idempotency key.
    """

    __slots__ = (
        "agent",
        "arrived",
        "attempt",
        "batch",
        "budget",
        "call_id",
        "deps",
        "granted",
        "key",
        "path",
        "ran",
        "run_id",
        "states",
        "step",
        "tries",
        "turn",
    )

    def __init__(self, run_id: str, path: str, agent: str, deps: DepsT, budget: Budget, turn: Any) -> None:
        self.run_id = run_id
        self.path = path
        self.agent = agent
        self.deps = deps
        self.budget = budget
        self.step = 0
        self.attempt = 1
        self.ran = False
        self.tries = self.batch = 0
        self.arrived: Usage | None = None
        self.granted: tuple[Tool, ...] | None = None
        self.call_id = self.key = ""
        self.turn = turn
        self.states: Mapping[int, PrivateState] = {} if turn.bound.layers else NO_STATES

    def progress(self, text: str) -> None:
        """Tells those who listen how far the tool is."""
        if self.turn.emit is not None:
            self.turn.tell_from_anywhere(ToolProgress, self.call_id, text)

    def tell(self, name: str, **data: object) -> None:
        """Tells those who listen of something of a middleware's or tool's own; it is not recorded."""
        if self.turn.emit is not None:
            self.turn.tell_from_anywhere(Told, name, data, self.call_id)

    def note(self, name: str, **data: object) -> None:
        """The same, and written into the session where there is one: for what has to be known later, such as a refusal.

        Raises `StateError` for data that JSON cannot carry.
        """
        self.tell(name, **data)
        self.turn.note(name, data, self.call_id)

    def handoff(self, target: Any, *, reason: str = "", input: Any = None) -> None:
        """A handoff by code, to an agent or its name: it takes effect after the calls of this response.

        The edge is the agent's own handoff to that target where it has one, else one with the default filter. Raises
        `UnknownTarget` for an agent that is not reachable, and `InvalidArguments` for an unfit input.
        """
        name = target if isinstance(target, str) else target.name
        self.turn.request_handoff(name, reason, input, self.call_id, self.batch)

    def grant(self, *tools: Tool) -> None:
        """Says that this tool call has been asked about, and that of all tools which need approval these may run for
        it and no other. The last word counts. It is for layers around tools that ask (`approves`)."""
        self.granted = tools

    async def ask_model(
        self,
        layer: Middleware,
        messages: str | Message | Sequence[Message],
        *,
        purpose: Purpose = "summary",
        instructions: str = "",
        model: Model | None = None,
        settings: Settings | None = None,
    ) -> ChatResponse:
        """A layer's own model call: it passes the agent's chat chain without that layer, is counted and recorded, and
        is not part of the answer. `purpose` is `summary`, `selection` or `moderation`."""
        from handrail.agent.asking import ask_aside

        return await ask_aside(
            self.turn, layer, messages, purpose=purpose, instructions=instructions, model=model, settings=settings
        )

    @property
    def state(self) -> State:
        """The shared state as it stands (for a tool, before the calls of its response): channels by name."""
        state: State = self.turn.look(-1)
        return state

    @property
    def messages(self) -> tuple[Message, ...]:
        """The agent's view as it stands."""
        return tuple(self.turn.history)

    def private_state(self, layer: int) -> PrivateState:
        """The private state of the middleware at this place in the agent's list."""
        state = self.states.get(layer)
        if state is None:
            state = self.turn.first_state(layer)
            self.states[layer] = state  # type: ignore[index]  # with layers it is a dict, and else there is no state
        return state

    def for_call(self, call_id: str, states: Mapping[int, PrivateState] | None = None) -> RunContext[DepsT]:
        """The same context as one tool call sees it."""
        # With layers around tools every call makes one, and few of them are asked for more than this.
        own: CallContext[DepsT] = _new(CallContext)
        own.outer, own.turn, own.step, own.call_id = self, self.turn, self.step, call_id
        own.batch, own.granted, own.ran = self.turn.batch, None, False
        if states is not None:
            own.states = dict(states)
        return own


_AT_FIRST: Mapping[str, Any] = {"attempt": 1, "tries": 0, "arrived": None, "key": ""}
"""What a call's context says of its own before anything is known."""


class CallContext(RunContext[DepsT]):
    """The context of one tool call: what it has in common with its turn's is taken from there when it is asked for."""

    __slots__ = ("outer",)
    outer: RunContext[DepsT]

    def __getattr__(self, name: str) -> Any:
        # Only for a slot that nothing was put into yet, and for what is no slot.
        if name not in RunContext.__slots__:
            raise AttributeError(f"a run's context has no {name!r}")
        value = _AT_FIRST[name] if name in _AT_FIRST else getattr(self.outer, name)
        setattr(self, name, value)
        return value
