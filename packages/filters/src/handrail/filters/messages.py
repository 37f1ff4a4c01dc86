"""Messages and their parts: what a conversation is made of.

A message is a frozen value with a role, a tuple of parts in the model's order, and an id. Its digest is SHA-256 over
its canonical JSON (RFC 8785) without `created_at`; a field at its default is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from handrail.filters.canonical import canonical_text
from handrail.filters.errors import InvalidMessage
from handrail.filters.fields import Once, Value
from handrail.filters.hashes import sha256

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Family: TypeAlias = Literal["tool", "reasoning", "other"]

_ascii = str.isascii
_set = msgspec.structs.force_setattr
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def whole(text: str) -> str:
    """The text with every lone surrogate replaced by U+FFFD; whole pairs and all else stay."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_OTHER_TYPES = {"pinned": bool, "is_error": bool, "synthetic": bool, "transfer": bool, "created_at": int}
_ONE_OF = {"role": frozenset(get_args(Role)), "family": frozenset(get_args(Family))}


def _mend(struct: msgspec.Struct) -> None:
    # A value of another type would be written down, and nobody could read it back: it is refused where it is made.
    nullable = _nullable(type(struct))
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if isinstance(value, str) and name not in _OTHER_TYPES:
            if name in _ONE_OF and value not in _ONE_OF[name]:
                raise InvalidMessage(type(struct).__name__, name, value, f"one of {', '.join(sorted(_ONE_OF[name]))}")
            if not value.isascii():
                _set(struct, name, whole(value))
        elif (
            name != "content"
            and type(value) is not _OTHER_TYPES.get(name)
            and (value is not None or name not in nullable)
        ):
            wanted = _OTHER_TYPES.get(name, str).__name__
            raise InvalidMessage(type(struct).__name__, name, value, f"{wanted}{' or None' * (name in nullable)}")


@cache
def _nullable(cls: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset([field.name for field in msgspec.structs.fields(cls) if field.default is None])


class _Part(
    Value,
    frozen=True,
    gc=False,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="kind",
    forbid_unknown_fields=True,
):
    def __post_init__(self) -> None:
        _mend(self)


class Text(_Part, frozen=True, tag="text"):
    """Words. `extra` is the JSON text of whatever else a provider put on the part."""

    text: str
    sensitivity: str | None = None
    extra: str | None = None

    def __post_init__(self) -> None:
        try:
            if self.sensitivity is None and self.extra is None and _ascii(self.text):
                return
        except TypeError:
            pass
        _mend(self)


class Reasoning(_Part, frozen=True, tag="reasoning"):
    """What a model thought. `data` is the provider's own JSON text (signature, encrypted content, id).

    It goes back to the `provider` that made it, inside one agent's loop, and nowhere else.
    """

    text: str = ""
    provider: str | None = None
    data: str | None = None
    sensitivity: str | None = None


class _Media(_Part, frozen=True):
    """Bytes by address (`url`) or inline (`data`, base64); `digest` is the SHA-256 of the bytes in hex."""

    url: str | None = None
    data: str | None = None
    media_type: str | None = None
    name: str | None = None
    digest: str | None = None
    sensitivity: str | None = None
    extra: str | None = None


class Image(_Media, frozen=True, tag="image"):
    """A picture."""


class Audio(_Media, frozen=True, tag="audio"):
    """A sound."""


class File(_Media, frozen=True, tag="file"):
    """A document of any other type."""


class ToolCall(_Part, frozen=True, tag="tool_call"):
    """A model's request to run a tool. `arguments` is JSON text, parsed when asked; empty means `{}`.

    `transfer` is set by the loop for handoff calls and never sent to a provider; `extra` is the JSON text of what
    else a provider put on the call.
    """

    id: str
    name: str
    arguments: str = ""
    transfer: bool = False
    sensitivity: str | None = None
    extra: str | None = None

    def __post_init__(self) -> None:
        try:
            plain = _ascii(self.arguments) and _ascii(self.name) and _ascii(self.id)
        except TypeError:
            plain = False
        if not plain or type(self.transfer) is not bool or self.sensitivity is not None or self.extra is not None:
            _mend(self)

    def parse(self) -> Any:
        """The arguments as Python values, whole numbers exact. Raises `ValueError` where the text is not JSON, or is
        nested or has numbers beyond what the interpreter reads."""
        text = self.arguments
        if not text or text.isspace():
            return {}
        import json

        try:
            return json.loads(text)
        except RecursionError as error:
            raise ValueError("the arguments are nested too deep") from error


class Refusal(_Part, frozen=True, tag="refusal"):
    """A model's words for not answering."""

    text: str
    sensitivity: str | None = None


class Opaque(_Part, frozen=True, tag="opaque"):
    """A provider's part that Handrail does not interpret; `data` is its JSON text.

    `family` says how filters treat it: `tool` (hosted tools), `reasoning` (also whatever the codec does not know, so
    that it stays in its agent's own loop), or `other`.
    """

    provider: str
    type: str
    data: str
    family: Family = "reasoning"
    sensitivity: str | None = None

    def __post_init__(self) -> None:
        _mend(self)
        if self.family == "reasoning":
            # A default is left out of the canonical form by identity, so an equal string must be the same one.
            _set(self, "family", "reasoning")


Media: TypeAlias = Image | Audio | File
Part: TypeAlias = Text | Reasoning | Image | Audio | File | ToolCall | Refusal | Opaque
_PARTS = frozenset(get_args(Part))
_ROLES = frozenset(get_args(Role))


class Message(Value, frozen=True, dict=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """One utterance of a conversation.

    `id` is empty until a run, an importer or the seal gives one; empty ids never count as equal. `agent` is who
    produced it; `created_at` is in milliseconds since 1970 (UTC); `pinned` survives windows and budgets. A tool result
    has `call_id`, and the tool's `name`; `synthetic` marks one that no tool gave.
    """

    role: Role
    content: tuple[Part, ...] = ()
    id: str = ""
    agent: str | None = None
    created_at: int | None = None
    sensitivity: str | None = None
    pinned: bool = False
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    synthetic: bool = False

    def __post_init__(self) -> None:
        content = self.content
        if type(content) is not tuple:
            content = _parts(content)
            _set(self, "content", content)
        for part in content:
            if type(part) not in _PARTS:
                raise InvalidMessage("Message", "content", part, "text and other parts")
        # Most messages have nothing to mend, and this is on the way of every one of them.
        try:
            if (
                self.sensitivity is None
                and self.role in _ROLES
                and _ascii(self.id)
                and (self.agent is None or _ascii(self.agent))
                and (self.created_at is None or type(self.created_at) is int)
                and (self.call_id is None or _ascii(self.call_id))
                and (self.name is None or _ascii(self.name))
                and (self.is_error is False or self.is_error is True)
                and (self.pinned is False or self.pinned is True)
                and (self.synthetic is False or self.synthetic is True)
            ):
                return
        except TypeError:
            pass
        _mend(self)

    @property
    def text(self) -> str:
        """The text parts, joined."""
        content = self.content
        if len(content) == 1 and type(content[0]) is Text:
            return content[0].text
        return "".join([part.text for part in content if type(part) is Text])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        content = self.content
        if len(content) == 1:
            return content if type(content[0]) is ToolCall else ()  # type: ignore[return-value]  # it holds one call
        return tuple([part for part in self.content if type(part) is ToolCall])

    def replace(self, **changes: Any) -> Message:
        """The same message with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)

    @Once
    def digest(self) -> bytes:
        """SHA-256 (32 bytes) over the canonical JSON without `created_at`."""
        return sha256(canonical_json(self)).digest()


def named(message: Message, message_id: str, agent: str, at: int) -> Message:
    """The message with an id, a time and the name of the agent, which is printable; all else of it stays as it is, and
    need not be looked at once more."""
    if type(at) is not int or type(message_id) is not str or not _ascii(message_id):
        return msgspec.structs.replace(message, id=message_id, agent=agent, created_at=at)
    own: Message = message.__copy__()  # type: ignore[attr-defined]  # every Struct has it
    _set(own, "id", message_id)
    _set(own, "agent", agent)
    _set(own, "created_at", at)
    return own


def canonical_json(message: Message) -> bytes:
    """The canonical JSON (RFC 8785) of a message without `created_at`; call arguments in canonical form."""
    at = message.created_at
    if message.role == "assistant":
        for part in message.content:
            if type(part) is ToolCall and canonical_text(part.arguments) != part.arguments:
                content = tuple(map(_canonical_part, message.content))
                message = msgspec.structs.replace(message, content=content)
                break
    text = _encode_sorted(message)
    # Only the field itself reads like this: a quote within a text is escaped, and `role` always follows.
    return text if at is None else text.replace(b'"created_at":%d,' % at, b"", 1)


def _canonical_part(part: Part) -> Part:
    if type(part) is not ToolCall:
        return part
    return msgspec.structs.replace(part, arguments=canonical_text(part.arguments))


def is_empty(message: Message) -> bool:
    """Whether the message says nothing: no words, calls, media or hosted parts (reasoning is not content)."""
    for part in message.content:
        kind = type(part)
        if kind is ToolCall:
            return False
        if kind is Text or kind is Refusal:
            if part.text:  # type: ignore[union-attr]  # both have a text
                return False
        elif kind is not Reasoning and (kind is not Opaque or part.family != "reasoning"):  # type: ignore[union-attr]
            return False
    return True


def id_given_twice(messages: Iterable[Message]) -> str | None:
    """The first id that two of the messages have, or None; empty ids never count as equal."""
    seen: set[str] = set()
    for message in messages:
        if message.id in seen:
            return message.id
        if message.id:
            seen.add(message.id)
    return None


def without_calls(message: Message, *, transfers_only: bool) -> Message | None:
    """The message without its tool calls (or only its transfer calls), or None where that leaves it empty."""
    parts = [part for part in message.content if not (type(part) is ToolCall and (part.transfer or not transfers_only))]
    if not parts:
        return None
    left = msgspec.structs.replace(message, content=tuple(parts))
    return None if is_empty(left) else left


def digest(messages: Iterable[Message]) -> str:
    """SHA-256 in hex over the concatenated 32-byte digests of the messages."""
    return sha256(b"".join([message.digest for message in messages])).hexdigest()


def _parts(content: str | Part | Iterable[Part | str]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if isinstance(content, msgspec.Struct):
        return (content,)
    if not isinstance(content, Iterable):
        raise InvalidMessage("Message", "content", content, "text, a part, or parts")
    return tuple([Text(part) if isinstance(part, str) else part for part in content])


def system(content: str | Part | Iterable[Part | str], **fields: Any) -> Message:
    """A system message that the application puts into a conversation. `fields` are those of `Message`."""
    return Message("system", _parts(content), **fields)


def user(content: str | Part | Iterable[Part | str], **fields: Any) -> Message:
    """What the user said. `fields` are those of `Message`."""
    return Message("user", _parts(content), **fields)


def assistant(*content: str | Part | Iterable[Part | str], **fields: Any) -> Message:
    """What an agent said: text, tool calls and other parts, in order. `fields` are those of `Message`."""
    if len(content) == 1:
        return Message("assistant", _parts(content[0]), **fields)
    return Message("assistant", tuple([part for item in content for part in _parts(item)]), **fields)


def tool_result(call: ToolCall | str, content: str | Part | Iterable[Part | str], **fields: Any) -> Message:
    """The result of a call, given as the call or its id. `fields` are those of `Message`."""
    if isinstance(call, ToolCall):
        return Message("tool", _parts(content), call_id=call.id, name=call.name, **fields)
    return Message("tool", _parts(content), call_id=call, **fields)


def call(name: str, /, *, call_id: str = "", **arguments: Any) -> ToolCall:
    """A tool call with these arguments; without `call_id` the run gives it one."""
    import json

    return ToolCall(call_id, name, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")))


Messages: TypeAlias = Sequence[Message]
