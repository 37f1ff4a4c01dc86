"""What is Postgres's own in the Postgres store."""

import subprocess
import sys

import psycopg
import pytest

from handrail.filters import user
from handrail.sessions import JournalFailed, MessageRecord, StoreFailed, UnsupportedStore, open_store, verify


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def cut_off(url: str) -> None:
    """Ends every other connection of this database that is a store's."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'handrail' AND datname = current_database()"
        )


def test_a_lost_connection_is_a_typed_error_and_the_session_goes_on_after_it(postgres_url: str) -> None:
    with open_store(postgres_url) as store, store.open("desk") as session:
        session.append(said("one"))
        cut_off(postgres_url)
        with pytest.raises(JournalFailed):
            session.append(said("two"))
        with pytest.raises(JournalFailed):
            session.append(said("three"))
        session.reload()
        session.append(said("two"))
        assert [message.text for message in session.log] == ["one", "two"]
        assert verify(store.place("desk")).ok


def test_a_lost_connection_is_made_anew_where_only_something_is_read(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.create("desk")
        cut_off(postgres_url)
        with pytest.raises(StoreFailed, match="terminat"):
            store.list()
        assert [entry.id for entry in store.list()] == ["desk"]


def test_a_database_of_a_newer_version_is_refused_with_both_versions(postgres_url: str) -> None:
    with open_store(postgres_url) as store:
        store.create("desk")
    with psycopg.connect(postgres_url) as other:
        other.execute("UPDATE handrail_store SET version = 7")
    with open_store(postgres_url) as store, pytest.raises(UnsupportedStore, match=r"version 7; .* version 1"):
        store.list()


def test_processes_that_make_the_tables_at_once_do_not_fail(postgres_url: str) -> None:
    script = "import sys; from handrail.sessions import open_store; open_store(sys.argv[1]).create(sys.argv[2])"
    makers = [subprocess.Popen([sys.executable, "-c", script, postgres_url, str(number)]) for number in range(4)]
    assert [maker.wait() for maker in makers] == [0] * 4
    with open_store(postgres_url) as store:
        assert {entry.id for entry in store.list()} == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cr%40t@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db?password=s3cr%40t",
        "postgresql://me:s3cr%40t@127.0.0.1:notaport/db",
        "postgresql://me:s3cr%40t@127.0.0.1:1/db?nosuchoption=1",
    ],
)
def test_no_password_is_in_any_name_or_error(url: str) -> None:
    store = open_store(url)
    with pytest.raises(StoreFailed) as failed:
        store.list()
    with pytest.raises(JournalFailed) as journal:
        store.open("desk").append(said("one"))
    shown = [repr(store), store.name, str(store.place("x")), repr(store.place("x")), repr(store.open("x").path)]
    for text in [*shown, str(failed.value), repr(failed.value), str(journal.value), repr(journal.value.__cause__)]:
        assert "s3cr" not in text
    assert failed.value.__cause__ is None
