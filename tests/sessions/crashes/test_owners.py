"""A session has one writer, who is told what others do meanwhile: threads, forked children, who deletes the file."""

import fcntl
import gc
import os
import shutil
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import (
    Journal,
    JournalClosed,
    JournalFailed,
    MessageRecord,
    SessionConflict,
    SessionError,
    open_store,
    verify,
)
from handrail.sessions.lines import link
from handrail.sessions.storing import Labels, Store
from handrail.sessions.writer import Fsync
from sessions.conversations import opened


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def outcome_in_a_child(act: Callable[[], object]) -> str:
    """What a forked child got of it: the name of an error, or `done`."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            act()
            os.write(writing, b"done")
        except BaseException as error:  # noqa: BLE001  # the parent tells it
            os.write(writing, type(error).__name__.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading, "rb") as pipe:
        return pipe.read().decode()


@contextmanager
def changing(store: Store) -> Iterator[None]:
    """While the block runs, a thread is in the middle of giving the session a title."""
    inside, go = threading.Event(), threading.Event()

    def slowly(labels: Labels) -> Labels:
        inside.set()
        go.wait()
        return Labels("Parcels", labels.tags)

    changer = threading.Thread(target=store.relabel, args=("desk", slowly))
    changer.start()
    inside.wait()
    try:
        yield
    finally:
        go.set()
        changer.join()


def take_away(path: Path, how: str) -> None:
    if how == "deleted":
        path.unlink()
    elif how == "replaced":
        path.with_name("other").write_text("precious")
        path.with_name("other").replace(path)
    else:
        shutil.rmtree(path.parent)


def go_on(journal: Journal) -> None:
    journal.append(said("two"))
    journal.turn_end()


@pytest.mark.parametrize("how", ["deleted", "replaced", "with its folder"])
@pytest.mark.parametrize("fsync", ["always", "turn", "never"])
def test_a_file_that_is_gone_is_told_and_nothing_is_taken_for_written(tmp_path: Path, fsync: Fsync, how: str) -> None:
    path = tmp_path / "folder" / "session.jsonl"
    path.parent.mkdir()
    journal = Journal.open(path, fsync=fsync)
    journal.append(said("one"))
    journal.turn_end()
    take_away(path, how)
    with pytest.raises(JournalFailed, match="was deleted, or another was put in its place") as caught:
        go_on(journal)
    assert caught.value.size is None
    journal.close()
    assert how != "replaced" or path.read_text() == "precious"


def test_a_file_that_was_moved_is_still_written_to(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "old") as journal:
        (tmp_path / "old").rename(tmp_path / "new")
        journal.append(said("one"))
    assert verify(tmp_path / "new").counts == {"header": 1, "message": 1}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("where", ["session.jsonl", "folder/", "store.db"])
def test_a_forked_child_has_no_part_in_the_session_of_its_parent(tmp_path: Path, where: str) -> None:
    with opened(tmp_path, where) as session:
        session.append(said("one"))
        assert outcome_in_a_child(lambda: session.append(said("the child's"))) == "JournalClosed"
        session.append(said("two"))
        session.close()
        assert [message.text for message in session.log] == ["one", "two"]
        assert verify(session.path).state == "intact"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("where", ["folder/", "store.db"])
def test_a_child_that_lives_on_does_not_keep_the_session_locked(tmp_path: Path, where: str) -> None:
    begun, going = os.pipe(), os.pipe()
    parent = os.fork()
    if not parent:
        with open_store(f"{tmp_path}/{where}") as store:
            store.open("desk").append(said("one"))
            if not os.fork():
                os.write(begun[1], b".")
                os.read(going[0], 1)  # the child of the child lives on
            os._exit(0)
    os.waitpid(parent, 0)
    try:
        assert os.read(begun[0], 1) == b"."
        with open_store(f"{tmp_path}/{where}") as store, store.open("desk") as session:
            session.append(said("two"))
            assert len(session.log) == 2
    finally:
        os.write(going[1], b".")
        for end in (*begun, *going):
            os.close(end)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_is_at_a_store_can_use_it(store_url: str) -> None:
    def look() -> None:
        signal.alarm(20)  # a child that waits for ever is killed, and says nothing
        assert [entry.id for entry in store.list()] == ["desk"]

    with open_store(store_url) as store, store.open("desk") as session:
        session.append(said("one"))
        session.turn_end()
        assert len(store.list()) == 1
        with changing(store):
            assert outcome_in_a_child(look) == "done"
        assert [entry.title for entry in store.list()] == ["Parcels"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_lives_on_does_not_keep_locked_what_a_thread_had(tmp_path: Path) -> None:
    begun, going = os.pipe(), os.pipe()
    with open_store(f"{tmp_path}/folder/") as store:
        store.create("desk")
        with changing(store):
            child = os.fork()
            if not child:
                os.write(begun[1], b".")
                os.read(going[0], 1)  # the child lives on
                os._exit(0)
            assert os.read(begun[0], 1) == b"."
        folder = os.open(tmp_path / "folder", os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.write(going[1], b".")
            os.waitpid(child, 0)
            for end in (folder, *begun, *going):
                os.close(end)


def test_a_session_that_was_left_open_can_be_written_to_when_nobody_has_it_any_more(store_url: str) -> None:
    with open_store(store_url) as store:
        left = store.open("desk")
        left.append(said("one"))
        with store.open("desk") as session, pytest.raises(SessionConflict):
            session.append(said("two"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del left
            gc.collect()
        with store.open("desk") as session:
            session.append(said("two"))
            assert len(session.log) == 2


def test_whoever_forgets_to_close_a_journal_is_warned_of_its_file(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "s.jsonl")
    journal.append(said("one"))
    with pytest.warns(ResourceWarning, match=r"unclosed file .*s\.jsonl"):
        del journal  # its last name


@pytest.mark.parametrize("where", ["s.jsonl", "folder/", "store.db"])
def test_an_interrupt_while_a_session_opens_or_closes_leaves_it_locked_to_nobody(
    tmp_path: Path, where: str, stopped: Callable[[float, Callable[[], object]], bool]
) -> None:
    def use() -> None:
        with opened(tmp_path, where) as session:
            session.append(said("again"))

    use()
    often = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.freeze()  # what is there before is not looked through a thousand times
        for time in range(1, 2000, 8 if where == "store.db" else 2):
            often += stopped(time * 1e-6, use)
            gc.collect()  # an exception may have cycles that hold the session
            use()
        gc.unfreeze()
    assert often > 100
    with opened(tmp_path, where) as session:
        assert verify(session.path).ok


@pytest.mark.parametrize("where", ["s.jsonl", "store.db"])
def test_threads_that_share_a_journal_are_refused_or_write_whole_batches(tmp_path: Path, where: str) -> None:
    kept: list[str] = []
    errors: set[type] = set()
    with opened(tmp_path, where, "never") as session:
        session.append(said("first"))

        def work(name: str) -> None:
            for number in range(60):
                try:
                    session.append(*[said(f"{name}{number}{part}" + "x" * 3000) for part in range(4)])
                    kept.append(f"{name}{number}")
                except SessionError as error:
                    errors.add(type(error))

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.close()
        assert errors <= {SessionConflict}
        texts = [message.text.rstrip("x") for message in session.log]
        assert sorted(texts) == sorted(["first", *[f"{name}{part}" for name in kept for part in range(4)]])
        assert verify(session.path).state == "intact"


def test_a_journal_that_another_thread_closes_has_all_that_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    journal = Journal.open(path, fsync="never")
    heads: list[str] = []

    def write() -> None:
        with suppress(JournalClosed):
            for _ in range(300):
                journal.append(said("x" * 20_000))
                heads.append(journal.head)

    writer = threading.Thread(target=write)
    writer.start()
    while not journal.closed:
        with suppress(SessionConflict):
            if len(heads) > 20:
                journal.close()
    writer.join()
    assert {link(line) for line in path.read_bytes().splitlines()} >= set(heads)
    assert verify(path).state == "intact"
