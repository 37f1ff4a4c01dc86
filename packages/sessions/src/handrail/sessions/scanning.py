"""What entries tell and searches find, read out of the sessions themselves where no database keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from handrail.sessions.codec import decode
from handrail.sessions.errors import EncryptionError, SessionError
from handrail.sessions.opening import open_to_read
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.places import Where
from handrail.sessions.reader import Reading
from handrail.sessions.records import MessageRecord, ToolResultRecord, Unknown
from handrail.sessions.searching import Found, Summary, folded, found, holds


class Scan:
    """One session's summary; it goes on from where it was when the session has grown."""

    def __init__(self) -> None:
        self.summary = Summary()
        self._seen = 0

    def to(self, where: Where, size: int) -> Summary:
        """The summary up to this byte; a line that is not whole is left out. Raises `OSError`."""
        if size < self._seen:
            self.summary, self._seen = Summary(), 0  # it was cut, or is another file
        if size > self._seen:
            with open_to_read(where, 1 << 16) as file:
                file.seek(self._seen)
                for line in file:
                    if self._seen + len(line) > size or not line.endswith(b"\n"):
                        break
                    self._seen += len(line)
                    self._take(line)
        return self.summary

    def _take(self, line: bytes) -> None:
        with suppress(ValueError):  # `verify` tells of it
            if not self.summary.encrypted:
                self.summary.take(decode(line.rstrip(b"\n")))


def scanned(id: str, where: Where, words: tuple[str, ...], passphrase: Passphrase | None = None) -> Iterator[Found]:
    """The messages of a session that hold all of these words, the last first; what cannot be read holds none. Raises
    `EncryptionError` for a session that the passphrase does not open."""
    try:
        for record in Reading(where, None, passphrase).backwards():
            known = record.record if isinstance(record, Unknown) else record
            if isinstance(known, MessageRecord | ToolResultRecord) and holds(folded(known.message.text), words):
                yield found(id, known, words)
    except EncryptionError:
        raise
    except (OSError, SessionError):
        return
