"""What the five chains carry: one request and one response a chain, all of them frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from handrail.agent.errors import InvalidAnswer
from handrail.agent.kernel.privates import NO_STATE, PrivateState
from handrail.agent.models import ChatResponse, Model, OutputSchema, Settings, ToolSpec, find_model
from handrail.filters import Filter, History, Message, Report, ToolCall, user
from handrail.filters.messages import Messages
from handrail.sessions import Usage

if TYPE_CHECKING:
    from typing import Self

    from handrail.agent.contexts import RunContext
    from handrail.agent.tools import Tool

Status: TypeAlias = Literal["completed", "handed_over", "failed", "interrupted"]
STATUSES: tuple[str, ...] = get_args(Status)
Purpose: TypeAlias = Literal["answer", "summary", "selection", "moderation"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What every request has: `run` (ids, agent path, deps, step, budget), and the layer's own `state`."""

    run: RunContext[Any]
    state: PrivateState = NO_STATE
    """The private state of the middleware that is looking: seeded by its `init_state()`, alive for the turn. For one
    that declares none every use of it is a `TypeError`."""

    def replace(self, **changes: Any) -> Self:
        """The same request with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


class TurnRequest(Request, frozen=True, kw_only=True):
    """One agent's turn: the messages that are new to it, and whether they follow what its view holds already."""

    messages: Messages
    load_history: bool = True
    resume: bool = False
    keep_attempts: bool = False
    """Whether rejected answers and the feedback on them stay in the view when the turn has ended."""

    def again(self, result: TurnResult, feedback: str | Message, *, keep_attempts: bool | None = None) -> TurnRequest:
        """The request that has the agent try once more: all it saw and said, and what was wrong with its answer.
        `keep_attempts` keeps rejected answers, and the feedback on them, in the view; without it as the request says.

        Raises `InvalidAnswer` for a result that must pass through: one that is not `completed`.
        """
        if result.status != "completed":
            raise InvalidAnswer(f"a turn that ended as {result.status!r} must pass through; it cannot be entered again")
        # What is said of an answer may quote it, so it is as sensitive.
        label = result.message.sensitivity if result.message is not None else None
        said = user(feedback, sensitivity=label) if isinstance(feedback, str) else feedback
        keep = self.keep_attempts if keep_attempts is None else keep_attempts
        return self.replace(messages=(*result.messages, said), load_history=False, resume=False, keep_attempts=keep)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a validating layer found of the final answer: whether it holds, and if not, why. `attempts` counts the
    answers it looked at, `by` names the layer, `value` is what it read the answer as."""

    valid: bool
    reason: str = ""
    attempts: int = 1
    by: str = ""
    value: Any = None


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended. `messages` is the agent's whole view, `new_messages` what this turn added to it. `output` is
    the answer's text, or the value of an agent with an `output_type`; `verdict` what a validating layer found."""

    status: Status
    message: Message | None = None
    output: Any = ""
    messages: Messages = History()
    new_messages: Messages = ()
    tool_calls: Sequence[ToolCall] = ()
    steps: int = 0
    usage: Usage = Usage()
    finish_reason: str = ""
    verdict: Verdict | None = None

    def replace(self, **changes: Any) -> TurnResult:
        """The same result with these fields changed; an unknown field is a `TypeError`. Where the output is the
        message's text, another message takes it along."""
        message = changes.get("message")
        if isinstance(message, Message) and "output" not in changes:
            said = self.message.text if self.message is not None else ""
            if self.output == said:
                changes["output"] = message.text
        return msgspec.structs.replace(self, **changes)


class ChatRequest(Request, frozen=True, kw_only=True):
    """One model call. `instructions` are named blocks, joined innermost; they are never part of `messages`. `output`
    is what the answer's text must be, where the agent has an output type and the model can be held to it."""

    instructions: Mapping[str, str]
    messages: Messages
    tools: Sequence[ToolSpec] = ()
    model: Model
    settings: Settings = Settings()
    purpose: Purpose = "answer"
    output: OutputSchema | None = None

    def replace(self, **changes: Any) -> Self:
        """The same request with these fields changed; an unknown field is a `TypeError`. A model may be given by name,
        as to an agent."""
        if isinstance(changes.get("model"), str):
            changes["model"] = find_model(changes["model"])
        return msgspec.structs.replace(self, **changes)


class ToolRequest(Request, frozen=True, kw_only=True):
    """One tool execution. `arguments` are the parsed JSON of the call; changed ones are validated again."""

    tool: Tool
    call: ToolCall
    arguments: Mapping[str, Any]


class ToolResponse(msgspec.Struct, frozen=True):
    """What a tool gave: its value, the text or parts that the model is shown in its place (`content`), a label for it
    beside the tool's own (`sensitivity`), and what it writes into the shared state, by channel (`writes`). A tool may
    return one itself. Of a call that failed `error_class` says how, and `error` is what the tool raised."""

    value: Any = None
    content: Any = None
    is_error: bool = False
    error_class: str = ""
    sensitivity: str | None = None
    writes: Mapping[str, Any] = {}
    error: Exception | None = None

    def replace(self, **changes: Any) -> ToolResponse:
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

    def replace(self, **changes: Any) -> HandoffResponse:
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
    "Verdict",
]
