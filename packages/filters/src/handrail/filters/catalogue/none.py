"""The filter that keeps nothing."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind


@filter_kind("none")
class Nothing(Filter, frozen=True):
    """No message, pinned or not: the child starts from the handoff's reason or its input alone."""

    def __call__(self, history: Messages) -> Messages:
        return ()

    def reason(self, message: Message) -> str:
        """Says that nothing crosses."""
        return "nothing crosses but the reason or the input"


@constructor
def none() -> Nothing:
    """Keeps nothing; the child starts from the handoff's reason or its input alone.

    >>> from handrail.filters import user
    >>> none()((user("Hello"),))
    ()
    """
    return Nothing()
