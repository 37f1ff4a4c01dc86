"""Opening a session file: a regular one, read without waiting, written by one at a time, expanded if compressed."""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias

from handrail.sessions.errors import JournalFailed, NotASession, SessionConflict, SessionExists
from handrail.sessions.owning import OpenFile
from handrail.sessions.places import Place, Where

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""With these a pipe that nobody writes to opens at once; to a regular file they make no difference."""

Compression: TypeAlias = Literal["gzip", "zstd"]

_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_POLL = 0.01
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_to_read(path: Where, buffering: int = -1) -> BinaryIO:
    """The file or place, open to be read. Raises `NotASession` for a pipe, a socket or a device, and `OSError`."""
    if isinstance(path, Place):
        return path.open_to_read(buffering)
    file = os.open(nameable(path), os.O_RDONLY | FLAGS)
    try:
        refuse_irregular(path, file)
        return open(file, "rb", buffering=buffering)
    except BaseException:
        os.close(file)
        raise


def expanded(path: Where) -> Where:
    """Where the lines of a session are: the place or plain file itself, or what a compressed file stands for.

    Raises `DamagedSession` for one that cannot be expanded, and what opening a file raises.
    """
    if isinstance(path, Place):
        return path
    with open_to_read(path, 0) as file:
        compression = compression_of(file)
    if compression is None:
        return path
    from handrail.sessions.compressions import Expanded

    with open_to_read(path) as file:
        return Expanded(path, file, compression)


def compression_of(file: BinaryIO) -> Compression | None:
    """How an open file is compressed, by its first bytes."""
    file.seek(0)
    start = file.read(4)
    file.seek(0)
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def open_locked(path: Path, timeout: float, *, new: bool) -> OpenFile:
    """The file at this path, made where there is none, and open and locked for one writer.

    Raises `SessionConflict`, `NotASession`, `SessionExists` where it has to be `new`, or `JournalFailed`.
    """
    flags = os.O_RDWR | os.O_CREAT | FLAGS | (os.O_EXCL if new else 0)
    try:
        number = os.open(nameable(path), flags, 0o600)
    except FileExistsError:
        raise SessionExists(path) from None
    except OSError as error:
        raise JournalFailed(path, None, error) from error
    try:
        refuse_irregular(path, number)
    except BaseException:
        os.close(number)
        raise
    file = OpenFile(number, str(path))
    try:
        lock(number, path, timeout)
        if os.fstat(number).st_nlink:
            return file
    except BaseException:
        file.close()
        raise
    file.close()  # it was deleted while it was waited for; what was written to it would be lost
    return open_locked(path, timeout, new=new)


def refuse_deleted(path: Where, file: int) -> None:
    """Raises `FileNotFoundError` for an open file that no name leads to any more."""
    if not os.fstat(file).st_nlink:
        problem = "the file was deleted, or another was put in its place, while it was written to"
        raise FileNotFoundError(errno.ENOENT, problem, str(path))


def refuse_irregular(path: Path, file: int) -> None:
    """Raises `NotASession` for an open file that is a pipe, a socket or a device, `IsADirectoryError` for a folder."""
    mode = os.fstat(file).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise NotASession(path, next((kind for is_kind, kind in _KINDS if is_kind(mode)), "no file"), is_file=False)


def nameable(path: Path) -> Path:
    """The path. Raises `OSError` for a name that no file can have."""
    if "\0" in os.fspath(path):
        raise OSError(errno.EINVAL, "no file name holds a zero byte", str(path))
    return path


def lock(file: int, path: Path, timeout: float) -> None:
    """Locks an open file for one writer, waiting so many seconds for another. Raises `SessionConflict`."""
    # A lock of the open file, not of the process: a second writer in this process is refused as well.
    import fcntl

    until = time.monotonic() + timeout
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = until - time.monotonic()
            if left <= 0:
                raise SessionConflict(path, timeout) from None
            time.sleep(min(_POLL, left))


def sync_folder(folder: str) -> None:
    """Waits until a folder is on the disk: a new file survives a power cut only when the folder that names it does."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
