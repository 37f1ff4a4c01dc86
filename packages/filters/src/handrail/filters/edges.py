"""What a boundary is given of the source's view, and which of it crossed.

A record of a handoff does not repeat the messages that crossed: it names ranges of the source's view, each place
meaning the message as `edge_history` gives it, and holds only what a filter made or changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, without_calls

Crossed: TypeAlias = tuple[int, int] | Message
"""A range of the source's view (start, and the place after its end), or a message that a filter made or changed."""


class Edge(msgspec.Struct, frozen=True):
    """The history at a boundary. `altered` holds what became of the view's messages that it does not give as they
    are, by their place: the message without its transfer calls, or None where it was left out."""

    view: History
    messages: Messages
    altered: dict[int, Message | None]

    def at(self, place: int) -> Message | None:
        """The view's message at this place, as the boundary gives it."""
        return self.altered[place] if place in self.altered else self.view[place]

    def crossed(self, seed: Messages) -> tuple[Crossed, ...]:
        """The seed as ranges of the view, and the messages that are not in it."""
        crossed: list[Crossed] = []
        view, altered, length = self.view, self.altered, len(self.view)
        start = stop = -1
        for message in seed:
            if 0 < stop < length and view[stop] is message and message.id and stop not in altered:
                stop += 1
                continue
            place = view.position(message.id)
            if place is None or not _same(self.at(place), message):
                if stop > start:
                    crossed.append((start, stop))
                crossed.append(message)
                start = stop = -1
            elif place == stop:
                stop += 1
            else:
                if stop > start:
                    crossed.append((start, stop))
                start, stop = place, place + 1
        if stop > start:
            crossed.append((start, stop))
        return tuple(crossed)

    def seed(self, crossed: Sequence[Crossed]) -> Messages:
        """The seed that these ranges and messages stand for. Raises `IndexError` where a range is not in the view."""
        seed: list[Message] = []
        for item in crossed:
            if isinstance(item, Message):
                seed.append(item)
                continue
            start, stop = item
            if not 0 <= start <= stop <= len(self.view):
                raise IndexError(f"the view has {len(self.view)} messages, so there is no range {start} to {stop}")
            seed.extend([message for place in range(start, stop) if (message := self.at(place)) is not None])
        return tuple(seed)


def _same(given: Message | None, crossed: Message) -> bool:
    return given is crossed or (given is not None and given == crossed)


def edge_history(
    view: History,
    call_id: str | None = None,
    *,
    kind: Literal["handoff", "subagent"],
    without: frozenset[str] = frozenset(),
) -> Edge:
    """What the boundary is given: the view without transfer calls and their results, and without messages left empty
    by that; for a sub-agent also without any call or result of the message that holds `call_id`. The messages with the
    ids `without` (rejected answers, and what was said to them) are left out."""
    edge = _edge_history(view, call_id, kind)
    if not without:
        return edge
    gone = {place: None for each in without if (place := view.position(each)) is not None}
    kept = History([message for message in edge.messages if message.id not in without])
    return Edge(view, kept, {**edge.altered, **gone})


def _edge_history(view: History, call_id: str | None, kind: Literal["handoff", "subagent"]) -> Edge:
    caller = _caller(view, call_id) if kind == "subagent" and call_id is not None else None
    if caller is None:
        messages, altered = view.without_transfers()
        return Edge(view, messages, altered)
    messages, altered = view.prefix(caller).without_transfers()
    called = without_calls(view[caller], transfers_only=False)
    return Edge(view, messages if called is None else messages.append(called), {**altered, caller: called})


def _caller(view: History, call_id: str) -> int | None:
    for place in range(len(view) - 1, -1, -1):
        message = view[place]
        if message.role == "assistant" and any([call.id == call_id for call in message.tool_calls]):
            return place
    return None
