"""Every agent's view of a session, rebuilt from its records: the one reading of what a record does to a view.

A view holds the results of a response in call order, however they came in: they are placed when all are there, or when
something else happens in that view. Until then the view is what stands, and the results so far in call order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from handrail.filters.edges import Edge, edge_history
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, ToolCall
from handrail.filters.views import View
from handrail.sessions.errors import UnknownView
from handrail.sessions.paths import in_scope, top_path
from handrail.sessions.records import (
    HandoffRecord,
    MessageRecord,
    SubagentRecord,
    ToolResultRecord,
    Unknown,
    ViewRecord,
    Writable,
)


class Views:
    """The views of a session as of the records taken in so far, by agent path."""

    def __init__(self, empty: Callable[[], History] = History) -> None:
        self._empty = empty
        self._tracks: dict[str, _Track] = {}

    @classmethod
    def of(cls, records: Iterable[Writable]) -> Views:
        """The views that these records lead to."""
        views = cls()
        for record in records:
            views.take(record)
        return views

    def now(self) -> dict[str, View]:
        """Each view as it stands, by path."""
        return {path: View(track.now(), track.removed, track.rejected) for path, track in self._tracks.items()}

    def histories(self) -> Iterable[History]:
        """What stands in each view, without the results of a response that is still being answered."""
        return [track.history for track in self._tracks.values()]

    def history(self, path: str) -> History:
        """The messages of one view as it stands; none for a path without a view."""
        track = self._tracks.get(path)
        return track.now() if track is not None else self._empty()

    def edge(self, record: HandoffRecord | SubagentRecord) -> Edge:
        """What the boundary of this record is given, before the record is taken in: for a handoff with the results so
        far, for a sub-agent up to the message that made the call."""
        if type(record) is HandoffRecord:
            rejected = self._rejected(record.path)
            return edge_history(self.history(record.path), record.call_id, kind="handoff", without=rejected)
        track = self._tracks.get(record.path)
        history = track.history if track is not None else self._empty()
        return edge_history(history, record.call_id, kind="subagent", without=self._rejected(record.path))

    def _rejected(self, path: str) -> frozenset[str]:
        track = self._tracks.get(path)
        return track.rejected if track is not None else frozenset()

    def take(self, record: Writable) -> None:
        """Take in one record. Raises `ValueError` where it names what the view does not hold."""
        if isinstance(record, MessageRecord):
            self.say(record)
        elif isinstance(record, ToolResultRecord):
            self.answer(record)
        elif isinstance(record, HandoffRecord) or (isinstance(record, SubagentRecord) and record.event == "start"):
            self.enter(record, self.seed(record, self.edge(record)))
        elif isinstance(record, SubagentRecord):
            self._end_scope(record)
        elif isinstance(record, ViewRecord):
            self._track(record.path).edit(record, self._empty())
        elif isinstance(record, Unknown) and record.record is not None:
            self.take(record.record)

    def say(self, record: MessageRecord) -> None:
        """The same for a record of a message."""
        if not record.aside:
            track = self._tracks.get(record.path) or self._track(record.path)
            track.say(record.message)
            if record.rejects is not None:
                track.rejected |= {record.rejects or record.message.id, record.message.id}

    def say_all(self, records: Sequence[MessageRecord], messages: list[Message]) -> None:
        """The same for some records and the messages that they hold, one after the other."""
        path = records[0].path
        if any([record.path != path or record.aside or record.rejects is not None for record in records]):
            for record in records:
                self.say(record)
        else:
            (self._tracks.get(path) or self._track(path)).say_all(messages)

    def answer(self, record: ToolResultRecord) -> None:
        """The same for a record of a result."""
        (self._tracks.get(record.path) or self._track(record.path)).answer(record.message)

    def seed(self, record: HandoffRecord | SubagentRecord, edge: Edge) -> Messages:
        """The seed that the record names. Raises `ValueError` where it names what the source's view does not hold."""
        try:
            return edge.seed(record.crossed)
        except IndexError as error:
            raise ValueError(f"it names messages that did not exist: {error}") from None

    def enter(self, record: HandoffRecord | SubagentRecord, seed: Messages) -> None:
        """Let a seed into the view of the record's target; a sub-agent's call begins a scope of its own."""
        if type(record) is SubagentRecord:
            self._end_scope(record)
        track = self._tracks.get(record.target_path)
        if track is None:
            self._tracks[record.target_path] = _Track(self._empty().extend(seed))
        else:
            track.enter(seed)

    def called(self, path: str, call_id: str | None) -> ToolCall | None:
        """The call of this id that is waiting for its result in a view."""
        track = self._tracks.get(path)
        return track.waits_for(call_id or "") if track is not None else None

    def waiting(self) -> list[str]:
        """The ids of all calls that are waiting for their results, in any view."""
        return [call_id for track in self._tracks.values() for call_id in track.open_calls]

    def scope(self, record: SubagentRecord) -> list[History]:
        """The views within the call of a sub-agent."""
        tracks = self._tracks.items()
        return [track.now() for path, track in tracks if self._within(path, record)]

    def _end_scope(self, record: SubagentRecord) -> None:
        for path in [path for path in self._tracks if self._within(path, record)]:
            del self._tracks[path]

    @staticmethod
    def _within(path: str, record: SubagentRecord) -> bool:
        return in_scope(path, record.path, record.call_id or "", record.part)

    def _track(self, path: str) -> _Track:
        track = self._tracks.get(path)
        if track is None:
            track = self._tracks[path] = _Track(self._empty())
        return track


def history_of(views: Mapping[str, View], agent: str | None) -> History:
    """The messages of one view, by the agent's name or path. Raises `UnknownView`, naming those there are."""
    path = agent if agent is None or agent in views else top_path(agent)
    if path is None or path not in views:
        raise UnknownView(agent, sorted(views))
    return views[path].history


class _Track:
    """One view, and the response whose calls are being answered."""

    __slots__ = ("_calls", "_history", "_results", "_said", "_shown", "_waiting", "rejected", "removed")

    def __init__(self, history: History) -> None:
        self.removed: frozenset[str] = frozenset()
        self.rejected: frozenset[str] = frozenset()
        self._history = history
        self._calls: tuple[ToolCall, ...] = ()
        self._said: list[Message] = []
        self._results: list[Message | None] = []
        self._shown: tuple[History, list[Message]] | None = None
        self._waiting: dict[str, list[int]] = {}

    @property
    def history(self) -> History:
        """What stands, without the results of a response that is still being answered."""
        if self._said:
            self._history = self._history.extend(self._said)
            self._said = []
        return self._history

    def now(self) -> History:
        """What stands, and the results so far in call order."""
        results = [result for result in self._results if result is not None]
        if not results:
            return self.history
        if self._shown is None or self._shown[1] != results:
            self._shown = self._with(results), results
        return self._shown[0]

    def _with(self, results: list[Message]) -> History:
        # What was shown already is gone on from where that is the same beginning, so that it is not copied.
        if self._shown is not None and self._shown[1] == results[: len(self._shown[1])]:
            return self._shown[0].extend(results[len(self._shown[1]) :])
        return self.history.extend(results)

    def settle(self) -> None:
        """The response is over, whatever is still open."""
        if self._results:
            if self._shown is None:
                self._said += [result for result in self._results if result is not None]
            else:
                self._history = self.now()
            self._results, self._waiting, self._shown = [], {}, None

    def say(self, message: Message) -> None:
        """One more message."""
        if self._results:
            self.settle()
        self._said.append(message)
        if message.role == "assistant" and (calls := message.tool_calls):
            self._open(calls)

    def say_all(self, messages: list[Message]) -> None:
        """More messages, one after the other."""
        if self._results:
            self.settle()
        # What calls but the last one makes are over with the next message: no result came between.
        self._said += messages[:-1]
        self.say(messages[-1])

    def _open(self, calls: tuple[ToolCall, ...]) -> None:
        self._calls = calls
        self._results = [None] * len(calls)
        for place in range(len(calls) - 1, -1, -1):
            self._waiting.setdefault(calls[place].id, []).append(place)

    def waits_for(self, call_id: str) -> ToolCall | None:
        """The call of this id that has no result yet."""
        places = self._waiting.get(call_id)
        return self._calls[places[-1]] if places else None

    @property
    def open_calls(self) -> list[str]:
        """The ids of the calls that have no result yet."""
        return [call.id for call, result in zip(self._calls, self._results, strict=False) if result is None]

    def answer(self, message: Message) -> None:
        """The result of one call; one that nothing waits for stands where it came."""
        places = self._waiting.get(message.call_id or "")
        if not places:
            self.settle()
            self._said.append(message)
            return
        self._results[places.pop()] = message
        if not places:
            del self._waiting[message.call_id or ""]
        if not self._waiting:
            self.settle()

    def enter(self, seed: Messages) -> None:
        """What a boundary brought."""
        self.settle()
        self._history = View(self.history, self.removed).enter(seed).history

    def edit(self, record: ViewRecord, empty: History) -> None:
        """What a `view` record says; the view is built anew on `empty`."""
        self.settle()
        self._history = _appended(self.history, record) or empty.extend(_edited(self.history, record))
        self.removed |= frozenset(record.removed) - {message.id for _, message in record.inserted}
        self.rejected -= self.removed
        last = self._history[-1] if len(self._history) else None
        if last is not None and last.role == "assistant" and (calls := last.tool_calls):
            # An edit beside an answer whose calls are still being answered.
            self._open(calls)


def _appended(history: History, record: ViewRecord) -> History | None:
    # What only goes on at the end needs no look at the rest.
    if record.removed or record.replaced or not record.inserted:
        return None
    last = history[-1].id if len(history) else ""
    for previous, message in record.inserted:
        if not last or previous != last:
            return None
        last = message.id
    return history.extend([message for _, message in record.inserted])


def _edited(history: Iterable[Message], record: ViewRecord) -> Iterator[Message]:
    removed = set(record.removed)
    replaced = {message.id: message for message in record.replaced}
    after: dict[str, list[Message]] = {}
    for place, message in record.inserted:
        after.setdefault(place, []).append(message)
    waiting = after.pop("", [])
    for held in chain((None,), history):
        if held is not None and held.id in removed:
            removed.remove(held.id)
            continue
        if held is not None:
            waiting.append(replaced.pop(held.id, held) if held.id else held)
        while waiting:
            said = waiting.pop()
            waiting.extend(after.pop(said.id, ()) if said.id else ())
            yield said
    if missing := sorted({*replaced, *removed, *after}):
        raise ValueError(f"it speaks of messages that are not in the view: {', '.join(missing)}")
