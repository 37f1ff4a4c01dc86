"""The filter that keeps both ends of a conversation."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, system
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, beside, first_others, last_others, pairs


@filter_kind("head-tail")
class HeadTail(Filter, frozen=True):
    """System messages where they stand, the first `head` and the last `tail` others, and a marker between them.

    It counts as `first_n` and `last_n` do; a call and its result that stand on two sides of an edge both go. The
    marker is a system message that says how many messages were left out; it stands where the first of them stood, or
    after the results there.
    """

    head: int = 3
    tail: int = 7

    def __post_init__(self) -> None:
        for name, value in (("head", self.head), ("tail", self.tail)):
            if type(value) is not int or value < 0:
                raise InvalidFilter(f"{name} is a whole number of messages, at least 0, not {value!r}")
        if self.head + self.tail < 1:
            raise InvalidFilter("head and tail are not both 0: none() keeps nothing")

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        uncounted = beside(history)
        ends = (first_others(history, self.head, uncounted), last_others(history, self.tail, uncounted))
        left = pairs(history, {*uncounted, *ends[0], *ends[1]})
        messages = tuple([message for _, message in left])
        if len(left) == len(history):
            return history if all([message is history[place] for place, message in left]) else messages
        gap = next((number for number, (place, _) in enumerate(left) if place != number), len(left))
        while gap < len(messages) and messages[gap].role == "tool":
            gap += 1
        return (*messages[:gap], _marker(len(history) - len(left)), *messages[gap:])

    def reason(self, message: Message) -> str:
        """Says how far the ends reach."""
        return f"between the first {self.head} and the last {self.tail} messages"


@constructor
def head_tail(head: int = 3, tail: int = 7) -> HeadTail:
    """Keeps the first `head` and the last `tail` messages beside the system ones, with a marker for the rest.

    Raises `InvalidFilter` for numbers below 0, and where both are 0.

    >>> from handrail.filters import user
    >>> [message.text for message in head_tail(1, 1)((user("a"), user("b"), user("c"), user("d")))]
    ['a', '[2 messages left out]', 'd']
    """
    return HeadTail(head, tail)


def _marker(count: int) -> Message:
    return system(f"[{count} message{'s' if count > 1 else ''} left out]")
