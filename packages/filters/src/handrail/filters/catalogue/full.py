"""The filter that keeps everything."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind


@filter_kind("full")
class Full(Filter, frozen=True):
    """Every message. The boundary still takes out reasoning and restores the transcript laws."""

    def __call__(self, history: Messages) -> Messages:
        return history

    def reason(self, message: Message) -> str:
        """Says that nothing is left out."""
        return "everything crosses"


@constructor
def full() -> Full:
    """Keeps everything. A child rarely needs it; `last_n` or `last_user` shows less.

    >>> from handrail.filters import user
    >>> len(full()((user("Hello"), user("Anyone there?"))))
    2
    """
    return Full()
