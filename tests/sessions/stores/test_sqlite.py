"""What is SQLite's own in the SQLite store."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import (
    DamagedSession,
    JournalFailed,
    MessageRecord,
    SessionChanged,
    SessionConflict,
    StoreFailed,
    UnsupportedStore,
    open_store,
    verify,
)
from handrail.sessions.places import Place
from handrail.sessions.tables import refuse_too_long
from sessions.conversations import times_open


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def test_a_database_of_a_newer_version_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("one"))
    with sqlite3.connect(path) as other:
        other.execute("UPDATE handrail_store SET version = 7")
    other.close()
    before = path.read_bytes()
    with open_store(path) as store, pytest.raises(UnsupportedStore, match=r"version 7; .* version 1"):
        store.list()
    assert path.read_bytes() == before


def changed(path: Path, sql: str, *values: object) -> None:
    with sqlite3.connect(path) as other:
        other.execute(sql, values)
    other.close()


def test_lines_that_became_text_read_as_they_did_and_are_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("größer"))
    changed(path, "UPDATE handrail_lines SET line = CAST(line AS TEXT)")
    with open_store(path) as store:
        with store.open("desk") as session:
            session.append(said("two"))
        assert [message.text for message in store.open("desk").log] == ["größer", "two"]
        assert verify(store.place("desk")).state == "intact"
        assert [found.message for found in store.search("größer")] == ["größer"]


def test_a_number_in_place_of_a_line_is_damage_and_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("one"))
        session.append(said("two"))
    changed(path, "UPDATE handrail_lines SET line = 900000000000 WHERE place = (SELECT max(place) FROM handrail_lines)")
    with open_store(path) as store:
        verdict = verify(store.place("desk"))
        assert (verdict.state, verdict.line) == ("damaged", 3)


def test_a_number_that_comes_in_place_of_a_line_while_it_is_written_to_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store:
        with store.open("desk") as session:
            session.append(said("one"))
            changed(path, "UPDATE handrail_lines SET line = 5 WHERE place = (SELECT max(place) FROM handrail_lines)")
            session.append(said("two"))
        assert [found.message for found in store.search("two")] == ["two"]


@pytest.mark.parametrize("column", ["labels", "summary"])
def test_what_others_made_unreadable_beside_the_lines_is_told_and_the_session_still_opens(
    tmp_path: Path, column: str
) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("one"))
    changed(path, f"UPDATE handrail_sessions SET {column} = ?", b"\xff{")
    with open_store(path) as store:
        with pytest.raises(StoreFailed, match="not as it was written"):
            list(store.list())
        assert [message.text for message in store.open("desk").log] == ["one"]


@pytest.mark.parametrize("size", [3, 300_000])
def test_a_row_that_is_missing_is_damage_where_it_was(tmp_path: Path, size: int) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        for text in ("one", "x" * size, "three", "four"):
            session.append(said(text))
    changed(path, "DELETE FROM handrail_lines WHERE place = (SELECT place FROM handrail_lines LIMIT 1 OFFSET 2)")
    with open_store(path) as store:
        verdict = verify(store.place("desk"))
        assert (verdict.state, verdict.line) == ("damaged", 3)
        with pytest.raises(DamagedSession, match="line 3"):
            _ = store.open("desk").log


def test_the_tables_stand_beside_those_of_an_application(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE users (name)")
    other.close()
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("one"))
        assert [entry.id for entry in store.list()] == ["desk"]


def test_what_is_no_database_is_told_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"not a database" * 100)
    with open_store(path) as store:
        with pytest.raises(StoreFailed, match=r"s\.db: file is not a database"):
            store.list()
        with pytest.raises(JournalFailed):
            store.open("desk").append(said("one"))
    assert path.read_bytes() == b"not a database" * 100
    with pytest.raises(StoreFailed, match="No such file"):
        open_store(tmp_path / "missing" / "s.db").list()


def test_only_its_owner_can_read_it_and_no_lock_stays(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store, store.open("desk") as session:
        session.append(said("one"))
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_a_record_synced_always_is_on_the_disk_when_the_append_returns(tmp_path: Path) -> None:
    script = """
import sys
from handrail.filters import user
from handrail.sessions import MessageRecord, open_store
session = open_store(sys.argv[1], fsync=sys.argv[2]).open("desk")
session.append(MessageRecord(path="desk", message=user("one")))
print("begin", flush=True)
for _ in range(5):
    session.append(MessageRecord(path="desk", message=user("more")))
print("end", flush=True)
"""
    syncs = {}
    for fsync in ("always", "turn"):
        trace = tmp_path / f"{fsync}.trace"
        command = ["strace", "-f", "-e", "trace=fsync,fdatasync,write", "-o", str(trace), sys.executable, "-c", script]
        try:
            subprocess.run([*command, str(tmp_path / f"{fsync}.db"), fsync], check=True, stdout=subprocess.DEVNULL)
        except FileNotFoundError:
            pytest.skip("needs strace")
        part = trace.read_text().partition('"begin')[2].partition('"end')[0]
        syncs[fsync] = part.count("sync(")
    assert syncs == {"always": 5, "turn": 0}


def test_another_connection_that_holds_the_database_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with open_store(path) as store, store.open("desk") as session:
        session.append(said("one"))
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        session.append(said("two"))
        holder.communicate()
    assert verify(store.place("desk")).counts["message"] == 2
    store.close()


_HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(0.2)
connection.execute("COMMIT")
connection.close()
"""


def test_a_lock_that_was_lost_does_not_let_one_writer_write_over_another(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        first = store.open("desk")
        first.append(said("one"))
        for lock in tmp_path.glob("*.lock"):
            lock.unlink()
        with store.open("desk") as second:
            second.append(said("two"))
        with pytest.raises(SessionConflict):
            first.append(said("three"))
        first.reload()
        first.append(said("three"))
        first.close()
        assert [message.text for message in store.open("desk").log] == ["one", "two", "three"]
        assert verify(store.place("desk")).ok


def test_of_two_that_begin_one_session_past_the_lock_one_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        place = store.place("desk")
        assert isinstance(place, Place)
        with place.lock("never", 0.0, new=True) as first:
            for lock in tmp_path.glob("*.lock"):
                lock.unlink()
            store.create("desk")
            with pytest.raises(SessionChanged):
                first.append(said("one"))
        assert verify(store.place("desk")).counts == {"header": 1}


def test_a_session_whose_rows_another_took_away_is_not_written_on(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store, store.open("desk") as session:
        session.append(said("one"))
        with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as other:
            other.execute("DELETE FROM handrail_lines")
        with pytest.raises(SessionChanged):
            session.append(said("two"))
        with closing(sqlite3.connect(tmp_path / "s.db")) as other:
            assert other.execute("SELECT count(*) FROM handrail_lines").fetchone() == (0,)


def test_nothing_that_was_said_stays_in_the_tables_of_a_session_that_was_deleted(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        for id in ("desk", "other"):
            with store.open(id) as session:
                session.append(said(f"what {id} said"))
        assert store.search("said")
        store.delete("desk")
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert connection.execute("SELECT folded FROM handrail_texts").fetchall() == [("what other said",)]


def test_who_waited_for_a_lock_that_was_let_go_holds_it_against_all_others(tmp_path: Path) -> None:
    def wait() -> None:
        with store.open("desk", lock_timeout=30) as session:
            session.append(said("two"))
            held.set()
            done.wait()

    held, done = threading.Event(), threading.Event()
    with open_store(tmp_path / "s.db") as store:
        with store.open("desk") as first:
            first.append(said("one"))
            (lock,) = tmp_path.glob("*.lock")
            waiting = threading.Thread(target=wait)
            waiting.start()
            while times_open(lock) < 2:
                pass
        held.wait()
        try:
            with pytest.raises(SessionConflict):
                store.open("desk").append(said("three"))
        finally:
            done.set()
            waiting.join()
        assert [message.text for message in store.open("desk").log] == ["one", "two"]


def test_a_session_ends_before_the_keys_of_the_next_begin() -> None:
    refuse_too_long((1 << 36) - 1)
    with pytest.raises(OSError, match="up to 64 GiB"):
        refuse_too_long(1 << 36)
