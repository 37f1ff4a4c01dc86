"""What is the file system's own in the folder store."""

import threading
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import MessageRecord, Session, Store, StoreFailed, open_store, verify
from sessions.conversations import times_open


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def test_every_session_is_a_file_that_others_open(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/") as store, store.open("desk/7") as session:
        session.append(said("one"))
    with Session(tmp_path / "desk%2F7.jsonl") as session:
        session.append(said("two"))
    assert verify(tmp_path / "desk%2F7.jsonl").ok
    assert [entry.messages for entry in store.list()] == [2]


def test_session_files_that_are_there_are_its_sessions_and_other_files_are_not(tmp_path: Path) -> None:
    with Session(tmp_path / "desk.jsonl") as session:
        session.append(said("one"))
    (tmp_path / "log.jsonl").write_text('{"role": "user"}\n')
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "notes.txt").write_text("needle")
    with open_store(tmp_path) as store:
        assert [entry.id for entry in store.list()] == ["desk"]
        assert store.search("needle") == ()


def keep(store: Store, text: str) -> None:
    with store.open("desk") as session:
        session.append(said(text))


def test_a_writer_that_waited_for_a_session_which_was_deleted_begins_it_anew(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/", lock_timeout=30) as store:
        with store.open("desk") as first:
            first.append(said("one"))
            first.turn_end()
            waiting = threading.Thread(target=lambda: keep(store, "two"))
            waiting.start()
            while times_open(tmp_path / "desk.jsonl") < 2:
                pass
            (tmp_path / "desk.jsonl").unlink()
        waiting.join()
        assert [message.text for message in store.open("desk").log] == ["two"]


def test_a_file_of_labels_that_is_none_is_told_and_kept(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/") as store:
        store.create("desk")
        (tmp_path / "desk.labels.json").write_text("[1]")
        with pytest.raises(StoreFailed, match=r"desk\.labels\.json is no file of labels"):
            store.rename("desk", "x")
        assert (tmp_path / "desk.labels.json").read_text() == "[1]"
