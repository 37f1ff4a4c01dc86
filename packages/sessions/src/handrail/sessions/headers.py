"""The header of a session: a new one, and whether a file has one of a version that can be read here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from handrail.filters.sources import Clock, IdSource
from handrail.sessions.codec import decode, encode, mended
from handrail.sessions.errors import (
    DamagedSession,
    HeaderTooLong,
    NotASession,
    PassphraseMissing,
    PassphraseNotNeeded,
    UnsupportedVersion,
)
from handrail.sessions.lines import ZEROS, chained
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.records import FORMAT, VERSION, Header, Origin, Unknown
from handrail.sessions.versions import migrated, readable_versions

if TYPE_CHECKING:
    from handrail.sessions.places import Where
    from handrail.sessions.vaults import Decode, Vault

WRITER = "handrail 0.1"
LONGEST = 1 << 20
"""How many bytes a header's line has at most."""
_START = b'{"prev":"%b","kind":"header",' % ZEROS.encode()


class _Claim(msgspec.Struct):
    kind: str = ""
    format: str = ""
    version: int = 0


def read_header(path: Where, file: BinaryIO) -> tuple[Header, int]:
    """The header in the first line, and the version that it was written in, from which it may have been migrated.
    Raises `NotASession`, `UnsupportedVersion` or `DamagedSession`."""
    file.seek(0)
    line = file.readline(LONGEST).rstrip(b"\n")
    try:
        claim = msgspec.json.decode(mended(line), type=_Claim)
    except (ValueError, RecursionError):
        raise NotASession(path, _beginning(line)) from None
    if (claim.kind, claim.format) != ("header", FORMAT):
        raise NotASession(path, _beginning(line))
    if claim.version not in readable_versions():
        raise UnsupportedVersion(path, claim.version, readable_versions())
    try:
        header = decode(migrated(line, claim.version))
    except ValueError as error:
        raise DamagedSession(path, 1, str(error)) from None
    if isinstance(header, Unknown) and header.record is not None:
        header = header.record
    if not isinstance(header, Header):
        raise DamagedSession(path, 1, "the header lacks fields, or holds values of another type")
    return header, claim.version


def new_header(
    path: Where,
    continues: str | None,
    clock: Clock | None,
    ids: IdSource | None,
    passphrase: Passphrase | None,
    origin: Origin | None = None,
) -> tuple[Header, Vault | None]:
    """The header of a new session, and with a passphrase its vault; `continues` is the head hash of the sealed session
    that it goes on from. Raises `HeaderTooLong` or `UnfitCipher`."""
    header = Header(
        format=FORMAT,
        version=VERSION,
        id=ids.next() if ids is not None else os.urandom(16).hex(),
        created_at=(clock or Clock())(),
        draft=True,
        writer=WRITER,
        continues=continues,
        origin=origin,
    )
    return ready_header(path, header, passphrase)


def ready_header(path: Where, header: Header, passphrase: Passphrase | None) -> tuple[Header, Vault | None]:
    """A header as it is written, and with a passphrase its vault. Raises `HeaderTooLong` or `UnfitCipher`."""
    vault = None
    if passphrase is not None:
        from handrail.sessions.vaults import Vault

        vault, header = Vault.create(path, header, passphrase)
    length = len(chained(ZEROS, 0, encode(header))) + 1
    if length > LONGEST:
        raise HeaderTooLong(path, length, LONGEST)
    return header, vault


def unlocked(path: Where, header: Header, version: int, passphrase: Passphrase | None, read: Decode) -> Vault | None:
    """The vault of a file with this header, and None for a plain one; `read` makes a record of the header's own text.

    Raises `PassphraseMissing`, `PassphraseNotNeeded`, or what `vaults.unlock` does.
    """
    cipher = header.cipher
    if cipher is None or passphrase is None:
        if cipher is not None:
            raise PassphraseMissing(path)
        if passphrase is not None:
            raise PassphraseNotNeeded(path)
        return None
    from handrail.sessions.vaults import unlock

    return unlock(path, header, cipher, version, passphrase, read)


def refuse_endless(path: Where, file: BinaryIO) -> None:
    """Raises `NotASession` where the first line is longer than any header, before anything else is read."""
    file.seek(0)
    line = file.readline(LONGEST + 1)
    if len(line) > LONGEST:
        raise NotASession(path, _beginning(line))


def refuse_foreign(path: Where, file: BinaryIO) -> None:
    """Raises `NotASession` for a file without a whole first line, unless that can be what a crash left of a header."""
    file.seek(0)
    start = file.read(len(_START)).rstrip(b"\0")
    if not _START.startswith(start):
        raise NotASession(path, _beginning(start))


def _beginning(line: bytes) -> str:
    import json

    if not line:
        return "an empty line"
    shown = json.dumps(line[:60].decode("utf-8", "replace"), ensure_ascii=False)
    return shown if len(line) <= 60 else f'{shown[:-1]}…"'
