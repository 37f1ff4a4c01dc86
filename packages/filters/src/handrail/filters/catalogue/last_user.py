"""The filter that keeps what the user said last."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, beside, last_user_place, window


@filter_kind("last-user")
class LastUser(Filter, frozen=True):
    """System messages, and the most recent user message. Pinned messages stay, with the other half of their pair."""

    def __call__(self, history: Messages) -> Messages:
        history = as_history(history)
        places = beside(history)
        if (said := last_user_place(history)) is not None:
            places.add(said)
        return window(history, places)

    def reason(self, message: Message) -> str:
        """Says what does cross."""
        return "only the most recent user message crosses"


@constructor
def last_user() -> LastUser:
    """Keeps system and pinned messages, and the most recent user message.

    >>> from handrail.filters import assistant, user
    >>> history = (user("I was charged twice."), assistant("Which order?"), user("8841"), assistant("One moment."))
    >>> [message.text for message in last_user()(history)]
    ['8841']
    """
    return LastUser()
