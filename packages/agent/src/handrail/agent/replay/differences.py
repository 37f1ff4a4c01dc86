"""What differs between what was recorded and what is now: by message and field, like a diff."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import zip_longest

import msgspec

from handrail.filters import Message, Note
from handrail.filters.messages import Messages, Reasoning, Refusal, Text, ToolCall
from handrail.filters.sensitivity import judge, token

SHOWN = 20
"""How many differences of one request are shown; the others are counted."""
_CUT = 400


class Difference(msgspec.Struct, frozen=True):
    """One thing that was so `then` and is so `now`; an empty one was, or is, not there. `where` names it: a block of
    instructions, a tool, a setting, or a message by its place from 1, its id and the field."""

    where: str
    then: str
    now: str

    def __str__(self) -> str:
        then, now = self.then.splitlines(), self.now.splitlines()
        if len(then) + len(now) > 4:
            lines = list(unified_diff(then, now, lineterm="", n=1))[2:]
        else:
            lines = [*[f"-{line}" for line in then], *[f"+{line}" for line in now]]
        return "\n".join([self.where, *[f"  {line}" for line in lines]])


def of_mappings(what: str, then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    """What differs between values by name."""
    for name in [*then, *[name for name in now if name not in then]]:
        if then.get(name) != now.get(name):
            yield Difference(f"{what} {name}", then.get(name, ""), now.get(name, ""))


def of_tools(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    """What differs between the tools offered, given as digests by name."""
    gone, new = [name for name in then if name not in now], [name for name in now if name not in then]
    if gone or new:
        yield Difference("tools", "\n".join(gone), "\n".join(new))
    for name in then:
        if name in now and then[name] != now[name]:
            yield Difference(f"tool {name}", f"digest {then[name]}", f"digest {now[name]}")
    if not gone and not new and list(then) != list(now):
        yield Difference("the order of the tools", "\n".join(then), "\n".join(now))


def of_messages(then: Messages, now: Messages, *, by_id: bool = True) -> Iterator[Difference]:
    """What differs between messages, each named by its place in what was recorded, or for a new one in what is now.

    Without `by_id` messages are told apart by their place alone, and their ids do not count.
    """
    old, new = list(then), list(now)
    start = _same(old, new, by_id)
    end = _same(old[start:][::-1], new[start:][::-1], by_id)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    ids, others = [[message.id if by_id else message.role for message in side] for side in (left, right)]
    for tag, a, b, c, d in SequenceMatcher(None, ids, others, autojunk=False).get_opcodes():
        if tag == "equal":
            for place, (was, stands) in enumerate(zip(left[a:b], right[c:d], strict=True), start + a):
                yield from _fields(place, was, stands, by_id)
            continue
        for place, message in enumerate(left[a:b], start + a):
            yield Difference(_name(place, message), shown(message), "")
        for place, message in enumerate(right[c:d], start + c):
            yield Difference(_name(place, message), "", shown(message))


def like(message: Message, other: Message, by_id: bool = True) -> bool:
    """Whether two messages are one, whenever they were made; without `by_id`, whatever they are called."""
    if message is other or message == other or message.digest == other.digest:
        return True
    return not by_id and message.replace(id="").digest == other.replace(id="").digest


def _same(old: Sequence[Message], new: Sequence[Message], by_id: bool) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if not like(a, b, by_id)),
        min(len(old), len(new)),
    )


def _fields(place: int, then: Message, now: Message, by_id: bool) -> Iterator[Difference]:
    names: Sequence[str] = then.__struct_fields__
    for name in names:
        was, stands = getattr(then, name), getattr(now, name)
        if was == stands or name == "created_at" or (name == "id" and not by_id):
            continue
        if name == "content":
            said, says = shown(then), shown(now)
            if said != says:
                yield Difference(f"{_name(place, then)}, content", said, says)
                continue
            was, stands = "its parts", "its parts, with other labels or extras"
        yield Difference(f"{_name(place, then)}, {name}", str(was), str(stands))


def _name(place: int, message: Message) -> str:
    return f"message {place + 1} ({message.id}, {message.role})"


def shown(message: Message) -> str:
    """What a message says, for a person to read; what is secret as a mark."""
    lines = []
    for part in message.content:
        if judge(message, part) == "secret":
            lines.append(token("secret"))
        elif isinstance(part, Text | Refusal):
            lines.append(part.text)
        elif isinstance(part, ToolCall):
            lines.append(f"{part.name}({part.arguments})")
        else:
            lines.append(f"<{type(part).__name__.lower()}>" if type(part) is not Reasoning else f"<{part.text}>")
    text = "\n".join(lines)
    return text if len(text) <= _CUT else f"{text[:_CUT]}… ({len(text)} characters)"


def of_notes(then: Sequence[Note], now: Sequence[Note]) -> Iterator[Difference]:
    """What differs between the notes beside a history."""
    for label in dict.fromkeys([note.label for note in (*then, *now)]):
        sides = [[note for note in each if note.label == label] for each in (then, now)]
        for was, stands in zip_longest(*sides):
            if was == stands:
                continue
            shown_then, shown_now = _shown_note(was), _shown_note(stands)
            if was and stands and was.text == stands.text:
                yield Difference(f"note {label}, sensitivity", str(was.sensitivity), str(stands.sensitivity))
            else:
                yield Difference(f"note {label}", shown_then, shown_now)


def _shown_note(note: Note | None) -> str:
    if note is None:
        return ""
    return token("secret") if note.sensitivity == "secret" else note.text


def told(differences: Sequence[Difference]) -> str:
    """Differences for a person to read, the first of them in full."""
    more = len(differences) - SHOWN
    lines = [str(each) for each in differences[:SHOWN]]
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)
