"""Only the last thing that an agent said."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages, is_empty
from handrail.filters.registry import constructor, filter_kind


@filter_kind("last-answer")
class LastAnswer(Filter, frozen=True):
    """The most recent assistant message that says something, and nothing else."""

    def __call__(self, history: Messages) -> Messages:
        last = next((message for message in reversed(history) if _answers(message)), None)
        return (last,) if last is not None else ()

    def reason(self, message: Message) -> str:
        """Says that only the answer crosses."""
        return "only the last answer crosses"


def _answers(message: Message) -> bool:
    return message.role == "assistant" and not is_empty(message)


@constructor
def last_answer() -> LastAnswer:
    """Leaves only the last thing that an agent said; for what goes back when a handoff gives the next turn away.

    >>> from handrail.filters import assistant, user
    >>> [message.text for message in last_answer()((user("Paid?"), assistant("Yes."), user("Thanks.")))]
    ['Yes.']
    """
    return LastAnswer()
