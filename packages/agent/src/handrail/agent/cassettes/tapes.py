"""The file of a cassette: a header, and a line of JSON for each recorded model call.

    {"kind":"header","format":"handrail-cassette","version":1}
    {"kind":"model_call","path":"desk","request":{…},"digest":"…","answer":{…},"usage":{…},"finish_reason":"stop"}

A call that failed has an `error` in place of its answer; one that was streamed has its `deltas`: `["text", text]`,
`["reasoning", text]`, or `["arguments", index, call id, name, text]`. Nothing of HTTP is in it: no header, no key.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from handrail.agent import errors
from handrail.agent.cassettes.questions import question_digest
from handrail.agent.errors import CassetteError, ModelError
from handrail.agent.models import ArgumentsDelta, ChatResponse, Delta, FinishReason, ReasoningDelta, TextDelta
from handrail.filters import Message
from handrail.sessions import Usage

FORMAT = "handrail-cassette"
VERSION = 1
WrittenDelta: TypeAlias = list[str | int]
_DELTAS: dict[str, type[Delta]] = {"text": TextDelta, "reasoning": ReasoningDelta, "arguments": ArgumentsDelta}
_FIELDS = ("status", "code", "kind", "partial", "retry_after", "retryable")


class Header(msgspec.Struct, frozen=True, tag_field="kind", tag="header"):
    """The first line."""

    format: str
    version: int


class Recording(msgspec.Struct, frozen=True, tag_field="kind", tag="model_call", omit_defaults=True):
    """A model call: the agent's path without the ids of calls, the request and its digest, and what came of it."""

    path: str
    request: dict[str, Any]
    digest: str
    answer: Message | None = None
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    deltas: tuple[WrittenDelta, ...] = ()
    error: dict[str, Any] | None = None

    def response(self) -> ChatResponse:
        """The recorded answer. Raises the recorded error, where the call failed."""
        if self.error is not None:
            raise _failed(self.error, self.usage)
        if self.answer is None:
            raise CassetteError("", "a recording with neither an answer nor an error")
        return ChatResponse(self.answer, self.usage, self.finish_reason)


def read_tape(path: Path) -> list[Recording]:
    """The recordings of a file. Raises `CassetteError` naming the line, and `OSError`."""
    lines = path.read_bytes().split(b"\n")
    _check_header(path, lines[0])
    return [_recording(path, number, line) for number, line in enumerate(lines[1:], 2) if line]


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise CassetteError(str(path), f", line 1: it is no cassette: {error}") from error
    if (header.format, header.version) != (FORMAT, VERSION):
        found = f"{header.format} version {header.version}"
        raise CassetteError(str(path), f", line 1: it is {found}, and {FORMAT} version {VERSION} is what is read here")


def _recording(path: Path, number: int, line: bytes) -> Recording:
    try:
        found = msgspec.json.decode(line, type=Recording)
    except (msgspec.DecodeError, ValueError) as error:
        raise CassetteError(str(path), f", line {number}: it is no recorded model call: {error}") from error
    where = f", line {number}: "
    if (found.answer is None) == (found.error is None):
        raise CassetteError(str(path), f"{where}a recording has either an answer or an error")
    if question_digest(found.request) != found.digest:
        raise CassetteError(str(path), f"{where}the request is not the one that its digest was made of; record it anew")
    try:
        read_deltas(found.deltas)
        if found.error is not None:
            _failed(found.error, found.usage)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CassetteError(str(path), f"{where}its deltas or its error cannot be read: {error}") from error
    return found


def write_tape(path: Path, recordings: Iterable[Recording]) -> None:
    """Writes a file that is there whole or not at all, in the place of one that was there. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    lines = [msgspec.json.encode(each) for each in (Header(FORMAT, VERSION), *recordings)]
    try:
        part.write_bytes(b"\n".join(lines) + b"\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def written_deltas(deltas: Iterable[Delta]) -> list[WrittenDelta]:
    """Deltas as they are written."""
    written: list[WrittenDelta] = []
    for each in deltas:
        if isinstance(each, ArgumentsDelta):
            written.append(["arguments", each.index, each.call_id, each.name, each.text])
        else:
            written.append(["text" if isinstance(each, TextDelta) else "reasoning", each.text])
    return written


def read_deltas(written: Sequence[WrittenDelta]) -> list[Delta]:
    """Deltas as they were. Raises `ValueError` or `TypeError` for what is none."""
    deltas: list[Delta] = []
    for kind, *rest in written:
        cls = _DELTAS.get(str(kind))
        if cls is None:
            raise ValueError(f"no delta is called {kind!r}")
        deltas.append(msgspec.convert(dict(zip(cls.__struct_fields__, rest, strict=True)), cls))
    return deltas


def written_error(error: ModelError) -> dict[str, Any]:
    """What is kept of a failed call: an error of somebody's own is written as the one of Handrail's that it is."""
    fields = {name: getattr(error, name) for name in _FIELDS}
    own = next(cls for cls in type(error).__mro__ if cls.__module__ == errors.__name__)
    return {"type": own.__name__, "message": str(error), **{k: v for k, v in fields.items() if v is not None}}


def _failed(told: dict[str, Any], spent: Usage) -> ModelError:
    cls = getattr(errors, str(told["type"]), None)
    if not (isinstance(cls, type) and issubclass(cls, ModelError)):
        raise ValueError(f"{told['type']} is no error of a model call")
    return cls(str(told["message"]), spent=spent, **{name: told[name] for name in _FIELDS if name in told})
