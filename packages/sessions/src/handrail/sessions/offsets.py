"""Messages kept as offsets into a session file: a view of any length in a few bytes a message.

An item is the offset of the line that holds the message, 4 bytes, or 8 once the file is longer than 2 GB; what no line
holds as it is (a message that a filter made, or one without its transfer calls) is kept itself. Ids are found by their
hashes, another 8 bytes.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from operator import add
from typing import BinaryIO, overload

from handrail.filters.messages import Message
from handrail.sessions.codec import decode
from handrail.sessions.records import AnyRecord, MessageRecord, ToolResultRecord, Unknown

_RECENT = 1024
_TOGETHER = 32
_RUN = 1 << 15
_LONGEST_RUN = 1 << 17
_PLACES = 1 << 28
_HASHES = (1 << 53) - _PLACES
"""The bits of a hash that are kept beside a place, in a number that a float holds exactly."""


class Store:
    """Where messages are read from: an open session file, what decodes its lines, and the last messages seen."""

    def __init__(self, file: BinaryIO, decode: Callable[[bytes], AnyRecord] = decode) -> None:
        self._file = file
        self._decode = decode
        self._kept: list[Message] = []
        self._young: dict[int, Message] = {}
        self._old: dict[int, Message] = {}

    def see(self, offset: int, message: Message) -> None:
        """A message that stands in the line at this offset; whoever shows many calls `rest` now and then."""
        message.__dict__["offset"] = offset
        self._young[offset] = message

    def see_all(self, offsets: Sequence[int], messages: Sequence[Message]) -> None:
        """The same for messages in the lines at these offsets."""
        for offset, message in zip(offsets, messages, strict=True):
            message.__dict__["offset"] = offset
        self._young.update(zip(offsets, messages, strict=True))

    def rest(self) -> None:
        """Let go of what was seen long ago."""
        if len(self._young) >= _RECENT:
            self._old, self._young = self._young, {}

    def recent(self) -> Callable[[int], Message | None]:
        """What finds the messages seen last by their offsets."""
        return self._young.get

    def keys(self, messages: Sequence[Message]) -> list[int]:
        """What to remember each of these messages by."""
        try:
            return [message.__dict__["offset"] for message in messages]
        except KeyError:
            return [message.__dict__.get("offset") or self._keep(message) for message in messages]

    def _keep(self, message: Message) -> int:
        self._kept.append(message)
        return -len(self._kept)

    def message(self, key: int) -> Message:
        """The message that has this key."""
        if key < 0:
            return self._kept[-1 - key]
        message = self._young.get(key) or self._old.get(key)
        if message is None:
            message = self._read(key)
            self.rest()
            self.see(key, message)
        return message

    def _read(self, offset: int) -> Message:
        self._file.seek(offset)
        record = self._decode(self._file.readline().rstrip(b"\n"))
        if isinstance(record, Unknown):
            record = record.record or record
        if not isinstance(record, MessageRecord | ToolResultRecord):
            raise ValueError(f"the file changed while it was read: no message stands at byte {offset} any more")
        return record.message


class Offsets:
    """The items of a history over a `Store`; it appends, extends, slices and reads like a list of messages."""

    __slots__ = ("_ids", "_keys", "_store")

    def __init__(self, store: Store, keys: "array[int] | None" = None, ids: "_Ids | None" = None) -> None:
        self._store = store
        self._keys: array[int] = array("i") if keys is None else keys
        self._ids = _Ids() if keys is None else ids

    def append(self, message: Message) -> None:
        """One more message."""
        self.extend((message,))

    def extend(self, messages: "Iterable[Message] | Offsets") -> None:
        """More messages; those of other items over the same file are not read for it."""
        if isinstance(messages, Offsets) and messages._store is self._store:
            # Their ids would have to be read: they are looked for one by one from here on.
            self._ids = self._ids if not messages._keys else None
            self._add(messages._keys)
            return
        while some := tuple(islice(messages := iter(messages), _RECENT)):
            if self._ids is not None:
                self._ids.add(some, len(self._keys))
            self._add(self._store.keys(some))

    def _add(self, keys: "array[int] | list[int]") -> None:
        try:
            more = array(self._keys.typecode, keys)
        except OverflowError:
            self._keys, more = array("q", self._keys), array("q", keys)
        self._keys.extend(more)

    def find(self, message_id: str) -> int | None:
        """Where the last message with this id stands."""
        if self._ids is not None:
            return next((place for place in self._ids.places(message_id) if self._has(place, message_id)), None)
        return next((place for place in range(len(self._keys) - 1, -1, -1) if self._has(place, message_id)), None)

    def _has(self, place: int, message_id: str) -> bool:
        return place < len(self._keys) and self[place].id == message_id

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Message]:
        return chain.from_iterable(map(self._some, range(0, len(self._keys), _TOGETHER)))

    def _some(self, start: int) -> list[Message]:
        # Most are read while they are recent; those that are not any more, are looked for.
        keys, message = self._keys[start : start + _TOGETHER], self._store.message
        found = list(map(self._store.recent(), keys))
        return found if all(found) else [each or message(key) for key, each in zip(keys, found, strict=True)]  # type: ignore[return-value]  # all of them are there

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> "Offsets": ...
    def __getitem__(self, index: int | slice) -> "Message | Offsets":
        if isinstance(index, slice):
            begins = index.start in (None, 0) and index.step in (None, 1)
            return Offsets(
                self._store, self._keys[index], self._ids.copy() if begins and self._ids is not None else None
            )
        return self._store.message(self._keys[index])


class _Ids:
    """Places by the hash of an id: recent ones in a dictionary, older ones in sorted runs of 8 bytes each.

    A run holds floats, since those are sorted and searched much faster than whole numbers of that size.
    """

    __slots__ = ("_recent", "_runs")

    def __init__(self) -> None:
        self._recent: dict[str, int] = {}
        self._runs: list[array[float]] = []

    def copy(self) -> "_Ids":
        """An index that goes its own way from here on."""
        copied = _Ids()
        copied._recent, copied._runs = self._recent.copy(), self._runs.copy()
        return copied

    def add(self, messages: Iterable[Message], place: int) -> None:
        """These messages stand here from this place on."""
        recent = self._recent
        recent.update(zip([message.id for message in messages], count(place), strict=False))
        if len(recent) >= _RUN:
            hashes = map(float, map(_HASHES.__and__, map(hash, recent)))
            self._keep(array("d", sorted(map(add, hashes, recent.values()))))
            self._recent = {}

    def _keep(self, run: "array[float]") -> None:
        # Few long runs are searched sooner than many short ones; one of any length would be long in the making.
        while self._runs and len(self._runs[-1]) <= len(run) and 2 * len(run) <= _LONGEST_RUN:
            run = array("d", sorted(chain(self._runs.pop(), run)))
        self._runs.append(run)

    def places(self, message_id: str) -> Iterator[int]:
        """Where the id may stand: every place that it does stand at, and hardly another."""
        if message_id in self._recent:
            yield self._recent[message_id]
        wanted = float(hash(message_id) & _HASHES)
        for run in reversed(self._runs):
            # The last place first, as the last run comes first.
            at = bisect_left(run, wanted + _PLACES) - 1
            while at >= 0 and run[at] >= wanted:
                yield int(run[at] - wanted)
                at -= 1
