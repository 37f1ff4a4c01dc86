"""What can go wrong with sessions, journals and foreign transcripts.

HandrailError
└── SessionError                a session file, or what is asked of it, is not fit to use
    ├── SessionConflict         another writer has the file open
    │   └── SessionChanged      another writer has written since the session was read
    ├── SessionExists           a new session would overwrite a file
    ├── SealedSession           a sealed copy cannot be written to
    ├── JournalFailed           the disk refused a record; what was acknowledged before is whole
    ├── HeaderTooLong           a header that could not be read again
    ├── InvalidRecord           a record with a text that cannot stand in a line of a session
    ├── JournalClosed           a record for a journal that is closed
    ├── NotASession             a file that does not begin with a session's header
    ├── UnsupportedVersion      a session of a format version that is not known here
    ├── OutdatedSession         a session of an older format version: it can be read, and has to be migrated to go on
    ├── CompressedSession       a compressed export cannot be written to
    ├── LineTooLong             a line that a compressed export cannot hold
    ├── DamagedSession          a line in the middle that is no record, or does not fit what stands before it
    │   └── TamperedRecord      a record of an encrypted session that its passphrase did not write, or not there
    ├── EncryptionError         an encrypted session, and a passphrase that does not open it
    │   ├── PassphraseMissing   an encrypted session, and no passphrase
    │   ├── PassphraseNotNeeded a plain session, and a passphrase
    │   ├── WrongPassphrase     the session was encrypted with another one
    │   ├── EmptyPassphrase     a passphrase of no characters
    │   └── UnfitCipher         an encryption that is not known here, or that asks for too much
    ├── UnknownView             an agent that has no view in this session
    ├── ForkRefused             a session cannot be forked there
    ├── UnknownSession          a store holds no session of this id
    ├── UnknownStore            what is no store, or none that is possible here
    ├── UnsupportedStore        a store of a schema version that is not known here
    ├── StoreFailed             a store's database or disk refused, or is out of reach
    │   └── StoreBusy           others kept a store's database busy for too long
    └── FormatError             a foreign file that is not of the format asked for
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.filters.errors import HandrailError

if TYPE_CHECKING:
    from handrail.sessions.places import Where


class SessionError(HandrailError):
    """A session file, or what is asked of it, is not fit to use."""


class SessionConflict(SessionError):
    """Another writer has the session open."""

    def __init__(self, path: Where, waited: float, problem: str = "") -> None:
        self.path = path
        self.waited = waited
        open_elsewhere = f"another writer has this session open (waited {waited:g} s); close it, or raise lock_timeout"
        super().__init__(f"{path}: {problem or open_elsewhere}")


class SessionChanged(SessionConflict):
    """Another writer has written to the session since it was read."""

    def __init__(self, path: Where) -> None:
        super().__init__(path, 0.0, "another writer has written to this session since it was read; read it again")


class SessionExists(SessionError):
    """A new session would overwrite a file."""

    def __init__(self, path: Where) -> None:
        self.path = path
        what = "file" if isinstance(path, str | os.PathLike) else "session"
        super().__init__(f"{path}: there is a {what} already, and none is overwritten; choose another name")


class SealedSession(SessionError):
    """A sealed copy cannot be written to. `head` is the hash that a session which goes on from it names."""

    def __init__(self, path: Where, head: str) -> None:
        self.path = path
        self.head = head
        super().__init__(
            f"{path}: this is a sealed copy; to go on from it, Session.continue_from({str(path)!r}, new_path)"
        )


class JournalFailed(SessionError):
    """The disk refused a record, or the file itself (`size` is None then). Everything acknowledged before stands, and
    the file is whole up to byte `size`. The journal takes nothing more: what came next would follow a gap."""

    def __init__(self, path: Where, size: int | None, error: OSError) -> None:
        self.path = path
        self.size = size
        self.error = error
        reason = error.strerror or str(error)
        super().__init__(
            f"{path}: cannot be written to: {reason}"
            if size is None
            else f"{path}: {reason}; the journal is whole up to byte {size}, the last records are not in it"
        )


class HeaderTooLong(SessionError):
    """A header that could not be read again: its line would have `length` bytes, and a reader takes `longest`."""

    def __init__(self, path: Where, length: int, longest: int) -> None:
        self.path = path
        self.length = length
        self.longest = longest
        super().__init__(
            f"{path}: a header of {length} bytes, and {longest} are possible; give the session a shorter id, "
            "and a head hash of 64 digits to go on from"
        )


class JournalClosed(SessionError):
    """A record for a journal that is closed."""

    def __init__(self, path: Where) -> None:
        self.path = path
        super().__init__(f"{path}: this journal is closed; open it again to write")


class NotASession(SessionError):
    """A file that does not begin with a session's header. `found` says what it begins with, or where it is no regular
    file (`is_file` is False then) what it is."""

    def __init__(self, path: Where, found: str, *, is_file: bool = True) -> None:
        self.path = path
        self.found = found
        self.is_file = is_file
        begins = f"it begins with {found}; `handrail import` reads other transcripts"
        problem = begins if is_file else f"it is {found}, and a session is a regular file"
        super().__init__(f"{path}: not a Handrail session: {problem}")


class UnsupportedVersion(SessionError):
    """A session of a format version that is not known here."""

    def __init__(self, path: Where, found: int, supported: Sequence[int]) -> None:
        self.path = path
        self.found = found
        self.supported = tuple(supported)
        known = ", ".join(map(str, supported))
        super().__init__(f"{path}: written in session format version {found}; this Handrail reads version {known}")


class DamagedSession(SessionError):
    """A line that is no record, or does not fit what stands before it. Lines count from 1."""

    def __init__(self, path: Where, line: int, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(f"{path}, line {line}: {problem}")


class TamperedRecord(DamagedSession):
    """A record of an encrypted session that was not written there by who has the passphrase."""


class OutdatedSession(SessionError):
    """A session of an older format version. It can be read as it is; to be written to, or sealed, it is migrated."""

    def __init__(self, path: Where, found: int, today: int) -> None:
        self.path = path
        self.found = found
        self.today = today
        super().__init__(
            f"{path}: written in session format version {found}, and version {today} is what is written; "
            f"migrate it first: handrail migrate {path} -o NEW"
        )


class CompressedSession(SessionError):
    """A compressed export, which cannot be written to. `compression` is `gzip` or `zstd`."""

    def __init__(self, path: Where, compression: str) -> None:
        self.path = path
        self.compression = compression
        super().__init__(
            f"{path}: this is an export compressed with {compression}; "
            f"to go on from it, Session.continue_from({str(path)!r}, new_path)"
        )


class LineTooLong(SessionError):
    """A line of `length` bytes for a compressed export, of which a reader takes `longest`."""

    def __init__(self, path: Where, line: int, length: int, longest: int) -> None:
        self.path = path
        self.line = line
        self.length = length
        self.longest = longest
        super().__init__(
            f"{path}, line {line}: {length} bytes, and a compressed line has at most {longest}; export it plain"
        )


class EncryptionError(SessionError):
    """An encrypted session, and a passphrase that does not open it."""


class PassphraseMissing(EncryptionError):
    """An encrypted session, and no passphrase."""

    def __init__(self, path: Where) -> None:
        self.path = path
        super().__init__(f"{path}: this session is encrypted; pass its passphrase")


class PassphraseNotNeeded(EncryptionError):
    """A plain session, and a passphrase: whoever gave it takes the file for a secret, and anybody can read it."""

    def __init__(self, path: Where) -> None:
        self.path = path
        super().__init__(f"{path}: this session is not encrypted; leave the passphrase out, or export it with one")


class WrongPassphrase(EncryptionError):
    """The session was encrypted with another passphrase, or the parts of its header that its key is made of were
    changed."""

    def __init__(self, path: Where) -> None:
        self.path = path
        super().__init__(f"{path}: the passphrase is not that of this session, or the session's header was changed")


class EmptyPassphrase(EncryptionError):
    """A passphrase of no characters."""

    def __init__(self) -> None:
        super().__init__("the passphrase is empty, which protects nothing; leave it out, or give one")


class UnfitCipher(EncryptionError):
    """An encryption that is not known here, or that asks for more memory or time than is given."""

    def __init__(self, path: Where, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: cannot be decrypted here: {problem}")


class UnknownView(SessionError):
    """An agent that has no view in this session."""

    def __init__(self, agent: str | None, known: Sequence[str]) -> None:
        self.view = agent
        self.known = tuple(known)
        found = "no agent was named and several have a view" if agent is None else f"no agent here is called {agent!r}"
        super().__init__(f"{found}; possible: {', '.join(known) or 'none, the session holds no message'}")


class ForkRefused(SessionError):
    """A session cannot be forked there. `at` is the message asked for, `calls` are those without a result at that
    place, `nearest` the ids of the last message before and the first after it where it can be."""

    def __init__(self, path: Where, at: str | None, problem: str, calls: Sequence[str], nearest: Sequence[str]) -> None:
        self.path = path
        self.at = at
        self.calls = tuple(calls)
        self.nearest = tuple(nearest)
        place = "at its end" if at is None else f"at message {at!r}"
        possible = f"; possible near it: {', '.join(map(repr, nearest))}" if nearest else ""
        super().__init__(f"{path}: cannot be forked {place}: {problem}{possible}")


class UnknownSession(SessionError):
    """A store holds no session of this id, or no session can have it."""

    def __init__(self, store: str, id: str, problem: str = "there is no session of this id") -> None:
        self.store = store
        self.id = id
        super().__init__(f"{store}: {problem}: {id!r}")


class UnknownStore(SessionError):
    """What is no store, or none that is possible here. `known` are the ways to name one."""

    def __init__(self, problem: str, known: Sequence[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"{problem}; possible: {', '.join(known)}")


class UnsupportedStore(SessionError):
    """A store of a schema version that is not known here."""

    def __init__(self, store: str, found: int, supported: int) -> None:
        self.store = store
        self.found = found
        self.supported = supported
        super().__init__(f"{store}: written in store version {found}; this Handrail knows version {supported}")


class StoreFailed(SessionError, OSError):
    """A store's database or disk refused, or is out of reach. Nothing of what was asked for has happened, unless it was
    a write whose answer was lost; opening the session again tells. `problem` is what it said, without a password."""

    def __init__(self, store: str, problem: str) -> None:
        self.store = store
        self.problem = problem
        super().__init__(f"{store}: {problem}")


class StoreBusy(StoreFailed, TimeoutError):
    """Others kept a store's database busy for too long. Nothing of what was asked for has happened."""


class InvalidRecord(SessionError, ValueError):
    """A record with a text that cannot stand in a line of a session: `record` and `field` say where."""

    def __init__(self, record: str, field: str, wanted: str, text: bytes) -> None:
        self.record = record
        self.field = field
        super().__init__(f"{field} of {record} is {wanted}, not {text[:60].decode(errors='replace')!r}")


class FormatError(SessionError):
    """A foreign file that is not of the format asked for. `expected` is that format, `found` what the file is."""

    def __init__(self, source: str, expected: str, found: str) -> None:
        self.source = source
        self.expected = expected
        self.found = found
        super().__init__(f"{source}: not {expected}: {found}")
