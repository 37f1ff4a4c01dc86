"""Reading a session file record by record, in constant memory, without a lock and without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.sessions.codec import Forged
from handrail.sessions.errors import DamagedSession, NotASession, TamperedRecord
from handrail.sessions.headers import read_header, refuse_endless, refuse_foreign, unlocked
from handrail.sessions.lines import ZEROS, Progress, each_line, follows, link, prev_of
from handrail.sessions.opening import expanded, open_to_read
from handrail.sessions.passphrases import Passphrase, Secret, hidden
from handrail.sessions.places import Given, Where, located
from handrail.sessions.records import AnyRecord, Footer, Header, Record, Unknown
from handrail.sessions.tails import TornTail, find_tail, lines_backwards
from handrail.sessions.versions import decoder

if TYPE_CHECKING:
    from handrail.sessions.vaults import Decode

SECOND_HEADER = "a second header"
CHANGED = "the file was replaced, changed or cut short while it was read"


class Reading:
    """A session file as it stood when it was opened to be read; iterating gives the line number (from 1), the offset
    in bytes and the record of each line, and raises `DamagedSession` at one that is no record.

    `last` is the last line, `head` its hash, `end` the byte after it; `torn` says what a crash left after that (it is
    not read), `sealed` whether the file has its footer, `encrypted` whether it is encrypted, and `version` the version
    of the format that it was written in. `place` is where its lines are: they may have to be expanded first.
    """

    def __init__(
        self,
        path: Where,
        progress: Progress | None = None,
        passphrase: Passphrase | None = None,
        *,
        locked: bool = False,
    ) -> None:
        self.path = path
        self.progress = progress
        self.place = expanded(path)
        with open_to_read(self.place) as file:
            refuse_endless(path, file)
            tail = find_tail(file)
            if not tail.end:
                refuse_foreign(path, file)
                raise NotASession(path, "nothing" if tail.torn is None else "a header that was not written to its end")
            self.header, self.version = read_header(path, file)
        self.end = tail.end
        self.last = tail.last
        self.head = link(tail.last)
        self.torn: TornTail | None = tail.torn
        self.sealed = tail.last.startswith(b'{"prev":"') and tail.last[74:91] == b',"kind":"footer",'
        self.encrypted = self.header.cipher is not None
        self._read = decoder(self.version)
        # Who says that it may stay locked looks at the lines alone.
        stays_locked = locked and passphrase is None
        self.vault = None if stays_locked else unlocked(path, self.header, self.version, passphrase, self._read)

    def __iter__(self) -> Iterator[tuple[int, int, AnyRecord]]:
        return ((number, offset, record) for number, offset, _, record in self.lines())

    def lines(self) -> Iterator[tuple[int, int, bytes, AnyRecord]]:
        """Line number, offset, the line itself without its newline, and its record."""
        footer, number, line, head = False, 0, b"", ZEROS
        decode = self.in_order()
        with open_to_read(self.place, 1 << 16) as file:
            for number, offset, line in each_line(file, self.end, self.progress):
                try:
                    record = decode(line)
                except Forged as error:
                    raise TamperedRecord(self.path, number, str(error)) from None
                except ValueError as error:
                    raise DamagedSession(self.path, number, str(error)) from None
                if footer:
                    raise DamagedSession(self.path, number, "a record after the footer")
                kind = type(record if type(record) is not Unknown else record.record)
                if kind is Header and number > 1:
                    raise DamagedSession(self.path, number, SECOND_HEADER)
                footer = kind is Footer
                if self.vault is not None:
                    head = self._follow(number, line, head, record)
                yield number, offset, line, record
        if line != self.last:
            raise DamagedSession(self.path, number, CHANGED)

    def _follow(self, number: int, line: bytes, head: str, record: AnyRecord) -> str:
        # What is encrypted is bound to the line before it: whoever decrypts has to see that it stands there.
        if not follows(line, head, getattr(record, "prev", None)):
            raise TamperedRecord(self.path, number, "it does not follow the line before it")
        return link(line)

    def in_order(self) -> Decode:
        """What makes records of the lines, called with one after the other from the first; raises `ValueError`, of
        which `Forged` for a line that does not decrypt."""
        return self._read if self.vault is None else self.vault.in_order(self._read)

    def decode(self, line: bytes) -> AnyRecord:
        """The record of a line that was read before."""
        return self._read(line) if self.vault is None else self.vault.decode(line, self._read)

    def backwards(self) -> Iterator[AnyRecord]:
        """The records from the last to the first; no more of the session is read than is asked for. Raises
        `DamagedSession` also where a line does not follow the one before it."""
        before = self.head
        with open_to_read(self.place) as file:
            for line in lines_backwards(file, self.end):
                try:
                    record = self.decode(line)
                    if link(line) != before:
                        raise Forged("the line after it does not follow it")
                    before = (record.prev if isinstance(record, Record) else "") or prev_of(line)
                    yield record
                except ValueError as error:
                    number = sum(1 for _ in each_line(file, file.tell())) or 1
                    broken = TamperedRecord if self.vault and isinstance(error, Forged) else DamagedSession
                    raise broken(self.path, number, str(error)) from None

    def records(self) -> Iterator[AnyRecord]:
        """The records alone."""
        return (record for _, _, _, record in self.lines())


def read(path: Given, *, progress: Progress | None = None, passphrase: Secret = None) -> Reading:
    """A session file, or the session at a place, to be read record by record.

    `progress` is called now and then with the bytes read so far; `passphrase` is that of an encrypted session. Raises
    `OSError` for a file that cannot be opened, `NotASession`, `UnsupportedVersion`, `EncryptionError` where the
    passphrase is missing, is another, or is not needed, or `DamagedSession` for a header or compressed data that is
    broken; what is torn at the end is left out and told in `torn`.

    >>> for number, offset, record in read("run.jsonl"):  # doctest: +SKIP
    ...     print(number, record)
    """
    passphrase = hidden(passphrase)
    return Reading(located(path), progress, passphrase)
