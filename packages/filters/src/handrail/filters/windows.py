"""What every window over a history shares: which messages stand beside it, and which results may stay in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, Opaque, ToolCall, is_empty
from handrail.filters.repairs import owners


def as_history(history: Messages) -> History:
    """The messages as a `History`; the same one where they are."""
    return history if type(history) is History else History(history)


def beside(history: History) -> set[int]:
    """The places that no window counts: of system messages, and of pinned ones with the other half of their pair."""
    survey = history.survey()
    places = set(survey.systems)
    if survey.pinned:
        places.update(survey.pinned)
        places.update(_halves(history, survey.pinned))
    return places


def last_others(history: History, n: int, uncounted: set[int]) -> list[int]:
    """The places of the last n messages that are not among the uncounted ones, from the end."""
    place = len(history) - 1
    if not uncounted:
        return list(range(place, max(place - n, -1), -1))
    places: list[int] = []
    while place >= 0 and len(places) < n:
        if place not in uncounted:
            places.append(place)
        place -= 1
    return places


def first_others(history: History, n: int, uncounted: set[int]) -> list[int]:
    """The places of the first n messages that are not among the uncounted ones."""
    places: list[int] = []
    for place in range(len(history)):
        if len(places) == n:
            break
        if place not in uncounted:
            places.append(place)
    return places


def pairs(history: History, places: Iterable[int]) -> list[tuple[int, Message]]:
    """The messages at these places, in order and with their places, without halves whose other half is not there: no
    result without its call, no call whose result stands elsewhere. A call that never had a result stays, as it is."""
    chosen = set(places)
    cut: dict[int, set[str]] = {}
    owned = owners(history)
    for place, owner in owned.items():
        if place not in chosen and owner in chosen:
            cut.setdefault(owner, set()).add(history[place].call_id or "")
    left: list[tuple[int, Message]] = []
    for place in sorted(chosen):
        message = history[place]
        if message.role == "tool" and owned.get(place) not in chosen:
            continue
        if place in cut and (called := without(message, cut[place])) is not message:
            if called is None:
                continue
            message = called
        left.append((place, message))
    return left


def whole_pairs(history: History, places: Iterable[int]) -> Messages:
    """The messages of `pairs`; the history itself where that is all of it, unchanged."""
    left = pairs(history, places)
    if len(left) == len(history) and all([message is history[place] for place, message in left]):
        return history
    return tuple([message for _, message in left])


def without_tools(history: History, goes: Callable[[str], bool]) -> Messages:
    """The messages without the calls of tools whose name goes, their results, and hosted parts of that type."""
    cut = {
        place: {part.id for part in message.content if type(part) is ToolCall and goes(part.name)}
        for place, message in enumerate(history)
        if message.role != "tool"
    }
    owned = owners(history)
    left: list[Message] = []
    for place, message in enumerate(history):
        if message.role == "tool":
            owner = owned.get(place)
            gone = message.call_id in cut[owner] if owner is not None else goes(message.name or "")
            kept = None if gone else message
        else:
            kept = _without_named(message, cut[place], goes)
        if kept is not None:
            left.append(kept)
    unchanged = len(left) == len(history) and all([new is old for new, old in zip(left, history, strict=True)])
    return history if unchanged else tuple(left)


def _without_named(message: Message, call_ids: set[str], goes: Callable[[str], bool]) -> Message | None:
    parts = tuple(
        [part for part in message.content if not (type(part) is Opaque and part.family == "tool" and goes(part.type))]
    )
    if len(parts) == len(message.content):
        return without(message, call_ids) if call_ids else message
    left = without(msgspec.structs.replace(message, content=parts), call_ids)
    return None if left is None or is_empty(left) else left


def without(message: Message, call_ids: set[str]) -> Message | None:
    """The message without the calls of these ids (the same object where it has none); None where it is left empty."""
    parts = tuple([part for part in message.content if not (type(part) is ToolCall and part.id in call_ids)])
    if len(parts) == len(message.content):
        return message
    left = msgspec.structs.replace(message, content=parts)
    return None if is_empty(left) else left


def last_user_place(history: History) -> int | None:
    """Where the most recent user message stands."""
    users = history.survey().users
    return users[-1] if users else None


def kept(history: History, places: Iterable[int]) -> tuple[list[int], list[Message]]:
    """These places in order with their messages, without results whose call is not at one of them."""
    ordered = sorted(places)
    messages = history.pick(ordered)
    stray = set(_stray(history, ordered, messages))
    if not stray:
        return ordered, messages
    left = [place for place in ordered if place not in stray]
    return left, history.pick(left)


def window(history: History, places: Iterable[int]) -> Messages:
    """The messages at these places, without results whose call is not among them; the history itself where that is
    all of it."""
    _, messages = kept(history, places)
    return history if len(messages) == len(history) else tuple(messages)


def _stray(history: History, ordered: list[int], messages: list[Message]) -> list[int]:
    if not history.survey().lawful:
        # A call before the first place is not kept, so that no result needs to be matched from further back.
        owned, chosen = owners(history, ordered[0] if ordered else 0), set(ordered)
        both = zip(ordered, messages, strict=True)
        return [place for place, message in both if message.role == "tool" and owned.get(place) not in chosen]
    # In a lawful history a result's call is in the nearest message before it that is no result.
    stray: list[int] = []
    before, kept_call = -1, False
    for place, message in zip(ordered, messages, strict=True):
        if message.role != "tool":
            kept_call = True
        else:
            if place != before + 1 and _block(history, place, before) > before:
                kept_call = False
            if not kept_call:
                stray.append(place)
        before = place
    return stray


def _block(history: History, place: int, before: int) -> int:
    # Where the message stands that the results around a place belong to, or `before` where that is among them.
    caller = place - 1
    while caller > before and history[caller].role == "tool":
        caller -= 1
    return caller


def _halves(history: History, pinned: list[int]) -> set[int]:
    if not history.survey().lawful:
        owned = owners(history)
        chosen = set(pinned)
        calls = {owner for place, owner in owned.items() if place in chosen}
        return calls | {place for place, owner in owned.items() if owner in chosen}
    halves: set[int] = set()
    before = -1
    for place in pinned:
        role = history[place].role
        if role == "tool":
            halves.add(_block(history, place, before))
            before = place
        result = place + 1
        while role == "assistant" and result < len(history) and history[result].role == "tool":
            halves.add(result)
            result += 1
    return halves
