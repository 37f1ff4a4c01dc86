"""Branches: the items of a history that goes another way, sharing what came before with the one it left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, overload

from handrail.filters.messages import Message

if TYPE_CHECKING:
    from handrail.filters.surveys import Items

# Below this length a copy costs less than reading through a branch.
_LONG = 1024


def branched(items: Items, length: int) -> Items:
    """The first `length` of the items, for one that goes on from there; a long list is shared and not copied."""
    if length >= _LONG:
        if isinstance(items, list):
            return Branch(items, length, [])
        if isinstance(items, Branch):
            return items.branched(length)
    copied: Items = items[:length]
    return copied


class Branch:
    """The first messages of a list that only ever grows, and messages of its own after them; it appends, extends,
    slices and reads like a list of messages."""

    __slots__ = ("_at", "_own", "_stem")

    def __init__(self, stem: list[Message], at: int, own: list[Message]) -> None:
        self._stem = stem
        self._at = at
        self._own = own

    def branched(self, length: int) -> Branch | list[Message]:
        """The first `length` messages as a branch of the same list; as a list where most would be its own."""
        own = length - self._at
        if own > self._at:
            return self[:length]
        return Branch(self._stem, min(self._at, length), self._own[: max(own, 0)])

    def append(self, message: Message) -> None:
        """One more message."""
        self._own.append(message)

    def extend(self, messages: Iterable[Message]) -> None:
        """More messages."""
        self._own.extend(messages)

    def __len__(self) -> int:
        return self._at + len(self._own)

    def __iter__(self) -> Iterator[Message]:
        return chain(islice(self._stem, self._at), self._own)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        at = self._at
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return list(self)[index]
            if start >= at:
                return self._own[start - at : max(stop - at, 0)]
            return self._stem[start : min(stop, at)] + self._own[: max(stop - at, 0)]
        if index < 0:
            return list(self)[index]
        return self._stem[index] if index < at else self._own[index - at]
