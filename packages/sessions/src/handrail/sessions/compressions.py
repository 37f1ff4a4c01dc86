"""Compressed exports: written as a stream, and read by way of an unnamed temporary file.

What a compressed file may grow to is bounded, in all and in one line, so that a small one that was made to fill memory
or a disk is refused.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from handrail.sessions.errors import CompressedSession, DamagedSession
from handrail.sessions.opening import Compression
from handrail.sessions.places import Place

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from handrail.sessions.writer import Fsync, Journal


LONGEST_LINE = 64 << 20
"""How many bytes a line has at most, its newline not counted."""
FREE = 256 << 20
"""What any compressed file may grow to, in bytes."""
MOST_TIMES = 1000
"""How many times its own size a compressed file may grow to beyond that."""

_SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_BLOCK = 1 << 18
# The window of the strongest level that people use; what asks for more memory is refused by the library.
_WINDOW_LOG = 27


def compression_for(path: Path, asked: Compression | None) -> Compression | None:
    """How an export to this path is to be compressed: as was asked, else by the end of its name."""
    return asked or _SUFFIXES.get(path.suffix.lower())


@contextmanager
def compressing(file: BinaryIO, compression: Compression | None) -> Iterator[BinaryIO]:
    """What to write lines into, so that they arrive in the file compressed; the file itself without a compression."""
    if compression is None:
        yield file
    elif compression == "gzip":
        import gzip

        # No time in it: the same session gives the same bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as stream:
            yield cast(BinaryIO, stream)
    else:
        parameter = (zstd := _zstd()).CompressionParameter
        # With a checksum, which gzip always has: a changed byte is found before any line is looked at.
        options = {parameter.compression_level: 3, parameter.checksum_flag: 1}
        with zstd.ZstdFile(file, "wb", options=options) as stream:
            yield cast(BinaryIO, stream)


class Expanded(Place):
    """A compressed export, as the bytes that it stands for. They are in an unnamed temporary file, which is gone with
    the last thing that reads it.

    Raises `DamagedSession`, with the line it came to, where the data breaks off, is broken, or is beyond the bounds.
    """

    def __init__(self, path: Path, file: BinaryIO, compression: Compression) -> None:
        import tempfile
        from weakref import finalize

        self._path = path
        self._compression = compression
        self._bytes = tempfile.TemporaryFile(prefix="handrail-")  # noqa: SIM115  # it lives as long as the place
        try:
            _Expansion(path, os.fstat(file.fileno()).st_size).run(_stream(file, compression), self._bytes)
        except BaseException:
            self._bytes.close()
            raise
        finalize(self, self._bytes.close)

    def __str__(self) -> str:
        return str(self._path)

    def exists(self) -> bool:
        """It was there when it was read."""
        return True

    def open_to_read(self, buffering: int = -1) -> BinaryIO:
        """The bytes from their beginning, each time with a position of its own."""
        size = io.DEFAULT_BUFFER_SIZE if buffering < 2 else buffering
        return cast(BinaryIO, io.BufferedReader(_Window(self, self._bytes), size))

    def lock(self, fsync: Fsync, timeout: float, *, new: bool) -> Journal:
        """Nothing can be appended to what is compressed."""
        raise CompressedSession(self._path, self._compression)


class _Window(io.RawIOBase):
    """One file, read from a position of its own; it keeps the `owner` of the file."""

    def __init__(self, owner: Expanded, file: BinaryIO) -> None:
        self._owner = owner
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # as its callers call it
        data = os.pread(self._file.fileno(), len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at


class _Expansion:
    """One pass over compressed data, which counts the lines and bytes that come of it."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._most = FREE + MOST_TIMES * size
        self._line = 1
        self._length = self._total = 0

    def run(self, stream: BinaryIO, target: BinaryIO) -> None:
        """Writes out everything that the stream gives."""
        while block := self._next(stream):
            self._count(block)
            target.write(block)
        target.flush()

    def _next(self, stream: BinaryIO) -> bytes:
        import zlib

        try:
            return stream.read(_BLOCK)
        except EOFError:
            problem = "the compressed data ends too early"
        except (OSError, zlib.error, _zstd().ZstdError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            problem = f"the compressed data is broken ({error})"
        raise DamagedSession(self._path, self._line, problem)

    def _count(self, block: bytes) -> None:
        self._total += len(block)
        if self._total > self._most:
            problem = f"the compressed data grows to more than {self._most} bytes, which no session does"
            raise DamagedSession(self._path, self._line, problem)
        first, newline, _ = block.partition(b"\n")
        self._length += len(first)
        if self._length > LONGEST_LINE:
            problem = f"the line is longer than the {LONGEST_LINE} bytes that are read of a compressed file"
            raise DamagedSession(self._path, self._line, problem)
        if newline:
            self._line += block.count(b"\n")
            self._length = len(block) - block.rfind(b"\n") - 1


def _stream(file: BinaryIO, compression: Compression) -> BinaryIO:
    if compression == "gzip":
        import gzip

        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))
    zstd = _zstd()
    limit = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return cast(BinaryIO, zstd.ZstdFile(file, "rb", options=limit))


def _zstd() -> ModuleType:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
