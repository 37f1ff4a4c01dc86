"""Forks of session files; those of stores are in `test_storing.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import (
    BudgetRecord,
    DamagedSession,
    ForkRefused,
    MessageRecord,
    ModelCallRecord,
    Origin,
    PassphraseMissing,
    Session,
    SessionExists,
    StateRecord,
    TurnRecord,
    Usage,
    export,
    read,
    verify,
)
from sessions.conversations import secret


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Two turns, each with a message, what its model call cost, and its end."""
    with Session(tmp_path / "talk.jsonl", fsync="never") as session:
        for name in ("m1", "m2"):
            session.append(TurnRecord(path="desk", run=name, event="start"), said(name))
            session.append(ModelCallRecord(path="desk", step=1, message_id=name, usage=Usage(5, 5, requests=1)))
            session.append(StateRecord(path="desk"), TurnRecord(path="desk", run=name, event="end", status="completed"))
            session.append(BudgetRecord(path="desk", run=name))
        yield session


def test_a_fork_ends_with_its_message_and_how_its_turn_ended(session: Session, tmp_path: Path) -> None:
    fork = session.fork(tmp_path / "fork.jsonl", at="m1")
    kinds = [type(record).__name__.removesuffix("Record") for record in read(fork.path).records()]
    assert kinds == ["Header", "Turn", "Message", "ModelCall", "State", "Turn", "Budget"]
    assert fork.usage == Usage(5, 5, requests=1)
    assert verify(fork.path).state == "intact"


def test_a_fork_names_where_it_comes_from(session: Session, tmp_path: Path) -> None:
    whole, parent = session.fork(tmp_path / "fork.jsonl"), read(session.path)
    header = read(whole.path).header
    assert header.origin == Origin(parent.header.id, "m2")
    assert header.continues == parent.head


def test_a_fork_overwrites_nothing_and_leaves_nothing_where_it_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(SessionExists):
        session.fork(tmp_path / "there.jsonl")
    with pytest.raises(ForkRefused, match="no such message"):
        session.fork(tmp_path / "fork.jsonl", at="m9")
    session.close()
    lines = Path(str(session.path)).read_bytes().splitlines(keepends=True)
    Path(str(session.path)).write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(DamagedSession, match="line 3"):
        session.fork(tmp_path / "fork.jsonl", at="m2")
    assert {path.name for path in tmp_path.iterdir()} == {"talk.jsonl", "there.jsonl"}
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_a_fork_of_a_sealed_copy_can_be_written_to(session: Session, tmp_path: Path) -> None:
    sealed = session.export(tmp_path / "sealed.jsonl")
    with Session(sealed).fork(tmp_path / "fork.jsonl") as fork:
        fork.append(said("m3"))
    assert [message.id for message in fork.log] == ["m1", "m2", "m3"]
    assert verify(fork.path).ok


def test_a_fork_of_an_encrypted_session_is_encrypted_with_the_same_passphrase(session: Session, tmp_path: Path) -> None:
    export(session.path, tmp_path / "secret.jsonl", passphrase=secret())
    fork = Session(tmp_path / "secret.jsonl", passphrase=secret()).fork(tmp_path / "fork.jsonl", at="m1")
    with fork:
        fork.append(said("m9"))
    assert b"desk" not in (tmp_path / "fork.jsonl").read_bytes()
    assert [message.id for message in Session(fork.path, passphrase=secret()).log] == ["m1", "m9"]
    assert verify(fork.path, passphrase=secret()).state == "intact"
    with pytest.raises(PassphraseMissing):
        Session(tmp_path / "secret.jsonl").fork(tmp_path / "other.jsonl")
    assert not (tmp_path / "other.jsonl").exists()
