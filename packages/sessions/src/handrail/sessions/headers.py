"""Whether a file is a session of a version that can be read here."""

import json
from pathlib import Path
from typing import BinaryIO

import msgspec

from handrail.sessions.codec import decode, mended
from handrail.sessions.errors import DamagedSession, NotASession, UnsupportedVersion
from handrail.sessions.lines import ZEROS
from handrail.sessions.records import FORMAT, VERSION, Header, Unknown

LONGEST = 1 << 20
_START = b'{"prev":"%b","kind":"header",' % ZEROS.encode()


class _Claim(msgspec.Struct):
    kind: str = ""
    format: str = ""
    version: int = 0


def read_header(path: Path, file: BinaryIO) -> Header:
    """The header in the first line. Raises `NotASession`, `UnsupportedVersion` or `DamagedSession`."""
    file.seek(0)
    line = file.readline(LONGEST).rstrip(b"\n")
    try:
        claim = msgspec.json.decode(mended(line), type=_Claim)
    except (ValueError, RecursionError):
        raise NotASession(path, _beginning(line)) from None
    if (claim.kind, claim.format) != ("header", FORMAT):
        raise NotASession(path, _beginning(line))
    if claim.version != VERSION:
        raise UnsupportedVersion(path, claim.version, (VERSION,))
    header = decode(line)
    if isinstance(header, Unknown) and header.record is not None:
        header = header.record
    if not isinstance(header, Header):
        raise DamagedSession(path, 1, "the header lacks fields, or holds values of another type")
    return header


def refuse_foreign(path: Path, file: BinaryIO) -> None:
    """Raises `NotASession` for a file without a whole first line, unless that can be what a crash left of a header."""
    file.seek(0)
    start = file.read(len(_START)).rstrip(b"\0")
    if not _START.startswith(start):
        raise NotASession(path, _beginning(start))


def _beginning(line: bytes) -> str:
    if not line:
        return "an empty line"
    shown = json.dumps(line[:60].decode("utf-8", "replace"), ensure_ascii=False)
    return shown if len(line) <= 60 else f'{shown[:-1]}…"'
