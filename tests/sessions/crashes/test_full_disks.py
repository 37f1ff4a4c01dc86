"""Disks that are full, and places that may not be written to: a clear error, and all that was acknowledged is there."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from handrail.filters import user
from handrail.sessions import (
    Journal,
    JournalFailed,
    MessageRecord,
    NotASession,
    Session,
    SessionError,
    export,
    read,
    verify,
)
from sessions.conversations import full_disk, opened
from sessions.crashes.jobs import MAKERS


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=False, capture_output=True
        ).returncode
    )
    if not mounted:
        pytest.skip("needs to mount a disk of its own, which only root may")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.jsonl"
    with Journal.open(path, fsync="never") as journal:
        for number in range(40):
            journal.append(said(os.urandom(8).hex() * 3_000 + str(number)))
    return path


@pytest.mark.parametrize("where", ["s.jsonl", "folder/", "store.db"])
def test_on_a_disk_that_is_full_everything_acknowledged_stays_and_goes_on_with_room(disk: Path, where: str) -> None:
    (disk / "room").write_bytes(b"x" * 500_000)
    with opened(disk, where) as session:
        written = 0
        with pytest.raises(JournalFailed):  # noqa: PT012
            while True:
                session.append(said("x" * 20_000), said("y" * 3_000))
                written += 1
        (disk / "room").unlink()
        session.reload()
        assert len(session.log) == 2 * written > 0
        session.append(said("after"))
        session.close()
        assert [message.text for message in session.log][-1] == "after"
        assert verify(session.path).state == "intact"


@pytest.mark.parametrize("how", sorted(MAKERS.keys() - {"import"}))
def test_a_copy_for_which_there_is_no_room_leaves_nothing(disk: Path, source: Path, how: str) -> None:
    (disk / "store").mkdir()
    with pytest.raises(JournalFailed) as caught:
        MAKERS[how](source, disk / "copy.jsonl")
    assert ".part" not in str(caught.value)
    assert [path for path in disk.glob("**/*") if path.is_file()] == []


def test_a_limit_on_the_size_of_files_is_like_a_full_disk(tmp_path: Path, source: Path) -> None:
    with full_disk(100_000), pytest.raises(JournalFailed) as caught:
        export(source, tmp_path / "sealed.jsonl")
    assert caught.value.error.errno == errno.EFBIG
    assert not list(tmp_path.glob("sealed*"))


def test_a_device_that_is_always_full_is_no_session_and_nothing_is_put_in_its_place(source: Path) -> None:
    with pytest.raises(NotASession):
        Journal.open("/dev/full")
    with pytest.raises(SessionError):
        export(source, "/dev/full")
    assert not Path("/dev/full").is_file()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may reach, which those of tests are not."""
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("closed", ["file", "folder"])
def test_what_may_only_be_read_is_read_and_a_writer_is_told(source: Path, open_folder: Path, closed: str) -> None:
    folder = open_folder
    path = folder / "s.jsonl"
    path.write_bytes(source.read_bytes())
    path.chmod(0o444)
    folder.chmod(0o555 if closed == "folder" else 0o777)
    reading, writing = os.pipe()
    if not (child := os.fork()):
        told = "nothing was refused"
        try:
            if not os.getuid():
                os.setgid(65534)
                os.setuid(65534)
            state = verify(path).state
            Session(path if closed == "file" else folder / "new.jsonl").append(said("x"))
        except JournalFailed as error:
            told = f"{state}: {error.error.strerror}"
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"intact: Permission denied"
    assert [entry.name for entry in folder.iterdir()] == ["s.jsonl"]
    assert len(list(read(path))) == 41
