"""The seal: what every boundary guarantees, whatever filter was chosen.

Its order is fixed: the filter, the transcript laws, no reasoning, and something that the next agent can answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from handrail.filters.base import Filter
from handrail.filters.custom import Custom, as_filter
from handrail.filters.errors import FilterError, FilterFailed, NothingToHandOver
from handrail.filters.hashes import sha256
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, Part, Role, user, whole
from handrail.filters.reasoning import StripReasoning, spoken, spoken_only, without_reasoning
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import restore
from handrail.filters.sensitivity import highest, label

_ROLES = frozenset(get_args(Role))
_PARTS = get_args(Part)


class Note(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """Text that stands beside a handoff's history: its reason, its typed input, or a sub-agent's input."""

    label: Literal["reason", "input"]
    text: str
    sensitivity: str | None = None

    def __post_init__(self) -> None:
        if not self.text.isascii():
            msgspec.structs.force_setattr(self, "text", whole(self.text))


@filter_kind("seal")
class Seal(Filter, frozen=True):
    """A filter with the guarantees of the boundary around it."""

    filter: Filter

    def __post_init__(self) -> None:
        if isinstance(self.filter, Seal):
            msgspec.structs.force_setattr(self, "filter", self.filter.filter)

    def __call__(self, history: Messages) -> Messages:
        return self.hand_over(history)

    @property
    def flat(self) -> tuple[Filter, ...]:
        """The steps of the filter."""
        return self.filter.flat

    def hand_over(
        self, history: Messages, notes: Sequence[Note] = (), origin: History | None = None, *, asked_by: str = ""
    ) -> Messages:
        """What the next agent starts from: the history as the filter and the laws leave it, then what is left of the
        notes. `origin` is the view that the history was taken from, where that is known: a result that stands there is
        no invention of the filter. `asked_by` tells this crossing from others (the source's path and the call), so that
        the same words said again are another message.

        Raises `FilterError` naming the step that failed, or `NothingToHandOver`.
        """
        messages = self._through(history, origin)
        left = [kept for note in notes if (kept := _left(self.flat, note)) is not None] if notes else []
        return self._answerable(messages, left, f"{asked_by}\0{len(history)}")

    def back(self, messages: Messages) -> Messages:
        """What crosses on the way back: the filter, the laws and no reasoning; it may be nothing."""
        return self._through(messages, None)

    def _through(self, history: Messages, origin: History | None) -> tuple[Message, ...]:
        steps = self.flat
        messages = history
        for number, step in enumerate(steps, 1):
            messages = run_step(number, step, messages, origin)
        lawful = restore(messages, "drop").messages
        if lawful is messages and isinstance(lawful, tuple) and isinstance(steps[-1], StripReasoning):
            return lawful
        return tuple([kept for message in lawful if (kept := without_reasoning(message)) is not None])

    def _answerable(self, messages: tuple[Message, ...], notes: list[Note], crossing: str) -> Messages:
        # The same words said again at a later handoff are another message: the place counts what had been said.
        number = len(self.flat) + 1 if notes else 0
        for note in notes:
            if note.label == "input":
                messages = (*messages, made_by(number, len(messages), _as_user(note), crossing))
        if any([message.role == "user" for message in messages]):
            return messages
        for note in notes:
            if note.label == "reason":
                return (*messages, made_by(number, len(messages), _as_user(note), crossing))
        raise NothingToHandOver(self.descriptor)

    def __repr__(self) -> str:
        return f"seal({self.filter!r})"


@constructor
def seal(filter: Filter | Callable[[Messages], Any]) -> Seal:
    """The filter (or plain function) as every boundary applies it.

    >>> from handrail.filters import full, user
    >>> seal(full())((user("I was charged twice.", id="m1"),))[0].text
    'I was charged twice.'
    """
    return Seal(as_filter(filter))


def run_step(number: int, step: Filter, given: Messages, origin: History | None = None) -> Messages:
    """What one step of a filter, counted from 1, makes of the messages; what it made has an id. Raises `FilterError`
    for a step that raised, or returned what may not cross."""
    ours = _is_ours(step)
    if not ours:
        # What rewrites words could hide a `<think>` from the strip at the end, so it is shown none.
        given = spoken_only(given)
    try:
        made = step(given)
    except FilterError:
        raise
    except Exception as error:
        raise FilterFailed(f"{number}, {step!r},", f"raised {type(error).__name__}: {error}") from error
    if made is given:
        return made
    if not ours and (problem := unsound(given, made, origin)) is not None:
        raise FilterFailed(f"{number}, {step!r},", problem)
    return made if all([message.id for message in made]) else _identified(number, given, made)


def unsound(given: Messages, made: Messages, origin: History | None = None) -> str | None:
    """What is wrong with messages that were made of these: no messages, an id twice, an answer that nobody gave."""
    return _unfit(made) or _invented(given, made, origin)


def _is_ours(step: Filter) -> bool:
    # The filters of this package make sound messages and invent nothing; those of others are looked at.
    return type(step).__module__.startswith("handrail.filters.") and type(step) is not Custom


def _unfit(made: Any) -> str | None:
    if not isinstance(made, tuple | list | History):
        return f"returned what is not messages: {type(made).__name__}"
    for item in made:
        if type(item) is not Message:
            return f"returned what is not messages: a {type(made).__name__} with {type(item).__name__} in it"
        if item.role not in _ROLES or not all([isinstance(part, _PARTS) for part in item.content]):
            return (
                f"returned a message of role {item.role!r} that holds {[type(part).__name__ for part in item.content]}"
            )
    for message_id, times in Counter([message.id for message in made if message.id]).items():
        if times > 1:
            return f"gives the message id {message_id!r} twice"
    return None


def _invented(given: Messages, made: Messages, origin: History | None) -> str | None:
    results = [message for message in made if message.role == "tool"]
    known = {(message.id, message.call_id) for message in given if message.role == "tool"} if results else set()
    for result in results:
        place = origin.position(result.id) if origin is not None else None
        held = origin[place] if origin is not None and place is not None else None
        if (result.id, result.call_id) not in known and (held is None or held.call_id != result.call_id):
            return f"invents an answer to the call {result.call_id!r}"
    return None


def _identified(number: int, given: Messages, made: Messages) -> Messages:
    # A view knows whether one of its messages has no id: where none has, it is not walked again at each boundary.
    named_all = isinstance(given, History) and not given.survey().unnamed
    old = set() if named_all else {id(message) for message in given if not message.id}
    named = [
        message if message.id or id(message) in old else made_by(number, place, message)
        for place, message in enumerate(made)
    ]
    return tuple(named)


def made_by(number: int, place: int, message: Message, crossing: str = "") -> Message:
    """The message with the id of what a step made: `f<step>-<12 hex>` of step, place and content; for a note also of
    the crossing that it came with."""
    content = sha256(f"{number}\0{place}\0{crossing}".encode() + message.digest).hexdigest()
    return msgspec.structs.replace(message, id=f"f{number}-{content[:12]}")


def _as_user(note: Note) -> Message:
    return user(note.text, sensitivity=note.sensitivity)


def _left(steps: Sequence[Filter], note: Note) -> Note | None:
    messages: Messages = (_as_user(note),)
    for number, step in enumerate(steps, 1):
        if step.per_message:
            messages = run_step(number, step, messages)
    text = spoken("".join([message.text for message in messages]))
    if not text.strip():
        return None
    labels = highest(*[found for message in messages for part in message.content if (found := label(message, part))])
    return msgspec.structs.replace(note, text=text, sensitivity=labels)
