"""What a hook or a tool may know of the run it is part of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from handrail.agent.errors import StateError
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
        "_where",
        "arrived",
        "batch",
        "call_id",
        "granted",
        "key",
        "states",
        "step",
        "tries",
        "turn",
    )

    def __init__(self, run_id: str, path: str, agent: str, deps: DepsT, budget: Budget, turn: Any) -> None:
        self._where = (run_id, path, agent, deps, budget)
        self.step = 0
        self.tries = self.batch = 0
        self.arrived: Usage | None = None  # it belongs to a model call, which sets it first
        self.granted: tuple[Tool, ...] | None = None
        self.call_id = self.key = ""
        self.turn = turn
        self.states: Mapping[int, PrivateState] = {} if turn.bound.layers else NO_STATES

    @property
    def run_id(self) -> str:
        """The id of the run, or of the sub-agent's call that is a run of its own."""
        return self._where[0]

    @property
    def path(self) -> str:
        """The agent path of the turn."""
        return self._where[1]

    @property
    def agent(self) -> str:
        """The name of the agent whose turn it is."""
        return self._where[2]

    @property
    def attempt(self) -> int:
        """Which try of the present call this is, from 1: of the step's model call, or of the tool call it is for."""
        return self.tries or 1

    @property
    def deps(self) -> DepsT:
        """The application's own object."""
        return self._where[3]

    @property
    def budget(self) -> Budget:
        """What was used, and what bounds it."""
        return self._where[4]

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

        Raises `StateError` for a name that is no text, and for data that JSON cannot carry.
        """
        if not isinstance(name, str):
            raise StateError(self.agent, "name", f"of a note is a text, not {type(name).__name__}")
        self.tell(name, **data)
        self.turn.note(name, data, self.call_id)

    def handoff(self, target: Any, *, reason: str = "", input: Any = None) -> None:
        """A handoff by code, to an agent or its name: it takes effect after the calls of this response.

        The edge is the agent's own handoff to that target where it has one, else one with the default filter. Raises
        `UnknownTarget` for an agent that is not reachable, and `InvalidArguments` for an unfit reason or input.
        """
        from handrail.agent.wanting import request_handoff

        name = target if isinstance(target, str) else target.name
        request_handoff(self.turn, name, reason, input, self.call_id, self.batch)

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
        # Slot by slot, and few of them: with layers around tools every call makes one.
        own: RunContext[DepsT] = _new(RunContext)
        own._where, own.turn, own.states = self._where, self.turn, self.states if states is None else dict(states)
        own.step, own.call_id, own.batch = self.step, call_id, self.turn.batch
        own.tries, own.key, own.granted = 0, "", None
        return own
