"""The filter that keeps what the source itself was part of."""

from __future__ import annotations

from typing import Any, ClassVar, overload

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind, from_descriptor
from handrail.filters.resolvers import EdgeInfo, Resolver
from handrail.filters.windows import as_history, beside, window


@filter_kind("since-handoff")
class SinceHandoff(Filter, frozen=True):
    """System and pinned messages (with the other half of their pair), and what stands after the message with the id
    `after`; where no message has it, nothing else."""

    after: str

    def __post_init__(self) -> None:
        if type(self.after) is not str or not self.after:
            raise InvalidFilter(f"after is the id of a message, not {self.after!r}")

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        place = history.position(self.after)
        later = range(len(history) if place is None else place + 1, len(history))
        return window(history, {*beside(history), *later})

    def reason(self, message: Message) -> str:
        """Says where the window begins."""
        return "it was said before the handoff"


class SaidSince(Resolver, frozen=True):
    """Becomes `since_handoff(after=…)`, or `full()` where the source never got control over a boundary."""

    kind: ClassVar[str] = "resolver/since-handoff"

    def resolve(self, history: Messages, edge: EdgeInfo) -> Filter:
        """The filter for what the source was given, and what it said since."""
        said = edge.said
        if said is not None:
            for message in reversed(history):
                if message.role != "system" and not message.pinned and message.id not in said:
                    return SinceHandoff(message.id)
        return from_descriptor({"kind": "full"})

    def __repr__(self) -> str:
        return "since_handoff()"


@overload
def since_handoff(after: None = None) -> SaidSince: ...
@overload
def since_handoff(after: str) -> SinceHandoff: ...
@constructor
def since_handoff(after: str | None = None) -> Any:
    """Keeps system and pinned messages, and what was said since the source itself got control.

    Without an id it is a resolver, which finds the last message that the source was given. A source that was never
    handed the conversation has nothing before, so that everything crosses.

    >>> from handrail.filters import assistant, user
    >>> history = (user("Hello", id="m1"), assistant("Hi.", id="m2"), user("Refund me.", id="m3"))
    >>> [message.text for message in since_handoff("m1")(history)]
    ['Hi.', 'Refund me.']
    """
    return SaidSince() if after is None else SinceHandoff(after)
