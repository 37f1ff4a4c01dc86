"""What the two directions of the Chat Completions codec share: raw JSON in pieces, digits untouched."""

from typing import Final, TypeAlias

import msgspec

from handrail.sessions.errors import FormatError

PROVIDER: Final = "openai-chat"
LEGACY: Final = "function:"
"""What the ids of calls begin with that came as the old `function_call`, which has none."""
FILE: Final = "openai-file:"
"""What the address of a file begins with that the service knows by an id."""

Raws: TypeAlias = dict[str, bytes]
"""An object's fields, each value as its JSON text."""

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


def object_of(raw: bytes | str) -> Raws:
    """The fields of a JSON object. Raises `msgspec.DecodeError` for anything else."""
    return {name: bytes(value) for name, value in _decode_object(raw).items()}


def fields_of(raw: bytes, what: str) -> Raws:
    """The fields of a JSON object. Raises `FormatError` for anything else."""
    try:
        return object_of(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError("message", "an OpenAI chat message", f"{what} is no JSON object ({error})") from None


def list_of(raw: bytes) -> list[bytes]:
    """The items of a JSON list. Raises `msgspec.DecodeError` for anything else."""
    return [bytes(item) for item in _decode_list(raw)]


def text_of(raw: bytes | None) -> str | None:
    """The text, where the value is one."""
    return _decode_text(raw) if raw is not None and raw.startswith(b'"') else None


def compact(raw: bytes) -> str:
    """The JSON text without the white space between its tokens, every digit as it stood."""
    return msgspec.json.format(raw, indent=-1).decode()


def joined(fields: Raws, first: bytes = b"") -> bytes:
    """A JSON object of these fields, after the pieces in `first`."""
    pieces = [b"%b:%b" % (msgspec.json.encode(name), value) for name, value in fields.items()]
    return b"{%b}" % b",".join([first, *pieces] if first else pieces)
