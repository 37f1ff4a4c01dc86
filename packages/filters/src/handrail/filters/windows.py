"""What every window over a history shares: which messages stand beside it, and which results may stay in it."""

from collections.abc import Iterable

from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages
from handrail.filters.repairs import owners


def as_history(history: Messages) -> History:
    """The messages as a `History`; the same one where they are."""
    return history if isinstance(history, History) else History(history)


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
    places: list[int] = []
    place = len(history) - 1
    while place >= 0 and len(places) < n:
        if place not in uncounted:
            places.append(place)
        place -= 1
    return places


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
