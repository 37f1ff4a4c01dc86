"""Edits of an agent's view: what a state hook returns under `messages`. They change the view, never the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec

from handrail.agent.errors import InvalidAnswer
from handrail.filters import Message
from handrail.filters.messages import Messages


class Append(msgspec.Struct, frozen=True):
    """Messages that are put at the end."""

    messages: tuple[Message, ...]


class Replace(msgspec.Struct, frozen=True):
    """Messages that take the place of those with their ids."""

    messages: tuple[Message, ...]


class Remove(msgspec.Struct, frozen=True):
    """The ids of messages that leave."""

    ids: tuple[str, ...]


class Overwrite(msgspec.Struct, frozen=True):
    """The messages that the whole view becomes."""

    messages: tuple[Message, ...]


Edit: TypeAlias = Append | Replace | Remove | Overwrite
EDITS = (Append, Replace, Remove, Overwrite)


def append(*messages: Message) -> Append:
    """These messages are put at the end of the view. Raises `InvalidAnswer` for what is no message."""
    _refuse_others("append", messages)
    return Append(messages)


def replace(*messages: Message) -> Replace:
    """Each of these messages takes the place of the one with its id. Raises `InvalidAnswer` for what is no message."""
    _refuse_others("replace", messages)
    return Replace(messages)


def remove(*ids: str) -> Remove:
    """The messages with these ids leave the view. Raises `InvalidAnswer` for what is no id."""
    if wrong := [each for each in ids if not isinstance(each, str)]:
        raise InvalidAnswer(f"remove() takes ids, not {type(wrong[0]).__name__}")
    return Remove(ids)


def overwrite(messages: Iterable[Message]) -> Overwrite:
    """The view becomes these messages. Raises `InvalidAnswer` for what is no message."""
    whole = tuple(messages)
    _refuse_others("overwrite", whole)
    return Overwrite(whole)


def _refuse_others(what: str, messages: Sequence[object]) -> None:
    if wrong := [each for each in messages if not isinstance(each, Message)]:
        raise InvalidAnswer(f"{what}() takes messages, each with its id, not {type(wrong[0]).__name__}")


def edited(view: Messages, edit: Edit) -> list[Message]:
    """The view after an edit. Raises `KeyError` with an id that the view does not hold, `ValueError` with one that it
    holds already."""
    messages: list[Message] = list(view)
    match edit:
        case Append(added):
            held = {message.id for message in messages if message.id}
            for message in added:
                if message.id in held:
                    raise ValueError(message.id)
            return [*messages, *added]
        case Replace(new):
            places = {message.id: place for place, message in enumerate(messages)}
            for message in new:
                messages[places[message.id]] = message
            return messages
        case Remove(ids):
            known = {message.id for message in messages}
            for each in ids:
                if each not in known:
                    raise KeyError(each)
            return [message for message in messages if message.id not in ids]
        case Overwrite(whole):
            return list(whole)


def as_edits(value: object) -> Sequence[Edit] | None:
    """The edits that a value under `messages` stands for: one, several, or messages to append; None for no edit."""
    if isinstance(value, EDITS):
        return (value,)
    if isinstance(value, Message):
        return (Append((value,)),)
    if isinstance(value, list | tuple):
        if all(isinstance(each, EDITS) for each in value):
            return list(value)
        if all(isinstance(each, Message) for each in value):
            return (Append(tuple(value)),)
    return None
