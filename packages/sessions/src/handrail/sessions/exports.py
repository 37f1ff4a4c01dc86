"""Sealed copies: the lines of a session, and a footer that counts them and names the last one's hash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from handrail.sessions.codec import encode, unchained
from handrail.sessions.compressions import LONGEST_LINE, compressing, compression_for
from handrail.sessions.errors import (
    DamagedSession,
    LineTooLong,
    OutdatedSession,
    PassphraseNotNeeded,
)
from handrail.sessions.headers import ready_header
from handrail.sessions.lines import ZEROS, Progress, chained, follows, link
from handrail.sessions.making import making
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.places import Where
from handrail.sessions.reader import Reading
from handrail.sessions.records import VERSION, AnyRecord, Footer, Header, Unknown, Writable
from handrail.sessions.tails import batch_of
from handrail.sessions.tally import Tally, lines_by_kind

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.sessions.opening import Compression
    from handrail.sessions.vaults import Vault

_BROKEN = "it does not follow the line before it"


def write_sealed(
    source: Where,
    target: Path,
    progress: Progress | None,
    passphrase: Passphrase | None,
    compression: Compression | None,
) -> None:
    """See `handrail.sessions.export`."""
    reading, encrypts = opened(source, progress, passphrase)
    if reading.version != VERSION:
        raise OutdatedSession(reading.path, reading.version, VERSION)
    lines = rewritten(reading, passphrase, sealed=True) if encrypts else _copied(reading)
    write_new(target, lines, compression_for(target, compression))


def opened(source: Where, progress: Progress | None, passphrase: Passphrase | None) -> tuple[Reading, bool]:
    """A session to be copied, and whether the copy has to be encrypted: a passphrase for a plain session says so."""
    try:
        return Reading(source, progress, passphrase), False
    except PassphraseNotNeeded:
        return Reading(source, progress), True


def write_new(target: Path, lines: Iterable[bytes], compression: Compression | None) -> None:
    """Writes these lines to a new file, which is there whole or not at all. Raises `SessionExists`,
    `SessionConflict`, `LineTooLong` or `JournalFailed`, and what the lines raise."""
    with making(target) as copy, compressing(copy, compression) as stream:
        for number, line in enumerate(lines, 1):
            if compression is not None and len(line) > LONGEST_LINE:
                raise LineTooLong(target, number, len(line), LONGEST_LINE)
            stream.write(line + b"\n")


def _copied(reading: Reading) -> Iterator[bytes]:
    tally = Tally()
    for _, line, record in _linked(reading):
        tally.take(record)
        yield line
    if not reading.sealed:
        yield _footer(tally, reading.head, reading.vault)


def rewritten(reading: Reading, passphrase: Passphrase | None, *, sealed: bool) -> Iterator[bytes]:
    """The lines of a session in today's version, with a fresh chain, encrypted where there is a passphrase, and with a
    footer where it is to be `sealed`. Raises `DamagedSession`, `HeaderTooLong` or `UnfitCipher`."""
    plain = msgspec.structs.replace(reading.header, prev="", batch=0, cipher=None)
    header, vault = ready_header(reading.path, plain, passphrase)
    tally, head = Tally(), ZEROS
    for number, _, record in _linked(reading):
        if _is(record, Footer):
            continue
        body = _body(reading, number, header if number == 1 else record)
        if vault is not None and number > 1:
            body = encode(vault.record(number, head, body))
        line = chained(head, _batch(record), body)
        head = link(line)
        tally.take(record)
        yield line
    if sealed:
        yield _footer(tally, head, vault)


def _body(reading: Reading, number: int, record: Writable) -> bytes:
    try:
        return encode(unchained(record))
    except ValueError as error:
        raise DamagedSession(reading.path, number, str(error)) from None


def _batch(record: AnyRecord) -> int:
    return batch_of(record.line) if isinstance(record, Unknown) else record.batch


def _is(record: AnyRecord, kind: type[Footer] | type[Header]) -> bool:
    return isinstance(record.record if isinstance(record, Unknown) else record, kind)


def _footer(tally: Tally, head: str, vault: Vault | None) -> bytes:
    number = sum(tally.counts.values()) + 1
    footer = Footer(counts=lines_by_kind(tally.counts, encrypted=vault is not None), head=head)
    return chained(head, 0, encode(footer if vault is None else vault.footer(number, footer)))


def _linked(reading: Reading) -> Iterator[tuple[int, bytes, AnyRecord]]:
    head = ZEROS
    for number, _, line, record in reading.lines():
        if not follows(line, head, getattr(record, "prev", None)):
            raise DamagedSession(reading.path, number, _BROKEN)
        head = link(line)
        yield number, line, record


def to_go_on_from(reading: Reading, last: int | None = None) -> Iterator[Writable]:
    """A session's records, up to the line of this number if one is given, without what only its own file can have.
    Raises `DamagedSession` where a line is no record or does not follow the one before it."""
    for number, _, record in _linked(reading):
        if not (_is(record, Header) or _is(record, Footer)):
            try:
                yield unchained(record)
            except ValueError as error:
                raise DamagedSession(reading.path, number, str(error)) from None
        if number == last:
            return
