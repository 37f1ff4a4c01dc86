"""A message as Chat Completions JSON, and what of it has no place there."""

from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from handrail.filters.messages import (
    Audio,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    whole,
)
from handrail.sessions.formats.openai_chat.wire import FILE, LEGACY, PROVIDER, Raws, joined, object_of, text_of
from handrail.sessions.interchange import Exported

_encode = msgspec.json.encode


def encode_message(message: Message) -> bytes:
    """The message as a Chat Completions JSON object. Call arguments go in as the text they are, unparsed.

    Reasoning and opaque parts of this format go back as they came; `losses` says what has no place in it.
    """
    content = message.content
    only = content[0] if len(content) == 1 and message.name is None and message.call_id is None else None
    if type(only) is Text and only.extra is None:
        return b'{"role":"%b","content":%b}' % (message.role.encode(), _encode(only.text))
    wire = _Wire(message)
    for part in content:
        wire.take(part)
    return wire.done()


class _Wire:
    """One message on its way out."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.role = _encode(message.role)
        self.content: list[bytes] = []
        self.plain: bytes | None = None
        self.refusal: bytes | None = None
        self.thoughts: list[str] = []
        self.calls: list[bytes] = []
        self.fields: Raws = {}

    def take(self, part: Part) -> None:
        """One part."""
        match part:
            case Text():
                extra, text = _fields(part.extra), _encode(part.text)
                self.plain = None if extra else text
                self.content.append(joined(extra, b'"type":"text","text":%b' % text))
            case Refusal():
                self.refusal = _encode(part.text)
                self.content.append(b'{"type":"refusal","refusal":%b}' % self.refusal)
            case Image():
                self.content.append(_image(part))
            case Audio():
                if (sound := _audio(part)) is not None:
                    self.content.append(sound)
                else:
                    self.take(Text(f"[audio: {part.url}]"))
            case File():
                if (file := _file(part)) is not None:
                    self.content.append(file)
                else:
                    self.take(Text(f"[file: {part.name or part.url}]"))
            case ToolCall():
                self._call(part)
            case Reasoning():
                self._thought(part)
            case Opaque():
                self._opaque(part)
            case _:
                assert_never(part)

    def _call(self, call: ToolCall) -> None:
        extra = _fields(call.extra)
        name = b'"name":%b' % _encode(call.name)
        function = name + b',"arguments":%b' % _encode(call.arguments or "{}")
        if call.id.startswith(LEGACY) and "function_call" in extra:
            self.fields["function_call"] = joined(_inner(extra, "function_call"), function)
            return
        if text_of(extra.get("type")) == "custom":
            inner = joined(_inner(extra, "custom"), name + b',"input":%b' % _encode(call.arguments))
            first = b'"id":%b,"custom":%b' % (_encode(call.id), inner)
        else:
            inner = joined(_inner(extra, "function"), function)
            first = b'"id":%b,"type":"function","function":%b' % (_encode(call.id), inner)
        self.calls.append(joined(extra, first))

    def _thought(self, part: Reasoning) -> None:
        if part.provider != PROVIDER:
            return
        if part.data is None:
            self.thoughts.append(part.text)
        else:
            self.fields |= _fields(part.data)

    def _opaque(self, part: Opaque) -> None:
        if part.provider != PROVIDER:
            return
        place, _, name = part.type.partition(".")
        data = part.data.encode()
        if place == "message" and name == "role":
            self.role = data
        elif place == "message" and name:
            self.fields[name] = data
        elif place == "tool_call":
            self.calls.append(data)
        else:
            self.content.append(data)

    def done(self) -> bytes:
        """The JSON object."""
        message = self.message
        pieces = [b'"role":' + self.role, b'"content":' + self._content()]
        if self._only_refusal() and self.refusal is not None:
            pieces.append(b'"refusal":' + self.refusal)
        if self.thoughts:
            pieces.append(b'"reasoning_content":' + _encode("\n".join(self.thoughts)))
        if self.calls:
            pieces.append(b'"tool_calls":[%b]' % b",".join(self.calls))
        if message.call_id is not None and self.role != b'"function"':
            pieces.append(b'"tool_call_id":' + _encode(whole(message.call_id)))
        if message.name is not None:
            pieces.append(b'"name":' + _encode(whole(message.name)))
        return joined(self.fields, b",".join(pieces))

    def _content(self) -> bytes:
        if not self.content:
            return b"null" if self.message.role == "assistant" else b'""'
        if len(self.content) == 1 and self.plain is not None:
            return self.plain
        return b"null" if self._only_refusal() else b"[%b]" % b",".join(self.content)

    def _only_refusal(self) -> bool:
        return self.refusal is not None and len(self.content) == 1 and self.message.role == "assistant"


def _fields(extra: str | None) -> Raws:
    try:
        return object_of(extra) if extra is not None else {}
    except (msgspec.DecodeError, RecursionError):
        return {}


def _inner(extra: Raws, name: str) -> Raws:
    raw = extra.pop(name, b"{}")
    return _fields(raw.decode())


def _image(part: Image) -> bytes:
    extra = _fields(part.extra)
    inner = _inner(extra, "image_url")
    if "detail" in extra:
        inner["detail"] = extra.pop("detail")
    url = _data_url(part.media_type or "image/png", part.data) if part.data is not None else part.url or ""
    return joined(extra, b'"type":"image_url","image_url":%b' % joined(inner, b'"url":%b' % _encode(url)))


def _audio(part: Audio) -> bytes | None:
    if part.data is None:
        return None
    extra = _fields(part.extra)
    form = (part.media_type or "audio/wav").partition("/")[2]
    sound = b'"data":%b,"format":%b' % (_encode(part.data), _encode(form))
    return joined(extra, b'"type":"input_audio","input_audio":%b' % joined(_inner(extra, "input_audio"), sound))


def _file(part: File) -> bytes | None:
    extra = _fields(part.extra)
    if part.data is not None:
        data = _data_url(part.media_type, part.data) if part.media_type is not None else part.data
        pointer = b'"file_data":%b' % _encode(data)
    elif part.url is not None and part.url.startswith(FILE):
        pointer = b'"file_id":%b' % _encode(part.url.removeprefix(FILE))
    else:
        return None
    if part.name is not None:
        pointer += b',"filename":%b' % _encode(part.name)
    return joined(extra, b'"type":"file","file":%b' % joined(_inner(extra, "file"), pointer))


def _data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def to_openai_chat(messages: Iterable[Message]) -> Exported:
    """See `handrail.sessions.to_openai_chat`."""
    messages = list(messages)
    lost: dict[str, int] = {}
    for message in messages:
        for what in losses(message):
            lost[what] = lost.get(what, 0) + 1
    speakers = [message.agent for message in messages if message.role == "assistant" and message.agent is not None]
    if len(set(speakers)) > 1:
        lost["name of the agent that spoke"] = len(speakers)
    body = b"[%b]" % b",".join([encode_message(message) for message in messages])
    return Exported(body, tuple([f"{what} ({count})" for what, count in lost.items()]))


def losses(message: Message) -> Iterator[str]:
    """What of one message has no place in this format, in a few words each."""
    if message.pinned:
        yield "pinned mark"
    if message.sensitivity is not None or any([part.sensitivity is not None for part in message.content]):
        yield "sensitivity label"
    if message.is_error:
        yield "error mark of a tool result"
    if message.synthetic:
        yield "mark of a result that no tool gave"
    if message.created_at is not None:
        yield "time"
    called = False
    for part in message.content:
        yield from _part_losses(part)
        called = called or type(part) is ToolCall
        if called and isinstance(part, Text | Image | Audio | File | Refusal):
            yield "place of what was said after a tool call"


def _part_losses(part: Part) -> Iterator[str]:
    extra = getattr(part, "extra", None)
    if extra is not None and not _fields(extra) and extra != "{}":
        yield "extra that is no JSON object"
    match part:
        case Reasoning() if part.provider != PROVIDER:
            yield f"reasoning of {part.provider or 'no named provider'}"
        case Opaque() if part.provider != PROVIDER:
            yield f"part {part.type} of {part.provider}"
        case Audio() if part.data is None:
            yield "sound by address"
        case File() if part.data is None and not (part.url or "").startswith(FILE):
            yield "file by address"
        case Image() | Audio() if part.name is not None:
            yield "file name of an image or a sound"
        case ToolCall() if part.transfer:
            yield "mark of a handoff call"
        case _:
            pass
