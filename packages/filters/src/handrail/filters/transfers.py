"""A conversation as it is without its transfer calls and their results, which no boundary gives."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from handrail.filters.messages import Message, without_calls

if TYPE_CHECKING:
    from handrail.filters.surveys import Items, Survey

    class Shared(Protocol):
        """Messages that several views share, and what is known of them."""

        items: Items
        survey: Survey | None

        def fork(self, length: int) -> Self:
            """The first `length` of them, for a view that goes another way."""


_FEW = 8
_Buffer = TypeVar("_Buffer", bound="Shared")


class Plain(Generic[_Buffer]):
    """The same conversation without transfer calls and their results, kept up as the conversation grows."""

    __slots__ = ("altered", "buffer", "gone", "taken")

    def __init__(self, buffer: _Buffer, taken: int) -> None:
        self.buffer = buffer
        self.taken = taken
        self.altered: dict[int, Message | None] = {}
        self.gone: list[int] = []

    def take(self, items: Items, survey: Survey, end: int) -> None:
        """Take in the messages up to `end`; the survey is of as many."""
        expected = self.taken - len(self.gone)
        if len(self.buffer.items) != expected:
            self.buffer = self.buffer.fork(expected)
        plain, start = self.buffer.items, self.taken
        for place in survey.transfers[bisect_left(survey.transfers, start) :]:
            self._keep(items, survey, start, place)
            message = items[place]
            left = None if message.role == "tool" else without_calls(message, transfers_only=True)
            self.altered[place] = left
            if left is None:
                self.gone.append(place)
            else:
                plain.append(left)
            start = place + 1
        self._keep(items, survey, start, end)
        self.taken = end

    def _keep(self, items: Items, survey: Survey, start: int, end: int) -> None:
        plain, known = self.buffer.items, self.buffer.survey
        # What few messages are is sooner seen by a walk, and that comes when somebody asks.
        if end - start > _FEW and known is not None and survey.lawful and not survey.unnamed:
            known.advance(plain, len(plain))
            known.go_on(survey, start, end)
        plain.extend(items[start:end])
