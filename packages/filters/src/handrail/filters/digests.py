"""The digests of many messages at once: what `Message.digest` is for each, for less than it costs one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from handrail.filters.canonical import not_canonical
from handrail.filters.hashes import sha256_of_each
from handrail.filters.messages import Message, ToolCall, canonical_json

_FEW = 8
_AT_ONCE = 128
"""How many messages are encoded into one text, so that it stays small."""

_CALL = b'"kind":"tool_call"'
_encode_lines = msgspec.json.Encoder(order="sorted").encode_lines


def joined_digests(messages: Sequence[Message]) -> bytes:
    """The digests of the messages (32 bytes each), joined. The messages of a list keep those that nobody has asked for
    yet."""
    if len(messages) <= _FEW:
        return b"".join([message.digest for message in messages])
    if type(messages) is not list:
        # They are read from elsewhere, once, and are gone again when they have been looked at.
        return b"".join([b"".join(sha256_of_each(written(some))) for some in _portions(messages)])
    known = [message.__dict__ for message in messages]
    missing = [kept for kept in known if "digest" not in kept]
    if missing:
        new = messages
        if len(missing) < len(known):
            new = [message for message, kept in zip(messages, known, strict=True) if "digest" not in kept]
        digests = chain.from_iterable([sha256_of_each(written(some)) for some in _portions(new)])
        for kept, digest in zip(missing, digests, strict=True):
            kept["digest"] = digest
    return b"".join([kept["digest"] for kept in known])


def _portions(messages: Iterable[Message]) -> Iterator[Sequence[Message]]:
    coming = iter(messages)
    while some := list(islice(coming, _AT_ONCE)):
        yield some


def written(messages: Sequence[Message]) -> list[bytes]:
    """The canonical JSON of each of the messages, as `canonical_json` gives it."""
    # No line ends within one: in a text it is escaped, and so is what would read like the mark of a call.
    text = _undated(_encode_lines(messages))
    lines = text.split(b"\n")
    lines.pop()
    calls = [
        (place, part.arguments)
        for place in _with_calls(text)
        if messages[place].role == "assistant"
        for part in messages[place].content
        if type(part) is ToolCall
    ]
    for number in not_canonical([arguments for _, arguments in calls]):
        place, _ = calls[number]
        lines[place] = canonical_json(messages[place])
    return lines


def _with_calls(text: bytes) -> Iterator[int]:
    # The lines that hold a call, counted between one and the next: most lines hold none.
    place = begin = 0
    while (at := text.find(_CALL, begin)) >= 0:
        place += text.count(b"\n", begin, at)
        yield place
        begin = text.index(b"\n", at)


def _undated(text: bytes) -> bytes:
    # Only the field itself reads like this: a quote within a text is escaped. `role` always follows.
    first, *dated = text.split(b'"created_at":')
    return b"".join([first, *[rest[rest.index(b",") + 1 :] for rest in dated]]) if dated else first
