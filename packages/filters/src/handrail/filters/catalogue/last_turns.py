"""The filter that keeps the last few turns."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, beside, window


@filter_kind("last-turns")
class LastTurns(Filter, frozen=True):
    """System messages where they stand, and the last `n` (at least 1) turns.

    A turn begins with a user message, or with several in a row, and lasts until the next. What was said before the
    first user message belongs to no turn: it stays only where there are fewer than n. Pinned messages stand beside
    with the other half of their pair.
    """

    n: int = 1

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 1:
            raise InvalidFilter(f"n is a whole number of turns, at least 1, not {self.n!r}")

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        start = _start(history, self.n)
        return history if start == 0 else window(history, {*beside(history), *range(start, len(history))})

    def reason(self, message: Message) -> str:
        """Says how far the window reaches."""
        return f"before the last {self.n} turn{'s' if self.n > 1 else ''}"


@constructor
def last_turns(n: int = 1) -> LastTurns:
    """Keeps system and pinned messages, and all since the user's n-th last turn. Raises `InvalidFilter` below 1.

    >>> from handrail.filters import assistant, user
    >>> history = (user("Hello"), assistant("Hi."), user("Where is it?"), assistant("In Porto."))
    >>> [message.text for message in last_turns(1)(history)]
    ['Where is it?', 'In Porto.']
    """
    return LastTurns(n)


def _start(history: History, n: int) -> int:
    users = history.survey().users
    turns = 0
    for number in range(len(users) - 1, -1, -1):
        if number == 0 or users[number - 1] != users[number] - 1:
            turns += 1
            if turns == n:
                return users[number]
    return 0
