"""Taking up a session to write on: what stands there, where it ends, and that it may be gone on with at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import msgspec

from handrail.sessions.codec import Forged, decode_sound
from handrail.sessions.errors import CompressedSession, DamagedSession, OutdatedSession, SealedSession, TamperedRecord
from handrail.sessions.headers import read_header, refuse_endless, refuse_foreign, unlocked
from handrail.sessions.lines import each_line, link
from handrail.sessions.opening import compression_of
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.places import Where
from handrail.sessions.records import VERSION, EncryptedRecord, Footer, Header, Writable
from handrail.sessions.tails import Tail, find_tail

if TYPE_CHECKING:
    from handrail.sessions.vaults import Vault


class Resumed(msgspec.Struct, frozen=True):
    """The end of a session, and of an encrypted one its vault and the number of the line that comes next."""

    tail: Tail
    vault: Vault | None = None
    number: int = 1


def resumed(path: Where, file: BinaryIO, passphrase: Passphrase | None) -> Resumed:
    """Looks at a session that is open and locked, and changes nothing. Its tail ends at 0 where nothing whole is there.

    Raises `NotASession`, `CompressedSession`, `SealedSession`, `UnsupportedVersion`, `OutdatedSession`,
    `EncryptionError` or `DamagedSession`.
    """
    if (compression := compression_of(file)) is not None:
        raise CompressedSession(path, compression)
    refuse_endless(path, file)
    tail = find_tail(file)
    if not tail.end:
        if tail.torn is not None:
            refuse_foreign(path, file)
        return Resumed(tail)
    vault = _unlocked(path, *read_header(path, file), passphrase)
    last = _last(path, file, tail, vault)
    if isinstance(last, Footer):
        raise SealedSession(path, link(tail.last))
    return Resumed(tail, vault, last.number + 1 if isinstance(last, EncryptedRecord) else 2)


def _unlocked(path: Where, header: Header, version: int, passphrase: Passphrase | None) -> Vault | None:
    if version != VERSION:
        raise OutdatedSession(path, version, VERSION)
    return unlocked(path, header, version, passphrase, decode_sound)


def _last(path: Where, file: BinaryIO, tail: Tail, vault: Vault | None) -> Writable:
    try:
        return decode_sound(tail.last) if vault is None else vault.envelope(tail.last)
    except ValueError as error:
        number = sum(1 for _ in each_line(file, tail.end))
        if isinstance(error, Forged):
            raise TamperedRecord(path, number, str(error)) from None
        raise DamagedSession(path, number, f"{error}; it has its newline, so no crash left it") from None
