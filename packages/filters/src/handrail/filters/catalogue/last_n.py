"""The filter that keeps the last few messages."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, beside, last_others, last_user_place, window


@filter_kind("last-n")
class LastN(Filter, frozen=True):
    """System messages where they stand, and the last `n` (at least 1) others.

    A call message and each of its results count one. A result left inside the edge without its call is dropped, and
    the window is not refilled: at most n, never more. Pinned messages stand beside the n with the other half of their
    pair, as system messages do; `keep_user` adds the most recent user message where the window lacks it.
    """

    n: int = 10
    keep_user: bool = False

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InvalidFilter(f"n is a whole number of messages, at least 1, not {self.n!r}")
        if type(self.keep_user) is not bool:
            raise InvalidFilter(f"keep_user is true or false, not {self.keep_user!r}")

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        if len(history) <= self.n and history.survey().lawful:
            return history
        uncounted = beside(history)
        places = {*uncounted, *last_others(history, self.n, uncounted)}
        if self.keep_user and (said := last_user_place(history)) is not None:
            places.add(said)
        return window(history, places)

    def reason(self, message: Message) -> str:
        """Says how far the window reaches."""
        window = "outside the last message" if self.n == 1 else f"outside the last {self.n} messages"
        return f"{window}, or its call is" if message.role == "tool" else window


@constructor
def last_n(n: int = 10, *, keep_user: bool = False) -> LastN:
    """Keeps system and pinned messages, and the last `n` others. Raises `InvalidFilter` for an n below 1.

    >>> from handrail.filters import assistant, system, user
    >>> history = (system("Be brief."), user("Hello"), assistant("Hi."), user("Bye"))
    >>> [message.text for message in last_n(1)(history)]
    ['Be brief.', 'Bye']
    """
    return LastN(n, keep_user)
