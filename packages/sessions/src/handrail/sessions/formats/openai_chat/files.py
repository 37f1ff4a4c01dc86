"""Files of Chat Completions messages: a list, a request log, several transcripts, and JSON lines of each.

What stands beside the messages is kept with a mark in their place, `{"$handrail": ["messages", "0:8"]}` for a list of
the first eight, `{"$handrail": ["messages", "8"]}` for the ninth alone; so the document can be written again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from handrail.filters.messages import Message
from handrail.filters.patterns import lazy
from handrail.sessions.codec import mended
from handrail.sessions.errors import FormatError
from handrail.sessions.formats.openai_chat.decoding import ROLES, decode_message
from handrail.sessions.formats.openai_chat.encoding import encode_message, to_openai_chat
from handrail.sessions.formats.openai_chat.wire import compact, joined, list_of, object_of
from handrail.sessions.interchange import Exported, Transcript, register
from handrail.sessions.records import SessionRecord
from handrail.sessions.shapes import describe, describe_text, recognise

NAME: Final = "openai-chat"
_EXPECTED = "OpenAI Chat Completions messages"
_LISTS = ("messages", "traj")
_MARK = lazy(rb'\{"\$handrail":\["messages","(\d+)(?::(\d+))?"\]\}')
_IMPORTED = lazy(r"i\d+-[0-9a-f]{12}")


class OpenAIChat(msgspec.Struct, frozen=True):
    """The format of OpenAI Chat Completions message lists and of logs that hold them."""

    name: str = NAME

    def parse(self, data: bytes, source: str) -> Sequence[Transcript]:
        """The transcripts in the file. Raises `FormatError` saying what it is instead."""
        return _File(source).parse(data)

    def write(self, messages: Sequence[Message], about: SessionRecord | None) -> Exported:
        """The document that the messages were imported from; where the conversation went on, or was not imported
        from this format, their list."""
        exported = to_openai_chat(messages)
        beside = bytes(about.beside) if about is not None and about.source == NAME else b"{}"
        if beside == b"{}":
            return exported
        marked = [int(found[2] or int(found[1]) + 1) for found in _MARK.finditer(beside)]
        if max(marked, default=0) != len(messages) or not all([_IMPORTED.fullmatch(each.id) for each in messages]):
            lost = f"what stood beside the imported messages ({', '.join(object_of(beside))})"
            return Exported(exported.body, (*exported.losses, lost))
        wire = [encode_message(message) for message in messages]
        return Exported(_MARK.sub(lambda found: _filled(found, wire), beside), exported.losses)


def _filled(mark: re.Match[bytes], wire: list[bytes]) -> bytes:
    start = int(mark[1])
    return wire[start] if mark[2] is None else b"[%b]" % b",".join(wire[start : int(mark[2])])


register(OpenAIChat())


class _File:
    """One file while it is read."""

    def __init__(self, source: str) -> None:
        self.source = source

    def parse(self, data: bytes) -> list[Transcript]:
        """Its transcripts."""
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            text = mended(data)
        except UnicodeDecodeError as error:
            raise self._refused(f"text that is not UTF-8 (byte {error.start})") from None
        notes: Counter[str] = Counter()
        if text != data:
            notes["half of a surrogate pair written as U+FFFD"] += 1
        values = self._values(text, notes)
        if all([_is_message(value) for value in values]):
            return [self._transcript(values, b"{}", notes)]
        if (known := recognise([_loose(value) for value in values])) is not None:
            raise self._refused(known)
        if len(values) > 1 and _is_message(values[0]):
            raise self._refused(f"a list of messages of which {_first_fault(values)}")
        return [self._document(value, notes.copy()) for value in values]

    def _refused(self, found: str) -> FormatError:
        return FormatError(self.source, _EXPECTED, found)

    def _values(self, text: bytes, notes: Counter[str]) -> list[bytes]:
        """The items of the list that the file is, its lines where it is JSON lines, or the one object."""
        try:
            whole = bytes(msgspec.json.decode(text, type=msgspec.Raw)).strip()
        except (msgspec.DecodeError, RecursionError):
            return self._lines(text, notes)
        if whole.startswith(b"["):
            values = list_of(whole)
            if values:
                return values
        elif whole.startswith(b"{"):
            return [whole]
        raise self._refused(describe(msgspec.json.decode(whole)))

    def _lines(self, text: bytes, notes: Counter[str]) -> list[bytes]:
        values: list[bytes] = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                values.append(bytes(msgspec.json.decode(line, type=msgspec.Raw)).strip())
            except (msgspec.DecodeError, RecursionError) as error:
                if not values:
                    raise self._refused(describe_text(text.decode())) from None
                raise self._refused(f"JSON lines of which line {number} is broken ({error})") from None
        if not values:
            raise self._refused("an empty file")
        notes["JSON lines written as JSON"] += 1
        return values

    def _document(self, value: bytes, notes: Counter[str]) -> Transcript:
        """The transcript of an object that holds a message list, and the answer to it where there is one."""
        if not value.startswith(b"{"):
            raise self._refused(describe(_loose(value)))
        fields = object_of(value)
        name = next((name for name in _LISTS if fields.get(name, b"").startswith(b"[")), None)
        messages = list_of(fields[name]) if name is not None else []
        if name is None or not messages or not all([_is_message(each) for each in messages]):
            raise self._refused(_why(_loose(value), name, messages))
        fields[name] = _mark(f"0:{len(messages)}")
        if (answer := _take_answer(fields, len(messages))) is not None:
            messages.append(answer)
        return self._transcript(messages, compact(joined(fields)).encode(), notes)

    def _transcript(self, messages: list[bytes], beside: bytes, notes: Counter[str]) -> Transcript:
        def notice(what: str) -> None:
            notes[what] += 1

        if (known := recognise([_loose(message) for message in messages])) is not None:
            raise self._refused(known)
        decoded = tuple([decode_message(message, notice) for message in messages])
        return Transcript(decoded, beside, tuple([f"{what} ({count})" for what, count in notes.items()]))


def _mark(places: str) -> bytes:
    return b'{"$handrail":["messages","%b"]}' % places.encode()


def _loose(value: bytes) -> Any:
    return json.loads(value, parse_int=str)


def _has_role(fields: dict[str, Any]) -> bool:
    role = fields.get("role")
    return isinstance(role, str) and role in ROLES


def _is_message(value: bytes) -> bool:
    if not value.startswith(b"{"):
        return False
    fields = _loose(value)
    if not _has_role(fields):
        return False
    if not isinstance(fields.get("content"), str | list | None):
        return False
    return "content" in fields or (
        fields["role"] == "assistant" and bool({"tool_calls", "function_call"} & set(fields))
    )


def _why(value: Any, name: str | None, messages: Sequence[bytes]) -> str:
    if name is None:
        return describe(value)
    if not messages:
        return f"an object whose list of {name} is empty"
    return f"an object whose {name} are not all chat messages: {_first_fault(messages)}"


def _first_fault(messages: Iterable[bytes]) -> str:
    number, message = next((number, each) for number, each in enumerate(messages, 1) if not _is_message(each))
    fields = _loose(message)
    if not isinstance(fields, dict) or "role" not in fields:
        return f"number {number} is {describe(fields)}"
    if not _has_role(fields):
        return f"number {number} has the role {str(fields['role'])[:60]!r}; possible: {', '.join(ROLES)}"
    if "content" in fields:
        return f"number {number} has content that is neither a text nor a list"
    return f"number {number} has no content and no tool calls"


def _take_answer(fields: dict[str, bytes], place: int) -> bytes | None:
    """The answer in `response.choices[0].message`, with a mark left in its place."""
    if not fields.get("response", b"").startswith(b"{"):
        return None
    response = object_of(fields["response"])
    choices = list_of(response["choices"]) if response.get("choices", b"").startswith(b"[") else []
    if not choices or not choices[0].startswith(b"{"):
        return None
    choice = object_of(choices[0])
    answer = choice.get("message", b"")
    if not _is_message(answer):
        return None
    choice["message"] = _mark(str(place))
    response["choices"] = b"[%b]" % b",".join([joined(choice), *choices[1:]])
    fields["response"] = joined(response)
    return answer
