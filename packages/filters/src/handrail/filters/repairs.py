"""The transcript laws, and the one function that restores them.

P1: a tool result stands after the assistant message with its call, with only results between. P2: every call has
exactly one result before the next other message. P3: no assistant or user message is empty.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, overload

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, Part, ToolCall, is_empty, tool_result
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.reports import Change
from handrail.filters.surveys import Survey

OpenCalls: TypeAlias = Literal["drop", "answer"]
CUT_OFF = "The call was cut off before it had a result."


class Repaired(msgspec.Struct, frozen=True):
    """Messages that obey the laws, and what had to be done for it."""

    messages: Messages
    changes: tuple[Change, ...] = ()


class Breach(msgspec.Struct, frozen=True, gc=False):
    """One place where a transcript breaks a law."""

    law: Literal["P1", "P2", "P3"]
    place: int
    id: str
    problem: str


@filter_kind("repair")
class Repair(Filter, frozen=True):
    """The transcript laws. `open_calls` says what becomes of a call without a result: `drop` or `answer` it."""

    open_calls: OpenCalls = "drop"

    def __post_init__(self) -> None:
        if self.open_calls not in ("drop", "answer"):
            raise InvalidFilter(f"open_calls is 'drop' or 'answer', not {self.open_calls!r}")

    def __call__(self, history: Messages) -> Messages:
        return restore(history, self.open_calls).messages

    def reason(self, message: Message) -> str:
        """Says which law is meant."""
        return "the transcript laws: every call has its one result right after it, and no message is empty"


constructor(Repair, "repair")


@overload
def repair(history: None = None, *, open_calls: OpenCalls = "drop") -> Repair: ...
@overload
def repair(history: Messages, *, open_calls: OpenCalls = "drop") -> Repaired: ...
def repair(history: Messages | None = None, *, open_calls: OpenCalls = "drop") -> Repair | Repaired:
    """The filter that restores the transcript laws; given a history, that history repaired, and what was done.

    `open_calls="drop"` takes an unanswered call away (boundaries, windows, summaries); `"answer"` adds a result that
    says the call was cut off, marked `synthetic` (after a crash or a cancel).
    """
    return Repair(open_calls) if history is None else restore(history, Repair(open_calls).open_calls)


def restore(history: Messages, open_calls: OpenCalls) -> Repaired:
    """The history made lawful in linear time; the same object where it already was."""
    if lawful(history):
        return Repaired(history)
    mending = _Mending(history, open_calls)
    block = -1
    for place, message in enumerate(history):
        if message.role != "tool":
            block = place
            mending.take(place, message)
        elif place not in mending.owners:
            mending.changed("dropped", place, message, f"no call {message.call_id!r} stands before this result (P1)")
        elif mending.owners[place] != block:
            mending.changed("changed", place, message, "moved to stand right after its call (P1)")
    return Repaired(tuple(mending.kept), tuple(mending.changes))


def lawful(history: Messages) -> bool:
    """Whether the laws hold, every call answered. A `History` remembers how far it was checked."""
    if type(history) is History:
        survey = history.survey()
    else:
        survey = Survey()
        survey.advance(history, len(history))
    return survey.broken_at is None and not survey.open_calls


def breaches(history: Messages) -> list[Breach]:
    """Each place where the laws do not hold."""
    owned = owners(history)
    answered = {(owner, history[place].call_id or "") for place, owner in owned.items()}
    found: list[Breach] = []
    block = -1
    for place, message in enumerate(history):
        if message.role == "tool":
            if owned.get(place) != block:
                found.append(Breach("P1", place, message.id, f"no call {message.call_id!r} right before this result"))
        else:
            block = place
            if message.role != "system" and is_empty(message):
                found.append(Breach("P3", place, message.id, f"this {message.role} message is empty"))
        found += _unanswered(place, message, answered)
    return found


def owners(history: Messages, start: int = 0) -> dict[int, int]:
    """The place of each result, from `start` on, and the place of the message with its call, where that is not before
    `start`. A result belongs to the nearest earlier open call with its id; ids may come back in later turns."""
    waiting: dict[str, list[int]] = {}
    owned: dict[int, int] = {}
    for place in range(start, len(history)):
        message = history[place]
        if message.role == "tool":
            if callers := waiting.get(message.call_id or ""):
                owned[place] = callers.pop()
        elif message.role == "assistant":
            for call_id in {call.id for call in message.tool_calls}:
                waiting.setdefault(call_id, []).append(place)
    return owned


def _unanswered(place: int, message: Message, answered: set[tuple[int, str]]) -> list[Breach]:
    found: list[Breach] = []
    seen: set[str] = set()
    for call in message.tool_calls:
        if message.role != "assistant":
            problem = f"the call {call.id!r} of {call.name} stands in a {message.role} message"
        elif call.id in seen:
            problem = f"the call id {call.id!r} stands twice in this message"
        elif (place, call.id) not in answered:
            problem = f"the call {call.id!r} of {call.name} has no result"
        else:
            seen.add(call.id)
            continue
        seen.add(call.id)
        found.append(Breach("P2", place, message.id, problem))
    return found


class _Mending:
    """One history on its way to being lawful."""

    def __init__(self, history: Messages, open_calls: OpenCalls) -> None:
        self.history = history
        self.open_calls = open_calls
        self.owners = owners(history)
        self.results: dict[int, list[Message]] = {}
        for place, owner in self.owners.items():
            self.results.setdefault(owner, []).append(history[place])
        self.kept: list[Message] = []
        self.changes: list[Change] = []

    def changed(self, what: Literal["dropped", "changed", "added"], place: int, message: Message, why: str) -> None:
        self.changes.append(Change(what, place, message.id, message.role, why))

    def take(self, place: int, message: Message) -> None:
        """Keeps a message that is no result, with its results right after it."""
        results = self.results.get(place, [])
        answered = {result.call_id or "" for result in results}
        fit, cut = _fit(message, answered, self.open_calls)
        if is_empty(fit) and (cut or message.role != "system"):
            self.changed("dropped", place, message, f"{'; '.join(cut)} (P2)" if cut else "it is empty (P3)")
            return
        if cut:
            self.changed("changed", place, message, f"{'; '.join(cut)} (P2)")
        self.kept.append(fit)
        given = [_fit(result, answered, self.open_calls)[0] for result in results]
        made = [
            tool_result(call, CUT_OFF, is_error=True, synthetic=True)
            for call in fit.tool_calls
            if call.id not in answered
        ]
        added = set(map(id, made))
        if made:
            order = {call.id: number for number, call in enumerate(fit.tool_calls)}
            given = sorted([*given, *made], key=lambda result: order.get(result.call_id or "", 0))
        for result in given:
            if id(result) in added:
                self.changed(
                    "added", len(self.kept), result, f"the call {result.call_id!r} of {result.name} was cut off"
                )
            self.kept.append(result)


def _fit(message: Message, answered: set[str], open_calls: OpenCalls) -> tuple[Message, list[str]]:
    """The message without calls that cannot stand, and of each why it cannot."""
    parts: list[Part] = []
    cut: list[str] = []
    seen: set[str] = set()
    for part in message.content:
        if type(part) is ToolCall:
            if message.role != "assistant":
                cut.append(f"call {part.id!r} of {part.name} stands in a {message.role} message")
                continue
            if open_calls == "drop" and part.id not in answered:
                cut.append(f"call {part.id!r} of {part.name} has no result")
                continue
            if part.id in seen:
                cut.append(f"call {part.id!r} of {part.name} stands there twice")
                continue
            seen.add(part.id)
        parts.append(part)
    return (msgspec.structs.replace(message, content=tuple(parts)) if cut else message), cut
