"""The journal: a session file being written, one batch of records at a time.

`append` returns after write(2), so a process that is killed loses nothing that was acknowledged; `fsync` is about power
cuts. The file is locked while it is open here, and whole at every moment but the one of a write.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Literal, Self, TypeAlias

from handrail.filters.sources import Clock, IdSource
from handrail.sessions.codec import encode, encode_into, unchained
from handrail.sessions.errors import JournalClosed, JournalFailed, SessionConflict
from handrail.sessions.headers import new_header
from handrail.sessions.lines import ZEROS, link
from handrail.sessions.opening import open_locked, refuse_deleted, sync_folder
from handrail.sessions.owning import OpenFile, own
from handrail.sessions.passphrases import Passphrase, Secret, hidden
from handrail.sessions.places import Given, Place, Where, located
from handrail.sessions.records import Header, Origin, Writable
from handrail.sessions.resuming import resumed
from handrail.sessions.tails import TornTail

if TYPE_CHECKING:
    from handrail.sessions.vaults import Sealer, Vault

Fsync: TypeAlias = Literal["always", "turn", "never"]
_BATCH = 512
_KEPT = 1 << 16
"""The longest record, in bytes, whose memory is kept from one turn for the next."""
_COMMA = ord(",")
_write = os.write
_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """A session open for writing, in a file where no place says otherwise; made by `Journal.open` or `Journal.create`,
    and a context manager.

    `head` is the hash of the last line, `end` the byte after it, and `opened_at` the hash it had when it was opened;
    `recovered` says what was wrong with its end then. `failure` is what the disk said when it refused a record: from
    then on the journal takes no record more, as it would follow a gap; open it again to go on.
    """

    def __init__(self, path: Where, file: OpenFile | None, fsync: Fsync) -> None:
        from hashlib import sha256  # every line that is written is hashed, and no program needs it before

        self.path = path
        self.fsync: Fsync = fsync
        self.head = self.opened_at = ZEROS
        self.recovered: TornTail | None = None
        self.failure: OSError | None = None
        self._open_file = file
        self._file = -1 if file is None else file.fileno()
        self.end = 0
        self.writing: tuple[str, int] | None = None
        self.unsynced = False
        self._appending = False
        self._sealer: Sealer | None = None
        self._body = bytearray()
        self._sha256 = sha256
        own(self)

    @classmethod
    def open(
        cls,
        path: Given,
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        passphrase: Secret = None,
    ) -> Journal:
        """The journal at this path, made where there is none; a torn tail is cut and reported in `recovered`.

        `lock_timeout` is how many seconds to wait for another writer; `clock` and `ids` give time and id to a file
        that is made, `passphrase` opens an encrypted one or encrypts one that is made. Raises `SessionConflict`,
        `SealedSession`, `CompressedSession`, `NotASession`, `UnsupportedVersion`, `OutdatedSession`, `EncryptionError`,
        `DamagedSession`, `HeaderTooLong` or `JournalFailed`.
        """
        passphrase = hidden(passphrase)
        journal = cls._locked(located(path), fsync, lock_timeout)
        try:
            journal._take_up(passphrase)
            if not journal.end:
                journal._begin(*new_header(journal.path, None, clock, ids, passphrase))
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def create(
        cls,
        path: Given,
        *,
        continues: str | None = None,
        origin: Origin | None = None,
        fsync: Fsync = "turn",
        clock: Clock | None = None,
        ids: IdSource | None = None,
        passphrase: Secret = None,
        onto: int | None = None,
    ) -> Journal:
        """A new journal, encrypted where there is a passphrase; `continues` is the head hash of the session that it
        goes on from, `origin` where it forked. `onto` is an open file, empty and locked, that is to be at this path
        later on.

        Raises `SessionExists` where there is a file, `HeaderTooLong`, `EncryptionError` for a passphrase that is none,
        or `JournalFailed` where it cannot be made.
        """
        passphrase = hidden(passphrase)
        where = located(path)
        header, vault = new_header(where, continues, clock, ids, passphrase, origin)
        if onto is None:
            journal = cls._locked(where, fsync, 0.0, new=True)
        else:
            journal = cls(where, OpenFile(os.dup(onto), str(where)), fsync)
        try:
            journal._begin(header, vault)
        except BaseException:
            journal.close()
            raise
        return journal

    @classmethod
    def _locked(cls, path: Where, fsync: Fsync, timeout: float, *, new: bool = False) -> Journal:
        if isinstance(path, Place):
            return path.lock(fsync, timeout, new=new)
        return cls(path, open_locked(path, timeout, new=new), fsync)

    def _take_up(self, passphrase: Passphrase | None) -> None:
        if self._file >= 0 and not os.fstat(self._file).st_size:
            return  # a new file: there is nothing to look at
        with self.read_back() as file:
            found = resumed(self.path, file, passphrase)
        tail = found.tail
        self.recovered = tail.torn
        if tail.torn is not None:
            self.unsynced = True
        self.end = tail.end
        self.end_here(cut=tail.torn is not None)
        if not tail.terminated:
            self.write(b"\n", link(tail.last))
        self.head = self.opened_at = link(tail.last) if tail.last else ZEROS
        if found.vault is not None:
            self._sealer = found.vault.sealer(self.head, found.number)

    def _begin(self, header: Header, vault: Vault | None) -> None:
        self.append(header)
        if vault is not None:
            self._sealer = vault.sealer(self.head, 2)
        if self.fsync != "never":
            self.sync()
            self.sync_name()

    def append(self, *records: Writable) -> None:
        """Writes the records as one batch: after a crash all of them are there, or none.

        Raises `JournalFailed` where the disk refuses; the file then ends where it ended before, and every record after
        is refused too. Raises `SessionConflict` while another thread is at it.
        """
        self.append_all(records)

    def append_all(self, records: Sequence[Writable]) -> None:
        """The same, of records that are together already."""
        if self.writing is not None or self._appending:
            self._refuse_gap()
            self.settle()
        if records:
            self._appending = True
            try:
                head, body, lines = self.head, self._body, []
                seal = None if self._sealer is None else self._sealer.batch(head)
                batch = len(records) - 1
                for record in records:
                    if seal is not None:
                        body[:] = seal(head, record)
                    elif record.prev or record.batch:  # type: ignore[union-attr]  # an Unknown always has a `prev`
                        body[:] = encode(unchained(record))
                    else:
                        try:
                            encode_into(record, body)
                        except UnicodeEncodeError:
                            body[:] = encode(record)
                    # As `chained` does it, without a call and a copy for each record.
                    body[0] = _COMMA
                    line = (f'{{"prev":"{head}","batch":{batch}' if batch else f'{{"prev":"{head}"').encode() + body
                    head = self._sha256(line).hexdigest()
                    lines.append(line)
                    batch = -len(lines)
                lines.append(b"")
                self.write(b"\n".join(lines), head)
            except BaseException:
                self._body = bytearray()  # what could not be encoded may be of any size
                raise
            finally:
                self._appending = False
        if self.fsync == "always":
            self.sync()

    def write(self, data: bytes, head: str) -> None:
        size = len(data)
        end = self.end + size
        self.writing = head, end
        try:
            written = _write(self._file, data)
            while written < size:
                written += _write(self._file, data[written:])
        except OSError as error:
            self._undo(error)
        self.head, self.end, self.unsynced = head, end, True
        self.writing = None

    def _undo(self, error: OSError) -> None:
        if self.closed:
            self.writing = None
            raise JournalClosed(self.path) from None
        try:
            self.settle()
        except OSError as worse:
            error = worse
        raise self.failed(error) from error

    def failed(self, error: OSError) -> JournalFailed:
        self.failure = error
        # What is unsettled is looked at before the next write, which keeps the look at `failure` off the hot path.
        self.writing = self.writing or (self.head, self.end)
        return JournalFailed(self.path, None if isinstance(error, FileNotFoundError) else self.end, error)

    def _refuse_gap(self) -> None:
        self._refuse_meanwhile()
        if self.failure is not None:
            raise JournalFailed(self.path, self.end, self.failure)

    def _refuse_meanwhile(self) -> None:
        if self._appending:
            raise SessionConflict(self.path, 0.0, "another thread is writing to this session at this moment")

    def settle(self) -> None:
        # A write that failed or was interrupted (by Ctrl-C) has left all of its bytes, or has to leave none.
        if self.writing is None:
            return
        head, end = self.writing
        if os.fstat(self._file).st_size == end:
            self.head, self.end, self.unsynced = head, end, True
        else:
            self.end_here(cut=True)
        self.writing = None

    def sync(self) -> None:
        """Waits until everything written is on the disk, whatever the policy. Raises `JournalFailed`, also where a
        record was refused before."""
        if self._appending or self.failure is not None:
            self._refuse_gap()
        if self.writing is not None:
            self.settle()
        if self.unsynced:
            try:
                self.flush()
            except OSError as error:
                raise self.failed(error) from error
            self.unsynced = False

    def turn_end(self) -> None:
        """A turn has ended: synced, unless the policy is `never`. A failure that was told before is not told again.

        Raises `JournalFailed`, also where the file was deleted, or another put in its place, since it was written to.
        """
        if self.failure is not None:
            return
        if len(self._body) > _KEPT:
            self._body = bytearray()
        if self.fsync != "never":
            self.sync()
        elif self.unsynced:
            self.look()

    def before_effect(self) -> None:
        """Something outside is about to happen that the records speak of: synced, unless the policy is `never`. Raises
        `JournalFailed`, also where a record was refused before."""
        self._refuse_gap()
        if self.fsync != "never":
            self.sync()

    # A place overrides these, with `write`, `settle` and `closed`.
    def read_back(self) -> BinaryIO:
        return open(self._file, "rb", closefd=False)

    def end_here(self, *, cut: bool) -> None:
        if cut:
            os.ftruncate(self._file, self.end)
        os.lseek(self._file, self.end, os.SEEK_SET)

    def flush(self) -> None:
        _sync(self._file)
        refuse_deleted(self.path, self._file)

    def look(self) -> None:
        try:
            refuse_deleted(self.path, self._file)
        except OSError as error:
            raise self.failed(error) from error

    def sync_name(self) -> None:
        sync_folder(os.path.dirname(str(self.path)) or ".")

    def disown(self) -> None:
        if not self.closed:
            self.release()

    def release(self) -> None:
        # First what writes: the number of a file that is closed may soon be that of another.
        self._file = -1
        if self._open_file is not None:
            self._open_file.close()

    @property
    def closed(self) -> bool:
        """Whether the journal is closed."""
        return self._open_file is None or self._open_file.closed

    def close(self) -> None:
        """Syncs by the policy, and lets go of the file and its lock. Closing again does nothing."""
        if self.closed:
            return
        self._refuse_meanwhile()
        try:
            with suppress(OSError) if self.failure is not None else nullcontext():
                self.settle()
            self.turn_end()
        finally:
            self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def append_all(journal: Journal, records: Iterable[Writable]) -> None:
    """Writes any number of records, some hundreds at a time."""
    records = iter(records)
    while batch := list(islice(records, _BATCH)):
        journal.append(*batch)
