"""The filter that keeps the first few messages."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, beside, first_others, whole_pairs


@filter_kind("first-n")
class FirstN(Filter, frozen=True):
    """System messages where they stand, and the first `n` (at least 1) others.

    A call message and each of its results count one. A call left inside the edge without its result is dropped, and
    the window is not refilled: at most n, never more. Pinned messages stand beside the n with the other half of their
    pair, as system messages do.
    """

    n: int = 10

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InvalidFilter(f"n is a whole number of messages, at least 1, not {self.n!r}")

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        uncounted = beside(history)
        return whole_pairs(history, {*uncounted, *first_others(history, self.n, uncounted)})

    def reason(self, message: Message) -> str:
        """Says how far the window reaches."""
        return f"outside the first {self.n} messages, or the other half of its pair is"


@constructor
def first_n(n: int = 10) -> FirstN:
    """Keeps system and pinned messages, and the first `n` others. Raises `InvalidFilter` for an n below 1.

    >>> from handrail.filters import assistant, system, user
    >>> history = (user("Hello"), assistant("Hi."), system("Be brief."), user("Bye"))
    >>> [message.text for message in first_n(1)(history)]
    ['Hello', 'Be brief.']
    """
    return FirstN(n)
