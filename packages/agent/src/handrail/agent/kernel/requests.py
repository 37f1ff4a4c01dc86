"""What the five chains carry: one request and one response a chain, all of them frozen values."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from handrail.agent.models import ChatResponse, Model, Settings, ToolSpec
from handrail.filters import Filter, Message, Report, ToolCall
from handrail.filters.messages import Messages
from handrail.sessions import Usage

if TYPE_CHECKING:
    from typing import Self

    from handrail.agent.contexts import RunContext
    from handrail.agent.tools import Tool

Status: TypeAlias = Literal["completed", "handed_over", "failed", "interrupted"]
Purpose: TypeAlias = Literal["answer", "summary", "selection", "moderation"]


class _NoState(dict[str, Any]):
    """What a middleware finds in the place of a private state when it declares none."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this middleware has no private state; it declares one by defining init_state()")

    __getitem__ = __setitem__ = __delitem__ = __contains__ = __iter__ = __len__ = _refuse
    get = setdefault = pop = update = items = keys = values = _refuse


NO_STATE = _NoState()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What every request has: `run` (ids, agent path, deps, step, budget), and the layer's own `state`."""

    run: "RunContext[Any]"
    state: dict[str, Any] = NO_STATE
    """The private state of the middleware that is looking: seeded by its `init_state()`, alive for the turn. For one
    that declares none every use of it is a `TypeError`."""

    def replace(self, **changes: Any) -> "Self":
        """The same request with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


class TurnRequest(Request, frozen=True, kw_only=True):
    """One agent's turn: the messages that are new to it, and whether they follow what its view holds already."""

    messages: Messages
    load_history: bool = True
    resume: bool = False


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended. `messages` is the agent's whole view, `new_messages` what this turn added to it."""

    status: Status
    message: Message | None = None
    output: Any = ""
    messages: Messages = ()
    new_messages: Messages = ()
    tool_calls: Sequence[ToolCall] = ()
    steps: int = 0
    usage: Usage = Usage()

    def replace(self, **changes: Any) -> "TurnResult":
        """The same result with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


class ChatRequest(Request, frozen=True, kw_only=True):
    """One model call. `instructions` are named blocks, joined innermost; they are never part of `messages`."""

    instructions: Mapping[str, str]
    messages: Messages
    tools: Sequence[ToolSpec] = ()
    model: Model
    settings: Settings = Settings()
    purpose: Purpose = "answer"


class ToolRequest(Request, frozen=True, kw_only=True):
    """One tool execution. `arguments` are the parsed JSON of the call; changed ones are validated again."""

    tool: "Tool"
    call: ToolCall
    arguments: Mapping[str, Any]


class ToolResponse(msgspec.Struct, frozen=True):
    """What a tool gave: its value, the text or parts that the model is shown in its place (`content`), and a label
    for it beside the tool's own (`sensitivity`)."""

    value: Any = None
    content: Any = None
    is_error: bool = False
    error_class: str = ""
    sensitivity: str | None = None

    def replace(self, **changes: Any) -> "ToolResponse":
        """The same response with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


class HandoffRequest(Request, frozen=True, kw_only=True):
    """One boundary crossing, of a handoff or of a sub-agent (`kind`). Source, target and history are read-only."""

    kind: Literal["handoff", "subagent"]
    source: str
    target: str
    history: Messages
    filter: Filter
    reason: str = ""
    input: str = ""
    boundary: Any = None
    """The kernel's own; leave it."""


class HandoffResponse(msgspec.Struct, frozen=True):
    """What crossed: the seed of the next agent, and a report of what the filter did, worked out when asked."""

    seed: Messages
    explain: Callable[[], Report] | None = None

    @property
    def report(self) -> Report | None:
        """What each step of the filter dropped, changed and added; None for a seed that a hook made by itself."""
        return self.explain() if self.explain is not None else None

    def replace(self, **changes: Any) -> "HandoffResponse":
        """The same response with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


__all__ = [
    "ChatRequest",
    "ChatResponse",
    "HandoffRequest",
    "HandoffResponse",
    "Purpose",
    "Request",
    "Status",
    "ToolRequest",
    "ToolResponse",
    "TurnRequest",
    "TurnResult",
]
