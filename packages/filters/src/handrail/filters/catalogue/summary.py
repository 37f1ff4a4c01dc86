"""The filter that puts a summary in the place of what was said."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, Text, whole
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.sensitivity import Tier
from handrail.filters.windows import as_history, beside, kept, last_others

SummaryRole = Literal["system", "user"]


@filter_kind("summary")
class Summary(Filter, frozen=True):
    """One message with the text, in the place of the first message that it replaces.

    System and pinned messages (with the other half of their pair) stand where they are, and so do the last
    `keep_last` others, as in `last_n`.
    """

    text: str
    role: SummaryRole = "system"
    keep_last: int = 0
    sensitivity: Tier | None = None

    def __post_init__(self) -> None:
        if type(self.text) is not str or not self.text.strip():
            raise InvalidFilter(f"text is what the summary says, not {self.text!r}")
        if self.role not in get_args(SummaryRole):
            raise InvalidFilter(f"role is 'system' or 'user', not {self.role!r}")
        if type(self.keep_last) is not int or self.keep_last < 0:
            raise InvalidFilter(f"keep_last is a whole number of messages, at least 0, not {self.keep_last!r}")
        if self.sensitivity is not None and self.sensitivity not in get_args(Tier):
            raise InvalidFilter(f"sensitivity is one of {', '.join(get_args(Tier))}, or None, not {self.sensitivity!r}")
        msgspec.structs.force_setattr(self, "text", whole(self.text))

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        uncounted = beside(history)
        places, messages = kept(history, [*uncounted, *last_others(history, self.keep_last, uncounted)])
        first = _first_replaced(history, places)
        said = Message(self.role, (Text(self.text),), sensitivity=self.sensitivity)
        return (*messages[:first], said, *messages[first:])

    @property
    def descriptor(self) -> dict[str, Any]:
        """As any filter's; without the label where there is none."""
        described = super().descriptor
        if self.sensitivity is None:
            del described["params"]["sensitivity"]
        return described

    def reason(self, message: Message) -> str:
        """Says what stands in for the message."""
        return "the summary stands in its place"


@constructor
def summary(text: str, role: SummaryRole = "system", keep_last: int = 0, *, sensitivity: Tier | None = None) -> Summary:
    """Keeps system and pinned messages and the last `keep_last` others, and puts a summary in place of the rest.

    `sensitivity` is the summary's label. Raises `InvalidFilter` for a text that says nothing.

    >>> from handrail.filters import assistant, user
    >>> history = (user("Hello"), assistant("Hi."), user("I was charged twice."))
    >>> [message.text for message in summary("They greeted each other.", keep_last=1)(history)]
    ['They greeted each other.', 'I was charged twice.']
    """
    return Summary(text, role, keep_last, sensitivity)


def _first_replaced(history: Messages, places: list[int]) -> int:
    # How many kept messages stand before the first that is replaced; where none is, before the first that was said.
    for number, place in enumerate(places):
        if place != number:
            return number
    if len(places) < len(history):
        return len(places)
    return next((place for place, message in enumerate(history) if message.role != "system"), len(places))
