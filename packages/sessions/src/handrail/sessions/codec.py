"""A record as a line of JSON, and a line as a record.

Decoding is strict: a field that no record has, or a value of another type, is never dropped in silence. What the fast
decoder refuses is read once more with the standard library, which knows lone surrogates, NaN and numbers of any size;
a line that is JSON but no record known here is kept whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, get_args

import msgspec

from handrail.filters.messages import whole
from handrail.filters.patterns import lazy
from handrail.sessions.records import AnyRecord, Envelope, Known, Record, Unknown, Writable

_BY_KIND: dict[str, type[Record]] = {str(cls.__struct_config__.tag): cls for cls in get_args(Known)}
_encoder = msgspec.json.Encoder()
_encode = _encoder.encode
encode_into = _encoder.encode_into
"""Puts a known record, as `encode` gives it, in the place of what stands in a `bytearray`; raises `UnicodeEncodeError`
for one that holds half a surrogate pair."""
_ENVELOPES: dict[str, type[Record]] = {str(cls.__struct_config__.tag): cls for cls in get_args(Envelope)}

_CHAIN = frozenset({"prev", "batch"})
# As the writer puts them in front; the rest of the line stays as it is, whatever numbers are in it.
_LINK = lazy(rb'\A\{"prev":"[0-9a-f]*",(?:"batch":-?[0-9]+,)?')

# Every escape is matched, so that `\\ud800` (a backslash, then letters) is not taken for one.
_ESCAPE = lazy(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)


@cache
def _decoder() -> msgspec.json.Decoder[Known]:
    # To make it takes as long as to read a thousand records; a program that only writes needs none.
    return msgspec.json.Decoder(Known)


@cache
def _envelope_decoder() -> msgspec.json.Decoder[Envelope]:
    return msgspec.json.Decoder(Envelope)


class Forged(ValueError):
    """A line that was not written in its place by who has the passphrase."""


def encode(record: Writable) -> bytes:
    """The record as one line of JSON, without a newline; an `Unknown` as the bytes it was read from."""
    if type(record) is Unknown:
        return record.line
    try:
        return _encode(record)
    except UnicodeEncodeError:
        # Messages hold no half of a surrogate pair, but the text of an error may.
        return _encode(without_halves(record))


def without_halves(value: Any) -> Any:
    """The value with every half of a surrogate pair in its strings replaced by U+FFFD."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: without_halves(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    if isinstance(value, dict):
        return {without_halves(key): without_halves(item) for key, item in value.items()}
    return type(value)(map(without_halves, value)) if isinstance(value, list | tuple) else value


def decode(line: bytes) -> AnyRecord:
    """The record that a line holds, without its newline. Raises `ValueError` where the line is not a JSON object."""
    try:
        return _decoder().decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _second_try(line)


def _second_try(line: bytes) -> AnyRecord:
    fields = _fields(line)
    text = mended(line)
    try:
        return _decoder().decode(text)
    except (msgspec.DecodeError, RecursionError):
        kind = fields.get("kind")
        return Unknown(kind, line, _understood(kind, text)) if isinstance(kind, str) else Unknown("", line)


def _understood(kind: str, text: bytes) -> Known | None:
    if kind not in _BY_KIND:
        return None
    try:
        return _without_unknown(kind, text)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return None


def _without_unknown(kind: str, text: bytes) -> Known:
    """A record of a known kind, without the fields that are not known."""
    import json

    import msgspec.inspect

    known = _known_fields(json.loads(text), msgspec.inspect.type_info(_BY_KIND[kind]))
    return _decoder().decode(json.dumps(known).encode())


def decode_sound(line: bytes) -> AnyRecord:
    """The record that a line holds. Raises `ValueError` as `decode` does, and for what no version of this format
    writes: a line that names no kind, or a known kind with what its records do not hold."""
    try:
        return _decoder().decode(line)
    except (msgspec.DecodeError, RecursionError):
        record = _second_try(line)
    if type(record) is Unknown and record.record is None:
        if not record.kind:
            raise ValueError("it names no kind of record")
        if record.kind in _ENVELOPES.keys() - _BY_KIND.keys():
            raise ValueError("it is encrypted, and the header says nothing of that")
        if record.kind in _BY_KIND:
            raise ValueError(f"it is no {record.kind} record: {_why_not(record)}")
    return record


def decode_known(lines: Iterable[bytes]) -> list[Known] | None:
    """The records of these lines, as `decode_sound` gives each; None where one of them takes a second look."""
    try:
        return list(map(_decoder().decode, lines))
    except (msgspec.DecodeError, RecursionError):
        return None


def decode_envelope(line: bytes) -> Envelope:
    """What a line of an encrypted session is as it stands there. Raises `ValueError` for what is no record, and
    `Forged` for a clear one that is neither header nor footer."""
    try:
        return _envelope_decoder().decode(line)
    except (msgspec.DecodeError, RecursionError):
        kind = _fields(line).get("kind")
    if kind not in _ENVELOPES:
        raise Forged("it is a clear record in an encrypted session")
    try:
        import json

        from msgspec.inspect import type_info

        known = _known_fields(json.loads(mended(line)), type_info(_ENVELOPES[kind]))
        return _envelope_decoder().decode(json.dumps(known).encode())
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"it is no {kind} record: {str(error).partition(';')[0]}") from None


def _why_not(record: Unknown) -> str:
    try:
        _without_unknown(record.kind, mended(record.line))
    except RecursionError:
        return "it is nested too deeply"
    except (ValueError, msgspec.DecodeError) as error:
        return str(error).partition(";")[0]
    return "it changed while it was read"


def _known_fields(value: Any, expected: Any) -> Any:
    import msgspec.inspect as inspect

    match expected:
        case inspect.StructType() if isinstance(value, dict):
            fields = {field.encode_name: field.type for field in expected.fields}
            tags = {expected.tag_field: expected.tag} if expected.tag_field is not None else {}
            if any(value.get(name, tag) != tag for name, tag in tags.items()):
                return value
            known = {name: _known_fields(value[name], kind) for name, kind in fields.items() if name in value}
            return tags | known
        case inspect.VarTupleType() | inspect.ListType() if isinstance(value, list):
            return [_known_fields(item, expected.item_type) for item in value]
        case inspect.UnionType():
            for kind in expected.types:
                value = _known_fields(value, kind)
            return value
        case _:
            return value


def _fields(line: bytes) -> dict[str, Any]:
    import json

    try:
        fields = json.loads(line, parse_int=float)  # a whole number of any length
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 ({error.reason} at byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg} at character {error.pos + 1})") from error
    if not isinstance(fields, dict):
        raise ValueError(f"it is not a JSON object but {type(fields).__name__}")
    return fields


def mended(text: bytes) -> bytes:
    """The JSON text with every lone half of a surrogate pair, escaped or raw, replaced by U+FFFD."""
    if b"\\u" in text:
        text = _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)
    if text.isascii():
        return text
    return whole(text.decode("utf-8", "surrogatepass")).encode()


def unchained(record: Writable) -> Writable:
    """The record as if it had never been in a file: without the hash of a line before it and its place in a batch.
    Raises `ValueError` for an `Unknown` that is no JSON object."""
    if isinstance(record, Record):
        return msgspec.structs.replace(record, prev="", batch=0) if record.prev or record.batch else record
    line = _LINK.sub(b"{", record.line, count=1)
    if not (_fields(line).keys() & _CHAIN):
        return record if line == record.line else Unknown(record.kind, line)
    try:
        fields = msgspec.json.decode(mended(record.line), type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"its link cannot be taken out: {error}") from error
    left = {name: value for name, value in fields.items() if name not in _CHAIN}
    return Unknown(record.kind, msgspec.json.encode(left))
