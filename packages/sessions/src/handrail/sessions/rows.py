"""A session kept as rows, a line each: how they show themselves as one run of bytes, and as a journal.

A row is the offset of a line's first byte and the line without its newline, so that offsets mean what they mean in a
file.
"""

from __future__ import annotations

import errno
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

from handrail.sessions.errors import JournalClosed, JournalFailed, SessionChanged, SessionConflict, SessionExists
from handrail.sessions.places import Place
from handrail.sessions.writer import Fsync, Journal

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Row: TypeAlias = tuple[int, bytes]
Release: TypeAlias = Callable[[], None]


class Rows(ABC):
    """The rows of one session, where a store keeps them. What goes wrong with it is an `OSError`."""

    @abstractmethod
    def size(self) -> int:
        """How many bytes there are; none where there is no such session."""

    @abstractmethod
    def head(self) -> str:
        """The hash of the last line; 64 zeros where there is none."""

    @abstractmethod
    def since(self, offset: int, span: int) -> Sequence[Row]:
        """The row that holds this byte, and those that begin within so many bytes after it."""

    @abstractmethod
    def write(self, before: str, rows: Sequence[Row], head: str, end: int, *, durable: bool) -> bool:
        """Adds all of these rows or none, and says whether the head was still `before`. Raises `TimeoutError` where the
        store is busy with others; nothing has happened then."""

    @abstractmethod
    def flush(self) -> None:
        """Waits until everything written is on the disk."""

    @abstractmethod
    def settled(self) -> None:
        """A turn has ended: what is looked up in the session's rows may be taken out of them."""

    @abstractmethod
    def hold(self, timeout: float) -> Release | None:
        """Keeps other writers away, in every process, until what is given is called; None where one was there for so
        many seconds. A process that is killed holds nothing."""


class RowPlace(Place):
    """The place of a session that is kept as rows, under the name that errors call it."""

    def __init__(self, rows: Rows, name: str) -> None:
        self.rows = rows
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<session {self.name}>"

    def exists(self) -> bool:
        return self.rows.size() > 0

    def open_to_read(self, buffering: int = -1) -> BinaryIO:
        size = self.rows.size()
        if not size:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name)
        return _opened(self.rows, size, buffering)

    def lock(self, fsync: Fsync, timeout: float, *, new: bool) -> Journal:
        try:
            release = self.rows.hold(timeout)
        except OSError as error:
            raise JournalFailed(self, None, error) from error
        if release is None:
            raise SessionConflict(self, timeout)
        try:
            if new and self.exists():
                raise SessionExists(self)
        except BaseException:
            release()
            raise
        return RowJournal(self, fsync, release)


class RowJournal(Journal):
    """A journal over rows. Each batch is one transaction that looks whether the head is still its own: another writer
    that got past the lock cannot be written over."""

    def __init__(self, place: RowPlace, fsync: Fsync, release: Release) -> None:
        super().__init__(place, None, fsync)
        self._rows = place.rows
        self._held: Release | None = release

    def read_back(self) -> BinaryIO:
        try:
            return _opened(self._rows, self._rows.size(), -1)
        except OSError as error:
            raise JournalFailed(self.path, None, error) from error

    def end_here(self, *, cut: bool) -> None:
        if cut:  # no crash does this to a database
            raise self.failed(OSError(errno.EIO, "rows are missing at its end"))

    def write(self, data: bytes, head: str) -> None:
        if self.closed:
            raise JournalClosed(self.path)
        end, rows, start = self.end + len(data), [], self.end
        for line in data.split(b"\n")[:-1]:
            rows.append((start, line))
            start += len(line) + 1
        self.writing = head, end
        durable = self.fsync == "always"
        try:
            written = self._rows.write(self.head, rows, head, end, durable=durable)
        except TimeoutError as error:
            self.writing = None
            raise SessionConflict(self.path, 0.0, str(error)) from None
        except OSError as error:
            raise self.failed(error) from error
        self.writing = None
        if not written:
            self.failure = OSError(errno.EBUSY, "another writer got past the lock")
            self.writing = self.head, self.end
            raise SessionChanged(self.path)
        self.head, self.end, self.unsynced = head, end, not durable

    def settle(self) -> None:
        # An interrupt (Ctrl-C) or a lost connection leaves open whether the transaction was.
        if self.writing is None:
            return
        head, end = self.writing
        if self._rows.head() == head:
            self.head, self.end, self.unsynced = head, end, True
        self.writing = None

    def flush(self) -> None:
        self._rows.flush()

    def sync_name(self) -> None:
        pass  # a row's name is in the same database

    def turn_end(self) -> None:
        super().turn_end()
        if self.failure is None and self.head != self.opened_at:
            # The records are there. What is looked up in them is taken out when it is looked for, where it is not now.
            with suppress(OSError):
                self._rows.settled()

    def look(self) -> None:
        pass  # every batch looks whether the session still is what it was

    def disown(self) -> None:
        self._held = None

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held()

    @property
    def closed(self) -> bool:
        return self._held is None


def _opened(rows: Rows, size: int, buffering: int) -> BinaryIO:
    return io.BufferedReader(_RowFile(rows, size), buffering if buffering > 0 else io.DEFAULT_BUFFER_SIZE)


class _RowFile(io.RawIOBase):
    """Rows as the bytes that they stand for, up to the size that they had."""

    def __init__(self, rows: Rows, size: int) -> None:
        self._rows = rows
        self._size = size
        self._at = 0
        self._near: Sequence[Row] = ()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        done, wanted = 0, min(len(view), self._size - self._at)
        if wanted > 0 and not self._is_near(self._at):
            self._near = self._rows.since(self._at, len(view))
        for start, line in self._near:
            # A row that is missing reads as a hole in a file does, and the chain tells of it.
            done += _zeros(view[done : max(done, min(wanted, start - self._at))])
            skipped = self._at + done - start
            if 0 <= skipped <= len(line) and done < wanted:
                piece = (line[skipped:] + b"\n")[: wanted - done]
                view[done : done + len(piece)] = piece
                done += len(piece)
        if wanted > 0 and not done and self._near:
            done = _zeros(view[:wanted])
        if wanted > 0 and not done:
            raise OSError(errno.ESTALE, "the session was deleted while it was read")
        self._at += done
        return done

    def _is_near(self, offset: int) -> bool:
        return bool(self._near) and self._near[0][0] <= offset <= self._near[-1][0] + len(self._near[-1][1])


def _zeros(view: memoryview) -> int:
    view[:] = bytes(len(view))
    return len(view)
