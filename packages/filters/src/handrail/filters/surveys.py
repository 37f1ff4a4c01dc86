"""What one pass over messages finds: where what matters stands, and whether the transcript laws hold so far."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from handrail.filters.messages import Message, Text, ToolCall, is_empty

if TYPE_CHECKING:

    class Items(Protocol):
        """Where messages are kept: a list, or what reads them when they are asked for."""

        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Message]: ...
        @overload
        def __getitem__(self, index: int, /) -> Message: ...
        @overload
        def __getitem__(self, index: slice, /) -> Any: ...
        def append(self, message: Message, /) -> None:
            """Puts one more message at the end."""

        def extend(self, messages: Any, /) -> None:
            """Puts more messages at the end; also a slice of the same kind of items."""


class Places(Sequence[int]):
    """Places in growing order, of which copies share what they have in common: one that goes on another way copies."""

    __slots__ = ("_length", "_shared")

    def __init__(self, shared: array[int] | None = None, length: int = 0) -> None:
        self._shared = array("I") if shared is None else shared
        self._length = length

    def extend(self, places: Iterable[int]) -> None:
        """Puts more places at the end."""
        if len(self._shared) != self._length:
            self._shared = self._shared[: self._length]
        self._shared.extend(places)
        self._length = len(self._shared)

    def below(self, end: int) -> Places:
        """The places before `end`, shared with these."""
        return Places(self._shared, bisect_left(self._shared, end, 0, self._length))

    def between(self, start: int, end: int) -> array[int]:
        """The places from `start` on and before `end`."""
        low = bisect_left(self._shared, start, 0, self._length)
        return self._shared[low : bisect_left(self._shared, end, low, self._length)]

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> array[int]: ...
    def __getitem__(self, index: int | slice) -> int | array[int]:
        if isinstance(index, slice):
            return self._shared[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(f"there are {self._length} places, and none at {index}")
        return self._shared[index if index >= 0 else self._length + index]


class Survey:
    """What is known of the first `seen` messages.

    `systems`, `users`, `pinned` and `transfers` are places: of system, user and pinned messages, and of those that
    hold a transfer call or its result. `broken_at` is the place of the first breach of the laws P1 to P3 (`repair`
    restores them), `unnamed_at` that of the first message without an id; `open_calls` are the ids that wait for a
    result after the last message, in call order.
    """

    __slots__ = (
        "broken_at",
        "open_calls",
        "pinned",
        "seen",
        "systems",
        "transfer_calls",
        "transfers",
        "unnamed_at",
        "users",
    )

    def __init__(self) -> None:
        self.seen = 0
        self.systems: list[int] = []
        self.users = Places()
        self.pinned: list[int] = []
        self.transfers: list[int] = []
        self.transfer_calls: dict[str, int] = {}
        self.broken_at: int | None = None
        self.unnamed_at: int | None = None
        self.open_calls: dict[str, None] = {}

    @property
    def lawful(self) -> bool:
        """Whether the laws hold so far; calls may still be open after the last message."""
        return self.broken_at is None

    @property
    def unnamed(self) -> bool:
        """Whether a message has no id."""
        return self.unnamed_at is not None

    def at(self, length: int, items: Items) -> Survey:
        """An independent survey of the first `length` messages, or of as many as this one has seen; without a walk."""
        new = Survey()
        new.seen = length = min(length, self.seen)
        new.users = self.users.below(length)
        if self.systems:
            new.systems = self.systems[: bisect_left(self.systems, length)]
        if self.pinned:
            new.pinned = self.pinned[: bisect_left(self.pinned, length)]
        if self.transfers and self.transfers[0] < length:
            new.transfers = self.transfers[: bisect_left(self.transfers, length)]
            new.transfer_calls = {key: place for key, place in self.transfer_calls.items() if place < length}
        new.broken_at = self.broken_at if self.broken_at is not None and self.broken_at < length else None
        new.unnamed_at = self.unnamed_at if self.unnamed_at is not None and self.unnamed_at < length else None
        if length == self.seen:
            new.open_calls = self.open_calls.copy()
        elif self.broken_at is not None or items[length].role == "tool":
            # Else nothing is open there: in a lawful conversation only results follow a call that waits.
            new.open_calls = _open(items, length)
        return new

    def go_on(self, other: Survey, start: int, end: int) -> None:
        """Take in what another survey says of its messages from `start` to `end`, which come next here too, without a
        walk. The other is lawful and all of its messages are named; those that are left out here are transfer calls and
        their results."""
        shift = self.seen - start
        self.users.extend([place + shift for place in other.users.between(start, end)])
        for places, others in ((self.systems, other.systems), (self.pinned, other.pinned)):
            low = bisect_left(others, start)
            places.extend([place + shift for place in others[low : bisect_left(others, end, low)]])
        last = other.open_calls if end == other.seen else {}
        self.open_calls = {call_id: None for call_id in last if call_id not in other.transfer_calls}
        self.seen += end - start

    def advance(self, items: Items | Sequence[Message], end: int) -> None:
        """Take in the messages up to `end`."""
        if self.seen == end:
            return
        users: list[int] = []
        transfers, waiting = self.transfer_calls, self.open_calls
        for place, message in enumerate(items[self.seen : end], self.seen):
            role, content = message.role, message.content
            if not message.id and self.unnamed_at is None:
                self.unnamed_at = place
            if message.pinned:
                self.pinned.append(place)
            only = content[0] if len(content) == 1 else None
            if role == "tool":
                if type(only) is Text and not transfers and message.call_id in waiting:
                    del waiting[message.call_id]
                else:
                    self._result(place, message)
                continue
            if role == "user":
                users.append(place)
            elif role == "system":
                self.systems.append(place)
            if waiting:
                self._breaks(place)
                self.open_calls = waiting = {}
            if type(only) is Text:
                if only.text or role == "system":
                    continue
            elif type(only) is ToolCall and role == "assistant" and not only.transfer and not transfers:
                waiting[only.id] = None
                continue
            self._said(place, role, message)
            waiting = self.open_calls
        if users:
            self.users.extend(users)
        self.seen = end

    def _said(self, place: int, role: str, message: Message) -> None:
        calls = [part for part in message.content if type(part) is ToolCall]
        if calls:
            self._calls(place, role, calls)
        elif role != "system" and is_empty(message):
            self._breaks(place)

    def _breaks(self, place: int) -> None:
        if self.broken_at is None:
            self.broken_at = place

    def _result(self, place: int, message: Message) -> None:
        call_id = message.call_id or ""
        if call_id in self.open_calls:
            del self.open_calls[call_id]
        else:
            self._breaks(place)
        if call_id in self.transfer_calls:
            self.transfers.append(place)
        content = message.content
        if not (len(content) == 1 and type(content[0]) is Text) and message.tool_calls:
            self._breaks(place)

    def _calls(self, place: int, role: str, calls: Sequence[ToolCall]) -> None:
        if role != "assistant":
            self._breaks(place)
            return
        self.open_calls = dict.fromkeys([call.id for call in calls])
        if len(self.open_calls) != len(calls):
            self._breaks(place)
        transfers = [call.id for call in calls if call.transfer]
        if transfers:
            self.transfers.append(place)
        if self.transfer_calls:
            # A later call may use an id again: a result belongs to the nearest earlier call with its id.
            for call in calls:
                self.transfer_calls.pop(call.id, None)
        for call_id in transfers:
            self.transfer_calls[call_id] = place


def _open(items: Items, length: int) -> dict[str, None]:
    answered: list[str] = []
    for place in range(length - 1, -1, -1):
        message = items[place]
        if message.role == "tool":
            answered.append(message.call_id or "")
            continue
        calls = message.tool_calls if message.role == "assistant" else ()
        waiting: dict[str, None] = {call.id: None for call in calls}
        for call_id in answered:
            waiting.pop(call_id, None)
        return waiting
    return {}
