"""Sessions in a folder: a session file each, with what it is called beside it.

A file is named by its session's id: small letters, digits, `-`, `_` and inner dots stand for themselves, every other
byte as `%XX`. An id that is too long for a name is cut and told apart by its hash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import msgspec

from handrail.filters.sources import Clock
from handrail.sessions.copies import copied
from handrail.sessions.errors import SessionError, StoreFailed, UnknownSession
from handrail.sessions.headers import read_header
from handrail.sessions.opening import FLAGS, lock, open_to_read
from handrail.sessions.owning import OpenFile, OpenFolder
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.scanning import Scan, scanned
from handrail.sessions.searching import Entry, Found
from handrail.sessions.storing import Labels, Relabel, Store
from handrail.sessions.writer import Fsync

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_.")
_LONGEST = 180
_SUFFIX, _LABELS = ".jsonl", ".labels.json"


class _Beside(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the file beside a session's says: its labels, and its whole id where the name is too short for it."""

    title: str = ""
    tags: tuple[str, ...] = ()
    id: str = ""


class FolderStore(Store):
    """Sessions in this folder, which is made at the first write. Every one is a session file that can be opened, moved
    and copied as such; its title and tags are in the file `.labels.json` beside it."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: Fsync = "turn",
        lock_timeout: float = 0.0,
        clock: Clock | None = None,
        passphrase: Passphrase | None = None,
    ) -> None:
        super().__init__(os.fspath(path), fsync, lock_timeout, clock, passphrase)
        self.folder = Path(path)
        self._scans: dict[str, tuple[int, Scan]] = {}

    def place(self, id: str) -> Path:
        return self.folder / f"{self._name(id)}{_SUFFIX}"

    def _name(self, id: str) -> str:
        try:
            data = id.encode()
        except UnicodeEncodeError:
            data = b""
        if not data:
            raise UnknownSession(self.name, id, "no session can have this id")
        each = [chr(byte) if byte in _PLAIN and (byte != 46 or at) else f"%{byte:02X}" for at, byte in enumerate(data)]
        name = "".join(each)
        return name if len(name) <= _LONGEST else f"{name[:100]}~{sha256(data).hexdigest()[:40]}"

    def prepare(self, id: str) -> None:
        name = self._name(id)
        with _told(self.name):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if "~" in name and not self._beside(name).id:
                with self._locked():
                    self._write(name, msgspec.structs.replace(self._beside(name), id=id))

    def entries(self) -> Iterator[Entry]:
        with _told(self.name):
            found = [(file.stat().st_mtime_ns, file.name) for file in self._files()]
        for _, name in sorted(found, reverse=True):
            with suppress(FileNotFoundError, SessionError):  # gone by now, or no session
                yield self._entry(name.removesuffix(_SUFFIX))

    def _files(self) -> Iterator[os.DirEntry[str]]:
        with suppress(FileNotFoundError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith(_SUFFIX) and file.is_file():
                    yield file

    def entry(self, id: str) -> Entry:
        try:
            return self._entry(self._name(id))
        except FileNotFoundError:
            raise UnknownSession(self.name, id) from None

    def _entry(self, name: str) -> Entry:
        path = self.folder / f"{name}{_SUFFIX}"
        status, beside = path.stat(), self._beside(name)
        known, scan = self._scans.get(name) or (0, Scan())
        if known != status.st_ino:
            with open_to_read(path) as file:
                read_header(path, file)
            scan = Scan()
        seen = scan.to(path, status.st_size)
        self._scans[name] = status.st_ino, scan
        return Entry(
            id=beside.id or unquote(name, errors="replace"),
            title=beside.title or seen.title,
            tags=beside.tags,
            agents=tuple(seen.agents),
            messages=seen.counted,
            created_at=seen.created_at,
            updated_at=status.st_mtime_ns // 1_000_000,
            parent=seen.parent,
            encrypted=seen.encrypted,
            size=status.st_size,
        )

    def found(self, words: tuple[str, ...]) -> Iterator[Found]:
        for entry in self.entries():
            if not entry.encrypted:
                yield from scanned(entry.id, self.place(entry.id), words)

    def relabel(self, id: str, change: Relabel) -> None:
        name, place = self._name(id), self.place(id)
        with _told(self.name):
            if not place.exists():
                raise UnknownSession(self.name, id)
            with self._locked():
                beside = self._beside(name)
                labels = change(Labels(beside.title, beside.tags))
                self._write(name, _Beside(labels.title, labels.tags, beside.id))

    def adopt(self, id: str, lines: Iterator[bytes]) -> None:
        copied(lines, self.place(id))

    def delete(self, id: str) -> None:
        name, place = self._name(id), self.place(id)
        with _told(self.name):
            try:
                file = OpenFile(os.open(place, os.O_RDWR | FLAGS), str(place))
            except FileNotFoundError:
                raise UnknownSession(self.name, id) from None
        try:
            lock(file.fileno(), place, 0.0)
            if not os.fstat(file.fileno()).st_nlink:  # another was first, and a new one may stand there by now
                raise UnknownSession(self.name, id)
            with _told(self.name), self._locked():
                place.unlink(missing_ok=True)
                (self.folder / f"{name}{_LABELS}").unlink(missing_ok=True)
        finally:
            file.close()
        self._scans.pop(name, None)

    def _beside(self, name: str) -> _Beside:
        path = self.folder / f"{name}{_LABELS}"
        try:
            return msgspec.json.decode(path.read_bytes(), type=_Beside)
        except FileNotFoundError:
            return _Beside()
        except (ValueError, msgspec.DecodeError) as error:
            raise StoreFailed(self.name, f"{path.name} is no file of labels: {error}") from None

    def _write(self, name: str, beside: _Beside) -> None:
        path = self.folder / f"{name}{_LABELS}"
        part = path.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(beside))
        part.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """What stands beside the sessions is changed by one at a time."""
        folder = OpenFolder(self.folder)
        try:
            lock(folder.number, self.folder, _PATIENCE)
            yield
        finally:
            folder.disown()

    def close(self) -> None:
        self._scans.clear()


_PATIENCE = 30.0


@contextmanager
def _told(name: str) -> Iterator[None]:
    try:
        yield
    except StoreFailed:
        raise
    except OSError as error:
        raise StoreFailed(name, error.strerror or str(error)) from error
