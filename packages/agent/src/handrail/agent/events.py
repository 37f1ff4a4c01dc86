"""What a run tells those who listen, as it goes. Events are built only when somebody does.

Every event has the run's id and the agent path it comes from (`Boss`, or `Boss/Helper@call` within a sub-agent).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from handrail.filters import Message, ToolCall
from handrail.sessions import Usage


class _Place(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    # No event is part of a circle, and a listener may hold a thousand: the collector need not look at them.
    parent_id: str = ""
    depth: int = 0


class Event(_Place, frozen=True, tag_field="kind"):
    """What every event has: the id of the run it belongs to (a sub-agent's call is a run of its own), the agent path,
    `parent_id`, the id of the run that asked for that run (empty for the outermost), and `depth`, how deep it is."""

    run_id: str
    path: str


class RunStart(Event, frozen=True, tag="run_start"):
    """A run began with this agent."""

    agent: str

    def __str__(self) -> str:
        return f"[{self.path}] run begins"


class Recovered(Event, frozen=True, tag="recovered"):
    """A crash had left a torn end in the session's file; it is cut when the run first writes."""

    what: str

    def __str__(self) -> str:
        return f"[{self.path}] {self.what}"


class RunEnd(Event, frozen=True, tag="run_end"):
    """A run ended, with this status and cost."""

    status: str
    usage: Usage

    def __str__(self) -> str:
        return f"[{self.path}] run {self.status}: {self.usage.total_tokens} tokens in {self.usage.requests} model calls"


class TurnStart(Event, frozen=True, tag="turn_start"):
    """An agent got control."""

    agent: str

    def __str__(self) -> str:
        return f"[{self.path}] turn begins"


class TurnEnd(Event, frozen=True, tag="turn_end"):
    """An agent's turn ended."""

    status: str

    def __str__(self) -> str:
        return f"[{self.path}] turn {self.status}"


class StepStart(Event, frozen=True, tag="step_start"):
    """A model call is about to be made; `step` counts from 1 in the turn."""

    step: int

    def __str__(self) -> str:
        return f"[{self.path}] step {self.step}"


class StepEnd(Event, frozen=True, tag="step_end"):
    """A model call and the tools it asked for are done."""

    step: int

    def __str__(self) -> str:
        return f"[{self.path}] step {self.step} done"


class Text(Event, frozen=True, tag="text"):
    """A piece of an answer's text."""

    message_id: str
    text: str

    def __str__(self) -> str:
        return self.text


class ReasoningText(Event, frozen=True, tag="reasoning"):
    """A piece of what a model thinks."""

    message_id: str
    text: str

    def __str__(self) -> str:
        return self.text


class Arguments(Event, frozen=True, tag="arguments"):
    """A piece of a tool call's arguments."""

    message_id: str
    call_id: str
    name: str
    text: str

    def __str__(self) -> str:
        return self.text


class Discard(Event, frozen=True, tag="discard"):
    """What was delivered of this message is withdrawn."""

    message_id: str
    reason: str

    def __str__(self) -> str:
        return f"[{self.path}] withdrawn: {self.reason}"


class MessageDone(Event, frozen=True, tag="message"):
    """A whole message: an agent's answer."""

    message: Message

    def __str__(self) -> str:
        return f"[{self.path}] {self.message.text}"


class ToolStart(Event, frozen=True, tag="tool_start"):
    """A tool call begins."""

    call: ToolCall

    def __str__(self) -> str:
        return f"[{self.path}] {self.call.name}({self.call.arguments or '{}'})"


class ToolProgress(Event, frozen=True, tag="tool_progress"):
    """A tool says how far it is."""

    call_id: str
    text: str

    def __str__(self) -> str:
        return f"[{self.path}] {self.call_id}: {self.text}"


class ToolEnd(Event, frozen=True, tag="tool_end"):
    """A tool call has its result."""

    call: ToolCall
    result: Message

    def __str__(self) -> str:
        return f"[{self.path}] {self.call.name} -> {self.result.text}"


class HandoffStart(Event, frozen=True, tag="handoff_start"):
    """A boundary is about to be crossed; `call_id` is the call that asked for it."""

    source: str
    target: str
    call_id: str

    def __str__(self) -> str:
        return f"[{self.path}] {self.source} -> {self.target}"


class HandoffEnd(Event, frozen=True, tag="handoff_end"):
    """A boundary was crossed: `crossed` are the messages that the target starts from."""

    source: str
    target: str
    call_id: str
    crossed: tuple[Message, ...]
    messages_before: int

    def __str__(self) -> str:
        noun = "message" if len(self.crossed) == 1 else "messages"
        return f"[{self.path}] {self.source} -> {self.target}: it starts from {len(self.crossed)} {noun}"


class Told(Event, frozen=True, tag="told", gc=True):
    """Something of a middleware's or a tool's own, by its name."""

    name: str
    data: dict[str, Any]
    call_id: str = ""

    def __str__(self) -> str:
        said = ", ".join([f"{key}={value!r}" for key, value in self.data.items()])
        return f"[{self.path}] {self.name}{': ' if said else ''}{said}"


class LimitReached(Event, frozen=True, tag="limit"):
    """A limit refused something."""

    limit: str
    value: float

    def __str__(self) -> str:
        return f"[{self.path}] limit {self.limit}={self.value}"


class LoopWarning(Event, frozen=True, tag="loop_warning"):
    """An agent's turn brings nothing new, for so many steps in a row; at `max_repeats` it is stopped."""

    reason: str
    steps: int
    max_repeats: int

    def __str__(self) -> str:
        return f"[{self.path}] goes in a circle: {self.reason}, {self.steps} of {self.max_repeats} steps in a row"


class Failed(Event, frozen=True, tag="error"):
    """The run is about to end with this error (its type, and its message where it is Handrail's own)."""

    type: str
    message: str

    def __str__(self) -> str:
        return f"[{self.path}] {self.type}: {self.message}"


AnyEvent: TypeAlias = (
    RunStart
    | Recovered
    | RunEnd
    | TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | Text
    | ReasoningText
    | Arguments
    | Discard
    | MessageDone
    | ToolStart
    | ToolProgress
    | ToolEnd
    | HandoffStart
    | HandoffEnd
    | Told
    | LimitReached
    | LoopWarning
    | Failed
)

LIFECYCLE: tuple[type[Event], ...] = (
    TurnStart,
    TurnEnd,
    ToolStart,
    ToolEnd,
    HandoffStart,
    HandoffEnd,
    LimitReached,
    LoopWarning,
    Failed,
)
"""What the forwarding level `lifecycle` lets through of a sub-agent's events."""
