"""Transcripts that other tools wrote: into sessions, and out of them.

A format is a value with a name that reads a file's bytes into transcripts and writes messages as that format's bytes.
Importing does not repair: a transcript is kept as it was, with what breaks the transcript laws listed beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from handrail.filters.messages import Message
from handrail.filters.repairs import breaches
from handrail.filters.sources import Clock, IdSource
from handrail.sessions.errors import FormatError, JournalFailed, SessionExists
from handrail.sessions.passphrases import Passphrase, Secret, hidden
from handrail.sessions.paths import is_top, top_path
from handrail.sessions.places import Given
from handrail.sessions.reader import read
from handrail.sessions.records import AgentRecord, AnyRecord, MessageRecord, SessionRecord, ToolResultRecord
from handrail.sessions.views import Views, history_of
from handrail.sessions.writer import Journal, append_all

if TYPE_CHECKING:
    from pathlib import Path


class Transcript(msgspec.Struct, frozen=True):
    """One conversation of a foreign file. `beside` is the JSON that stood beside its messages; `losses` says what could
    not be kept as it was, each kind with its count."""

    messages: tuple[Message, ...]
    beside: bytes = b"{}"
    losses: tuple[str, ...] = ()


class Exported(msgspec.Struct, frozen=True):
    """Messages in a foreign format (UTF-8), and what has no place in it, each kind with its count."""

    body: bytes
    losses: tuple[str, ...] = ()


class Format(Protocol):
    """A foreign format."""

    @property
    def name(self) -> str:
        """The name by which it is chosen, and which a session imported from it keeps as its source."""
        ...

    def parse(self, data: bytes, source: str) -> Sequence[Transcript]:
        """The transcripts in a file's bytes; `source` names the file. Messages need no id, and no agent.

        Raises `FormatError`, saying what the file is where that can be told.
        """
        ...

    def write(self, messages: Sequence[Message], about: SessionRecord | None) -> Exported:
        """The messages in this format; where `about` holds what stood beside them, in the document they came from."""
        ...


_formats: dict[str, Format] = {}


def register(format: Format) -> Format:
    """Makes a format known by its name."""
    _formats[format.name] = format
    return format


def known_formats() -> Mapping[str, Format]:
    """Every format by its name: those that come with this package, and others that were registered."""
    import handrail.sessions.formats  # noqa: F401  # each registers itself

    return _formats


def format_named(name: str) -> Format:
    """The format of this name. Raises `FormatError`, naming those there are."""
    known = known_formats()
    if name not in known:
        raise FormatError(name, "a known format", f"known: {', '.join(sorted(known))}")
    return known[name]


def parse_file(path: str | os.PathLike[str], *, format: str | None = None) -> tuple[Format, Sequence[Transcript]]:
    """The format of a foreign file, detected unless given by its name, and the transcripts in it.

    Raises `FormatError` where no format, or not the one given, is that of the file, and `OSError` where there is none.
    """
    from pathlib import Path

    data = Path(path).read_bytes()
    refusals: list[FormatError] = []
    for known in [format_named(format)] if format is not None else known_formats().values():
        try:
            return known, known.parse(data, str(path))
        except FormatError as error:
            refusals.append(error)
    if len(refusals) == 1:
        raise refusals[0]
    raise FormatError(str(path), " or ".join([error.expected for error in refusals]), refusals[0].found)


def identified(messages: Iterable[Message], agent: str) -> tuple[Message, ...]:
    """The messages of a transcript with ids, made from place and content, and with `agent` as whoever answered."""
    made: list[Message] = []
    for number, message in enumerate(messages, 1):
        if message.role == "assistant" and message.agent is None:
            message = message.replace(agent=agent)
        made.append(message.replace(id=message.id or f"i{number}-{message.digest.hex()[:12]}"))
    return tuple(made)


def import_file(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    agent: str = "assistant",
    format: str | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    passphrase: Secret = None,
) -> list[Path]:
    """Writes the transcript of a foreign file as the session file `target`; several as a folder of session files.

    Where `target` is a folder, a file in it is called `NAME.session.jsonl`, or `NAME-1.session.jsonl` and so on, after
    the foreign file. `agent` is the name of whoever answers in it; a passphrase encrypts what is written. Returns the
    paths written. Raises `FormatError`,
    `SessionExists`, `SessionConflict` or `JournalFailed`; nothing is written where the file cannot be read whole.
    """
    from pathlib import Path

    passphrase = hidden(passphrase)
    known, transcripts = parse_file(path, format=format)
    targets = _targets(Path(path), Path(target), len(transcripts))
    for each in targets:
        if each.exists():
            raise SessionExists(each)
    for transcript, each in zip(transcripts, targets, strict=True):
        _write(each, records_of(transcript, agent, known.name), clock, ids, passphrase)
    return targets


def _targets(path: Path, target: Path, count: int) -> list[Path]:
    if count == 1:
        return [target / f"{path.stem}.session.jsonl" if target.is_dir() else target]
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JournalFailed(target, None, error) from error
    return [target / f"{path.stem}-{number:0{len(str(count))}}.session.jsonl" for number in range(1, count + 1)]


def _write(
    target: Path,
    records: Iterable[AnyRecord],
    clock: Clock | None,
    ids: IdSource | None,
    passphrase: Passphrase | None,
) -> None:
    from handrail.sessions.making import making

    with (
        making(target) as copy,
        Journal.create(
            target, fsync="never", clock=clock, ids=ids, passphrase=passphrase, onto=copy.fileno()
        ) as journal,
    ):
        append_all(journal, records)


def records_of(transcript: Transcript, agent: str, source: str) -> Iterator[AnyRecord]:
    """A transcript as the records of a session; `agent` answers in it, `source` is the name of its format."""
    messages = identified(transcript.messages, agent)
    yield SessionRecord(
        source=source,
        beside=msgspec.Raw(transcript.beside),
        losses=transcript.losses,
        breaches=tuple(
            [f"{each.law}, message {each.place + 1} ({each.id}): {each.problem}" for each in breaches(messages)]
        ),
    )
    yield AgentRecord(name=agent)
    path = top_path(agent)
    waiting: list[str] = []
    for message in messages:
        if message.role != "tool":
            waiting = [call.id for call in reversed(message.tool_calls)] if message.role == "assistant" else []
        elif waiting and waiting[-1] == message.call_id:
            waiting.pop()
            yield ToolResultRecord(path=path, message=message)
            continue
        else:
            # A result out of its order stays where it was: what waits for results would put it elsewhere.
            waiting = []
        yield MessageRecord(path=path, message=message)


def export_to(path: Given, format: str, *, agent: str | None = None, passphrase: Secret = None) -> Exported:
    """A session in a foreign format: one agent's view (its name or path), or without a name all that was said at
    the level of the session, once.

    Raises `FormatError` for an unknown format, `UnknownView`, or what reading a session raises.
    """
    passphrase = hidden(passphrase)
    known = format_named(format)
    views, about, left_out = Views(), None, 0
    for record in read(path, passphrase=passphrase).records():
        if isinstance(record, SessionRecord):
            about = record
        elif agent is not None:
            views.take(record)
        elif isinstance(record, MessageRecord | ToolResultRecord):
            if is_top(record.path):
                views.take(msgspec.structs.replace(record, path=""))
            else:
                left_out += 1
    messages = history_of(views.now(), agent) if agent is not None else views.history("")
    exported = known.write(tuple(messages), about)
    before = [f"on import: {what}" for what in about.losses] if about is not None else []
    inner = [f"message of a sub-agent ({left_out})"] if left_out else []
    return Exported(exported.body, (*before, *exported.losses, *inner))


def to_openai_chat(messages: Iterable[Message]) -> Exported:
    """The messages as a Chat Completions message list, and what of them has no place in it.

    Ids are not counted as a loss, nor is the agent's name where only one agent speaks.

    >>> from handrail.filters import user
    >>> to_openai_chat([user("I was charged twice.", pinned=True)])
    Exported(body=b'[{"role":"user","content":"I was charged twice."}]', losses=('pinned mark (1)',))
    """
    from handrail.sessions import formats

    return formats.to_openai_chat(messages)
