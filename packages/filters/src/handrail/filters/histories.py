"""Histories: immutable sequences of messages that append and snapshot in constant time.

Views of one growing conversation share a buffer; each knows its own length. What is learned about a message (where the
system messages are, which messages concern a handoff, whether the transcript laws hold, the digest so far) is learned
once and kept in the buffer, so that no step of a run walks what earlier steps have walked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import msgspec

from handrail.filters.branches import branched
from handrail.filters.digests import joined_digests
from handrail.filters.hashes import sha256
from handrail.filters.messages import Message, without_calls
from handrail.filters.surveys import Survey
from handrail.filters.transfers import Plain

if TYPE_CHECKING:
    from handrail.filters.surveys import Items

_CHUNK = 64
_DIGESTS = 64

_new = object.__new__
_NOTHING_HASHED: tuple[int, Any] = (0, None)


class _Buffer(msgspec.Struct, eq=False):
    """The messages that views share, and what is known of them so far. What nobody asked for is not there yet."""

    items: Items
    first: int
    last: int
    survey: Survey | None = None
    earlier: Survey | None = None
    hashed: int = 0
    running: Any = None
    running_before: tuple[int, Any] = _NOTHING_HASHED
    digests: dict[int, str] | None = None
    positions: dict[str, int] | None = None
    plain: Plain[_Buffer] | None = None
    sums: dict[str, array[int]] | None = None

    @classmethod
    def of(cls, items: Items, length: int) -> _Buffer:
        """A buffer of so many items, of which nothing is known."""
        start = length - _CHUNK if length > _CHUNK else 0
        return cls(items, start, start)

    def place(self, message_id: str) -> int | None:
        """Where the last message with this id stands. What is asked for is mostly recent, so ids are read from the
        end."""
        find = getattr(self.items, "find", None)
        if find is not None:
            # Items that are read from elsewhere know their ids: reading them all here would bring them all in.
            found: int | None = find(message_id)
            return found
        positions = self.positions
        if positions is None:
            positions = self.positions = {}
        if self.last < len(self.items):
            positions.update([(message.id, place) for place, message in enumerate(self.items[self.last :], self.last)])
            self.last = len(self.items)
        while (place := positions.get(message_id)) is None and self.first > 0:
            start = max(0, self.first - max(_CHUNK, self.last - self.first))
            for place in range(self.first - 1, start - 1, -1):
                positions.setdefault(self.items[place].id, place)
            self.first = start
        return place

    def hash_of(self, length: int) -> tuple[int, Any]:
        """The hash of as many of the first `length` messages as one is known of; it is shared, so copy it."""
        known = (self.hashed, self.running) if self.hashed <= length else self.running_before
        return known if known[0] <= length else (0, None)

    def fork(self, length: int) -> _Buffer:
        """A buffer of the first `length` messages, for a view that must not touch this one's tail."""
        forked = _Buffer.of(branched(self.items, length), length)
        if self.survey is not None:
            forked.survey = self.survey.at(length, self.items)
        hashed, running = self.hash_of(length)
        if running is not None:
            forked.hashed, forked.running = hashed, running.copy()
        if self.sums is not None:
            forked.sums = {name: sums[: length + 1] for name, sums in self.sums.items()}
        return forked


class History(Sequence[Message]):
    """An immutable sequence of messages. It behaves like a tuple; `append`, `extend` and `+` give a new history."""

    __slots__ = ("_buffer", "_length")
    _buffer: _Buffer
    _length: int

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        if type(messages) is History:
            self._buffer, self._length = messages._buffer, messages._length
        else:
            items = list(messages)
            self._length = length = len(items)
            start = length - _CHUNK if length > _CHUNK else 0
            self._buffer = _Buffer(items, start, start)

    @classmethod
    def over(cls, items: Items) -> History:
        """A history of messages that are kept elsewhere, read when they are asked for. The items are its own now."""
        return _view(_Buffer.of(items, len(items)), len(items))

    def append(self, message: Message) -> History:
        """This history and one more message, in constant time."""
        buffer, length = self._buffer, self._length
        if len(buffer.items) != length:
            buffer = buffer.fork(length)
        buffer.items.append(message)
        return _view(buffer, length + 1)

    def extend(self, messages: Iterable[Message]) -> History:
        """This history and more messages."""
        buffer, length = self._buffer, self._length
        if len(buffer.items) != length:
            buffer = buffer.fork(length)
        buffer.items.extend(messages)
        return _view(buffer, len(buffer.items))

    @property
    def last(self) -> Message | None:
        """The last message, or None where there is none."""
        return self._buffer.items[self._length - 1] if self._length else None

    def prefix(self, length: int) -> History:
        """The first `length` messages, sharing what is known of them."""
        return self if length >= self._length else _view(self._buffer, max(length, 0))

    def goes_on_from(self, earlier: History) -> bool:
        """Whether this is surely the earlier history and what was appended to it; False where that is not known
        without a look at the messages."""
        return self._buffer is earlier._buffer and self._length >= earlier._length

    def survey(self) -> Survey:
        """What is known of these messages, brought up to date. It is shared: read it, never change it."""
        buffer, length = self._buffer, self._length
        survey = buffer.survey
        if survey is None:
            survey = buffer.survey = Survey()
        if survey.seen > length:
            earlier = buffer.earlier
            if earlier is None or earlier.seen != length:
                earlier = buffer.earlier = survey.at(length, buffer.items)
            return earlier
        if survey.seen < length:
            survey.advance(buffer.items, length)
        return survey

    def pick(self, places: Iterable[int]) -> list[Message]:
        """The messages at these places, each from 0 on."""
        items = self._buffer.items
        return [items[place] for place in places]

    def position(self, message_id: str) -> int | None:
        """Where a message with this id stands, or None; an empty id stands nowhere. No id is to stand twice; of one
        that does, the last place is meant."""
        place = self._buffer.place(message_id) if message_id else None
        return place if place is not None and place < self._length else None

    def without_transfers(self) -> tuple[History, dict[int, Message | None]]:
        """This history without transfer calls, their results, and messages left empty by that; and what became of
        each message concerned, by its place here (None where it was left out)."""
        survey = self.survey()
        transfers = survey.transfers
        if not transfers:
            return self, {}
        buffer, length = self._buffer, self._length
        if buffer.plain is None:
            last = length - 1
            if transfers[0] == last and without_calls(buffer.items[last], transfers_only=True) is None:
                # What was said last is the transfer alone, as at most handoffs: what stands before it needs no copy.
                return self.prefix(last), {last: None}
            buffer.plain = Plain(buffer.fork(transfers[0]), transfers[0])
        plain = buffer.plain
        if length > plain.taken:
            plain.take(buffer.items, survey, length)
        return _view(plain.buffer, length - bisect_left(plain.gone, length)), plain.altered

    @property
    def digest(self) -> str:
        """SHA-256 in hex over the concatenated digests of the messages; what was hashed before is not hashed again."""
        buffer, length = self._buffer, self._length
        digests = buffer.digests
        if digests is None:
            digests = buffer.digests = {}
        known = digests.get(length)
        if known is None:
            known = digests[length] = self._running(buffer, length)
            if len(digests) > _DIGESTS:
                del digests[next(iter(digests))]
        return known

    def total(self, name: str, count: Callable[[Message], int]) -> int:
        """The sum of what `count` gives for each message; what was counted under this name before is not counted
        again, so that a history that grows costs only its new messages."""
        buffer, length = self._buffer, self._length
        if buffer.sums is None:
            buffer.sums = {}
        sums = buffer.sums.setdefault(name, array("q", [0]))
        total = sums[-1]
        for message in buffer.items[len(sums) - 1 : length]:
            total += count(message)
            sums.append(total)
        return sums[length]

    def _running(self, buffer: _Buffer, length: int) -> str:
        hashed, running = buffer.hash_of(length)
        new = sha256() if running is None else running.copy()
        new.update(joined_digests(buffer.items[hashed:length]))
        if length > buffer.hashed:
            # What stood before is kept: a view that goes on from there another way need not begin anew.
            buffer.running_before = (buffer.hashed, buffer.running)
            buffer.hashed, buffer.running = length, new
        digest: str = new.hexdigest()
        return digest

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Message]:
        return islice(self._buffer.items, self._length)

    def __reversed__(self) -> Iterator[Message]:
        return map(self._buffer.items.__getitem__, range(self._length - 1, -1, -1))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> History: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Message | History:
        if type(index) is slice:
            start, stop, step = index.indices(self._length)
            if step != 1:
                return History(self.pick(range(start, stop, step)))
            return self.prefix(stop) if start == 0 else History(self._buffer.items[start:stop])
        place = index if type(index) is int else index.__index__()
        if place < 0:
            place += self._length
        if not 0 <= place < self._length:
            raise IndexError(f"a history of {self._length} messages has no message {index}")
        return self._buffer.items[place]

    def __add__(self, messages: Iterable[Message]) -> History:
        return self.extend(messages)

    def __radd__(self, messages: Iterable[Message]) -> History:
        return History((*messages, *self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History | tuple):
            return len(self) == len(other) and all(a is b or a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return History, (tuple(self),)

    def __repr__(self) -> str:
        return f"History({list(self)!r})"


def _view(buffer: _Buffer, length: int) -> History:
    history: History = _new(History)
    history._buffer, history._length = buffer, length
    return history
