"""What every store does alike, and what its sessions hold."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from handrail.filters import FixedClock, ToolCall, assistant, full, tool_result, user
from handrail.sessions import (
    DamagedSession,
    ForkRefused,
    JournalFailed,
    MessageRecord,
    Origin,
    Passphrase,
    PassphraseMissing,
    PassphraseNotNeeded,
    SealedSession,
    Session,
    SessionChanged,
    SessionConflict,
    SessionExists,
    Store,
    ToolResultRecord,
    UnknownSession,
    UnknownStore,
    Verdict,
    WrongPassphrase,
    crossings,
    diff,
    open_store,
    read,
    verify,
)
from handrail.sessions.opening import open_to_read
from sessions.conversations import WORDS, Conversation, secret


@pytest.fixture(params=["plain", "encrypted"])
def passphrase(request: pytest.FixtureRequest) -> Passphrase | None:
    """What the sessions of the store are encrypted with, if they are."""
    return secret() if request.param == "encrypted" else None


@pytest.fixture
def store(store_url: str, passphrase: Passphrase | None) -> Iterator[Store]:
    with open_store(store_url, passphrase=passphrase) as store:
        yield store


@pytest.fixture
def plain(store_url: str) -> Iterator[Store]:
    """A store of plain sessions."""
    with open_store(store_url) as store:
        yield store


def said(text: str, agent: str = "desk") -> MessageRecord:
    return MessageRecord(path=agent, message=user(text, id=text))


def keep(store: Store, id: str, *texts: str, agent: str = "desk") -> None:
    with store.open(id) as session:
        for text in texts:
            session.append(said(text, agent))


def content(store: Store, id: str) -> bytes:
    with open_to_read(store.place(id)) as file:
        return file.read()


def checked(store: Store, id: str) -> Verdict:
    return verify(store.place(id), passphrase=store.passphrase)


@pytest.fixture
def talk(tmp_path: Path, passphrase: Passphrase | None) -> Path:
    """A conversation in which the desk handed over to billing, and billing asked research."""
    path = tmp_path / "talk.jsonl"
    with Conversation(path, passphrase) as talk:
        talk.say("desk", user("I was charged twice."))
        talk.hand_over("desk", "billing", full())
        talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
        talk.say("billing", assistant("You were.", agent="billing"))
    return path


def test_a_session_is_made_at_its_first_write_and_gone_on_with(store: Store) -> None:
    session = store.open("desk")
    assert (session.views, session.log, session.tail(3)) == ({}, (), ())
    assert store.list() == ()
    session.append(said("one"), said("two"))
    session.close()
    keep(store, "desk", "three")
    assert [message.text for message in store.open("desk").history("desk")] == ["one", "two", "three"]
    assert checked(store, "desk").state == "intact"


def test_a_session_that_was_created_is_there_and_not_created_again(store: Store) -> None:
    store.create("desk", title="A refund", tags=["vip"])
    (entry,) = store.list()
    assert (entry.id, entry.title, entry.tags) == ("desk", "A refund", ("vip",))
    assert entry.messages == (0 if store.passphrase is None else None)
    with pytest.raises(SessionExists):
        store.create("desk")


def test_the_lines_are_the_same_byte_for_byte_in_every_store(store: Store, talk: Path, tmp_path: Path) -> None:
    assert store.import_(talk, as_="copy") == "copy"
    assert content(store, "copy") == talk.read_bytes()
    assert store.export("copy", tmp_path / "back.jsonl").read_bytes() == talk.read_bytes()
    assert checked(store, "copy").handoffs == verify(talk, passphrase=store.passphrase).handoffs == 2
    assert store.open("copy").views == Session(talk, passphrase=store.passphrase).views
    assert store.open("copy").handoffs == Session(talk, passphrase=store.passphrase).handoffs
    with store.open("copy") as session:
        session.append(said("more", "billing"))
    assert checked(store, "copy").ok


def test_offsets_and_every_reader_of_bytes_find_what_they_find_in_a_file(store: Store, talk: Path) -> None:
    store.import_(talk, as_="copy")
    with open_to_read(store.place("copy")) as file:
        assert file.read() == talk.read_bytes()
        for offset in range(0, talk.stat().st_size, 97):
            file.seek(offset)
            assert file.read(41) == talk.read_bytes()[offset : offset + 41]
            assert file.tell() == min(offset + 41, talk.stat().st_size)


def test_a_file_that_is_not_whole_is_not_taken_in(store: Store, talk: Path) -> None:
    lines = talk.read_bytes().splitlines(keepends=True)
    talk.write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(DamagedSession, match="line 4"):
        store.import_(talk, as_="copy")
    assert store.list() == ()


def test_what_is_there_is_not_overwritten(store: Store, talk: Path, tmp_path: Path) -> None:
    keep(store, "desk", "one")
    before = content(store, "desk")
    what = "file" if isinstance(store.place("desk"), Path) else "session"
    with pytest.raises(SessionExists, match=f"there is a {what} already"):
        store.import_(talk, as_="desk")
    with pytest.raises(SessionExists, match="there is a file already"):
        store.export("desk", talk)
    with pytest.raises(SessionExists):
        store.fork("desk", as_="desk")
    with pytest.raises(JournalFailed):
        store.export("desk", tmp_path / "none" / "x.jsonl")
    assert content(store, "desk") == before


def test_a_sealed_copy_comes_out_of_every_store(store: Store, tmp_path: Path) -> None:
    keep(store, "desk", "one")
    assert verify(store.open("desk").export(tmp_path / "sealed.jsonl"), passphrase=store.passphrase).sealed


def test_the_list_is_newest_first_and_says_what_each_session_is(store: Store, talk: Path) -> None:
    store.import_(talk, as_="talk")
    keep(store, "other", "hello")
    store.clock = FixedClock(store.clock() + 5)
    keep(store, "talk", "again", agent="billing")
    newest, oldest = store.list()
    assert (newest.id, oldest.id) == ("talk", "other")
    assert newest.created_at == read(talk, passphrase=store.passphrase).header.created_at <= newest.updated_at
    assert newest.size == len(content(store, "talk"))
    assert newest.encrypted is (store.passphrase is not None)
    assert store.list(limit=1) == (newest,)
    assert store.list(limit=0) == ()


def test_the_list_says_who_spoke_in_a_plain_session_and_how_much(plain: Store) -> None:
    keep(plain, "talk", "one", "two", agent="billing")
    keep(plain, "talk", "three", agent="research")
    (entry,) = plain.list(agent="research")
    assert (entry.agents, entry.messages) == (("billing", "research"), 3)
    assert (plain.list(agent="desk"), plain.list(agent="desk").locked) == ((), ())


def test_titles_and_tags_are_given_and_taken_while_a_session_is_open_for_writing(store: Store) -> None:
    with store.open("desk") as session:
        session.append(said("one"))
        store.rename("desk", "Ein Rückruf")
        store.tag("desk", "vip", "open", "vip")
        store.untag("desk", "open", "never")
    assert [(entry.title, entry.tags) for entry in store.list(tag="vip")] == [("Ein Rückruf", ("vip",))]
    assert [entry.id for entry in store.list(text="RÜCK")] == ["desk"]
    assert store.list(tag="open") == ()


@pytest.mark.parametrize(
    "act",
    [
        lambda store, path: store.rename("nobody", "x"),
        lambda store, path: store.tag("nobody", "x"),
        lambda store, path: store.delete("nobody"),
        lambda store, path: store.fork("nobody", as_="new"),
        lambda store, path: store.export("nobody", path),
        lambda store, path: store.ancestry("nobody"),
    ],
)
def test_an_id_that_is_not_there_is_named(store: Store, act: Callable[[Store, Path], object], tmp_path: Path) -> None:
    keep(store, "desk", "one")
    with pytest.raises(UnknownSession, match="nobody"):
        act(store, tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("refund", ["b", "a"]),
        ("REFUND twice", ["a"]),
        ("und", ["b", "a"]),
        ("北京", ["c"]),
        ("京", ["c"]),
        ("100%", ["d"]),
        ('say "it_is"', ["d"]),
        ("it-is", []),
        ("straße", ["e"]),
        ("STRASSE", ["e"]),
        ("zero byte", ["f"]),
        ("nothing of it", []),
        ("  ", []),
    ],
)
def test_a_search_finds_the_messages_that_hold_every_word(store: Store, words: str, ids: list[str]) -> None:
    keep(store, "a", "A refund, charged twice")
    keep(store, "b", "no more", "Refunds take a week")
    keep(store, "c", "我在北京天安门")
    keep(store, "d", '100% sure, they say "it_is"\\')
    keep(store, "e", "Bahnhofstraße 5")
    keep(store, "f", "a zero\0byte")
    assert [found.session for found in store.search(words)] == ids
    assert [entry.id for entry in store.list(text=words)] == (ids if words.strip() else list("fedcba"))


def test_what_is_found_says_where_it_stands_with_the_words_around(store: Store) -> None:
    keep(store, "desk", "x" * 100 + " the ORDER number " + "y" * 100, agent="billing")
    (found,) = store.search("order")
    assert (found.session, found.agent) == ("desk", "billing")
    assert found.message == store.open("desk").log[0].id
    assert "the ORDER number" in found.snippet
    assert (found.snippet[:2], found.snippet[-2:]) == ("…x", "y…")


def test_a_message_is_found_at_once_while_its_turn_goes_on(store: Store) -> None:
    with store.open("desk") as session:
        session.append(said("a needle"))
        assert [found.message for found in store.search("needle")] == ["a needle"]
        assert store.list()[0].size == len(content(store, "desk"))


def test_a_fork_begins_alike_and_goes_its_own_way(store: Store, talk: Path) -> None:
    store.import_(talk, as_="talk")
    first = store.open("talk").log[0].id
    fork = store.fork("talk", at=first, as_="other")
    assert [message.id for message in fork.log] == [first]
    with fork:
        fork.append(said("another way"))
    header, cut = (read(store.place(id), passphrase=store.passphrase).header for id in ("other", "talk"))
    assert header.origin == Origin("talk", first)
    assert header.id != cut.id
    assert checked(store, "other").ok
    assert content(store, "talk") == talk.read_bytes()
    assert (store.ancestry("other"), store.forks("talk")) == (("other", "talk"), ("other",))


def test_a_whole_fork_has_every_view_and_verifies(store: Store, talk: Path) -> None:
    store.import_(talk, as_="talk")
    store.fork("talk", as_="copy")
    third = store.fork("copy", as_="third")
    assert third.views == Session(talk, passphrase=store.passphrase).views
    assert checked(store, "third").handoffs == 2
    assert store.ancestry("third") == ("third", "copy", "talk")
    store.delete("copy")
    assert store.ancestry("third") == ("third",)


def test_an_ancestry_that_goes_in_a_circle_ends(store: Store) -> None:
    keep(store, "a", "one")
    store.fork("a", as_="b")
    store.delete("a")
    store.fork("b", as_="a")
    assert (store.ancestry("a"), store.ancestry("b")) == (("a", "b"), ("b", "a"))


def test_a_fork_never_stands_between_a_call_and_its_result(store: Store) -> None:
    asked, other = ToolCall("c1", "search"), ToolCall("c2", "search")
    with store.open("desk") as session:
        session.append(said("m1"), MessageRecord(path="desk", message=assistant(asked, other, id="m2", agent="desk")))
        session.append(ToolResultRecord(path="desk", message=tool_result(other, "b", id="m3", agent="desk")))
        session.append(ToolResultRecord(path="desk", message=tool_result(asked, "a", id="m4", agent="desk")))
    for at, calls in (("m2", ("c1", "c2")), ("m3", ("c1",))):
        with pytest.raises(ForkRefused, match=f"{calls[0]!r} has no result there; possible near it: 'm1', 'm4'") as no:
            store.fork("desk", at=at, as_="fork")
        assert (no.value.calls, no.value.nearest) == (calls, ("m1", "m4"))
    assert [entry.id for entry in store.list()] == ["desk"]
    assert len(store.fork("desk", at="m4", as_="fork").log) == 4


def test_a_fork_of_nothing_or_at_nothing_is_refused(store: Store) -> None:
    store.create("empty")
    with pytest.raises(ForkRefused, match="no message"):
        store.fork("empty", as_="fork")
    keep(store, "desk", "one")
    with pytest.raises(ForkRefused, match=r"at message 'two': it holds no such message.*'one'"):
        store.fork("desk", at="two", as_="fork")


def test_what_is_deleted_is_gone_with_all_that_belongs_to_it(store: Store) -> None:
    keep(store, "desk", "a needle")
    store.tag("desk", "vip")
    keep(store, "kept", "a needle")
    store.delete("desk")
    assert [entry.id for entry in store.list()] == ["kept"]
    assert [found.session for found in store.search("needle")] == ["kept"]
    keep(store, "desk", "begun anew")
    assert store.list(text="anew")[0].tags == ()
    assert len(store.open("desk").log) == 1


def test_a_session_that_is_open_for_writing_is_not_deleted(store: Store) -> None:
    with store.open("desk") as session:
        session.append(said("one"))
        with pytest.raises(SessionConflict):
            store.delete("desk")
        session.append(said("two"))
    assert len(store.open("desk").log) == 2


def test_prune_takes_what_is_old_and_keeps_what_has_forks(store: Store) -> None:
    for id in ("a", "b", "c"):
        keep(store, id, "one")
    store.fork("a", as_="fork")
    store.tag("fork", "keep")
    store.tag("b", "x")
    assert store.prune(timedelta(days=1)) == ()
    store.clock = FixedClock(store.clock() + 2 * 86_400_000)
    with store.open("c") as session:
        session.append(said("still here"))
        assert store.prune(timedelta(days=1), tag="x") == ("b",)
        store.clock = FixedClock(store.clock() + 9 * 86_400_000)
        assert store.prune(timedelta(days=1)) == ("fork", "a")
    assert [entry.id for entry in store.list()] == ["c"]


def test_prune_takes_parents_where_it_is_told(store: Store) -> None:
    keep(store, "a", "one")
    store.fork("a", as_="fork")
    store.tag("a", "x")
    store.clock = FixedClock(store.clock() + 2 * 86_400_000)
    assert store.prune(timedelta(days=1), tag="x") == ()
    assert store.prune(timedelta(days=1), tag="x", parents=True) == ("a",)


@pytest.mark.parametrize(
    "ids",
    [
        ["..", ".", "../x", "/etc/x", "a/b", "a\\b"],
        ["Desk", "desk", "DESK"],
        ["a\0b", "a b\n", "é", "e\u0301", "%2F", "北"],
        ["x" * 5000, "x" * 5001, "X" * 300],
        ["a", "a.labels", "a.labels.json", ".hidden", "con"],
    ],
)
def test_an_id_is_any_text_and_none_is_taken_for_another(store: Store, ids: list[str], tmp_path: Path) -> None:
    for id in ids:
        keep(store, id, f"of {id}")
        store.rename(id, id)
    assert {entry.id for entry in store.list()} == set(ids)
    for id in ids:
        assert [message.text for message in store.open(id).log] == [f"of {id}"]
        assert [entry.id for entry in store.list() if entry.title == id] == [id]
    assert {path.parent.name for path in tmp_path.rglob("*.jsonl")} <= {"sessions"}


@pytest.mark.parametrize("id", ["", "\ud800"])
def test_what_cannot_be_an_id_is_refused(store: Store, id: str) -> None:
    with pytest.raises(UnknownSession, match="no session can have this id"):
        store.open(id)


def test_a_second_writer_is_refused_and_nothing_is_lost(store: Store) -> None:
    with store.open("desk") as first:
        first.append(said("one"))
        second = store.open("desk")
        with pytest.raises(SessionConflict):
            second.append(said("two"))
        first.append(said("three"))
    second.append(said("two"))
    second.close()
    assert [message.text for message in store.open("desk").log] == ["one", "three", "two"]


def test_what_was_read_before_another_wrote_is_not_written_on(store: Store) -> None:
    stale = store.open("desk")
    assert stale.views == {}
    keep(store, "desk", "one")
    with pytest.raises(SessionChanged):
        stale.append(said("two"))
    stale.reload()
    stale.append(said("two"))
    stale.close()
    assert len(store.open("desk").log) == 2


def test_a_writer_waits_as_long_as_it_is_told(store: Store) -> None:
    first = store.open("desk")
    first.append(said("one"))
    threading.Timer(0.05, first.close).start()
    with store.open("desk", lock_timeout=30) as second:
        second.append(said("two"))
    assert len(store.open("desk").log) == 2


def test_what_cannot_be_stored_leaves_nothing_behind_and_the_next_writer_works(store: Store) -> None:
    bad = MessageRecord(path=object(), message=user("x", id="bad"))  # type: ignore[arg-type]
    session = store.open("desk")
    with pytest.raises(TypeError):
        session.append(said("good"), bad)
    with store.open("other") as other:
        other.append(said("at once"))
    session.append(said("after"))
    session.close()
    assert [message.text for message in store.open("desk").log] == ["after"]
    assert checked(store, "desk").ok


def test_after_a_write_that_failed_another_connection_writes_at_once(shared_url: str) -> None:
    bad = MessageRecord(path=object(), message=user("x", id="bad"))  # type: ignore[arg-type]
    with open_store(shared_url) as store, open_store(shared_url) as elsewhere:
        session = store.open("desk")
        for _ in range(2):
            with pytest.raises(TypeError):
                session.append(said("good"), bad)
            keep(elsewhere, "other", "at once")
        session.close()
        keep(elsewhere, "desk", "from elsewhere")
        assert [len(store.open(id).log) for id in ("desk", "other")] == [1, 2]


def test_two_that_copy_to_one_id_at_once_leave_one_whole_session(store: Store, talk: Path) -> None:
    outcomes: list[str] = []

    def copy() -> None:
        try:
            outcomes.append(store.import_(talk, as_="copy"))
        except SessionExists:
            outcomes.append("there is one")

    threads = [threading.Thread(target=copy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["copy", *["there is one"] * 7]
    assert content(store, "copy") == talk.read_bytes()


def test_the_last_messages_come_without_the_rest(store: Store) -> None:
    keep(store, "desk", *[f"m{number}" for number in range(50)])
    session = store.open("desk")
    assert [message.text for message in session.tail(3)] == ["m47", "m48", "m49"]
    assert session.tail(99) == session.log
    assert session.tail(0) == ()


def needle() -> MessageRecord:
    return MessageRecord(path="desk", message=user("a needle", id="m1"))


def test_nothing_of_an_encrypted_session_is_kept_in_the_clear(shared_url: str, tmp_path: Path) -> None:
    with open_store(shared_url, passphrase=secret()) as store:
        with store.open("desk") as session:
            session.append(needle())
            session.turn_end()
        store.fork("desk", as_="fork").close()
        found = store.search("needle")
        assert ([each.session for each in found], found.locked) == (["fork", "desk"], ())
    with open_store(shared_url) as store:
        assert all(b"needle" not in content(store, id) for id in ("desk", "fork"))
        assert store.search("needle") == ()
        assert store.search("data") == store.search("encrypted") == ()
    assert all(b"needle" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_search_names_the_encrypted_sessions_that_it_did_not_look_into(plain: Store) -> None:
    keep(plain, "plain", "a needle")
    for id, words in (("ours", WORDS), ("theirs", "another")):
        with plain.create(id, title=f"{id}, locked", passphrase=secret(words)) as session:
            session.append(said("a needle"))
    without, within = plain.search("needle"), plain.search("needle", passphrase=secret())
    assert ([each.session for each in without], set(without.locked)) == (["plain"], {"ours", "theirs"})
    assert ({each.session for each in within}, within.locked) == ({"plain", "ours"}, ("theirs",))
    assert [each.session for each in plain.search("needle", limit=1, passphrase=secret())] == ["ours"]
    assert plain.search("").locked == ()


def test_a_list_names_the_encrypted_sessions_of_which_it_cannot_tell(plain: Store) -> None:
    keep(plain, "plain", "a needle", agent="billing")
    plain.create("secret", title="A refund", passphrase=secret()).close()
    entry = next(entry for entry in plain.list() if entry.encrypted)
    assert (entry.id, entry.title, entry.agents, entry.messages) == ("secret", "A refund", (), None)
    for listed in (plain.list(text="needle"), plain.list(agent="billing")):
        assert ([entry.id for entry in listed], listed.locked) == (["plain"], ("secret",))
    assert plain.list(text="refund").locked == plain.list(tag="vip", agent="billing").locked == ()
    assert plain.list(text="needle", passphrase=secret()).locked == ()


def test_a_passphrase_that_is_missing_or_another_or_not_needed_is_told(plain: Store) -> None:
    keep(plain, "plain", "one")
    with plain.open("secret", passphrase=secret()) as session:
        session.append(said("one"))
    for passphrase, refused in ((None, PassphraseMissing), ("another", WrongPassphrase)):
        for act in (lambda given: plain.open("secret", passphrase=given).log, fork_of(plain, "secret")):
            with pytest.raises(refused):
                act(passphrase)
    with pytest.raises(PassphraseMissing):
        plain.open("secret").append(said("two"))
    with pytest.raises(PassphraseNotNeeded):
        plain.open("plain", passphrase=secret()).append(said("two"))
    assert {entry.id for entry in plain.list()} == {"plain", "secret"}
    assert len(plain.open("secret", passphrase=secret()).log) == 1


def fork_of(store: Store, id: str) -> Callable[[str | None], object]:
    return lambda passphrase: store.fork(id, as_="fork", passphrase=passphrase)


def test_with_a_passphrase_what_is_plain_is_encrypted_on_its_way(plain: Store, tmp_path: Path) -> None:
    with plain.open("plain") as session:
        session.append(needle())
        path = session.export(tmp_path / "sealed.jsonl")
    plain.import_(path, as_="copy", passphrase=secret())
    plain.fork("plain", as_="fork", passphrase=secret()).close()
    plain.continue_from(path, as_="next", passphrase=secret()).close()
    for id in ("copy", "fork", "next"):
        assert b"needle" not in content(plain, id)
        assert [message.text for message in plain.open(id, passphrase=secret()).log] == ["a needle"]
        assert verify(plain.place(id), passphrase=secret()).state == "intact"
    assert verify(plain.place("copy"), passphrase=secret()).sealed


def test_an_encrypted_session_of_another_passphrase_is_not_taken_in(plain: Store, tmp_path: Path) -> None:
    with Session(path := tmp_path / "secret.jsonl", passphrase=secret()) as session:
        session.append(said("one"))
    with pytest.raises(WrongPassphrase):
        plain.import_(path, as_="copy", passphrase="another")
    assert plain.list() == ()
    assert plain.import_(path, as_="copy") == "copy"
    assert content(plain, "copy") == path.read_bytes()


@pytest.mark.parametrize("name", ["sealed.jsonl.gz", "sealed.jsonl.zst"])
def test_a_compressed_export_is_expanded_on_its_way_in(store: Store, talk: Path, name: str, tmp_path: Path) -> None:
    session = Session(talk, passphrase=store.passphrase)
    plain = session.export(tmp_path / "sealed.jsonl")
    store.import_(session.export(tmp_path / name), as_="copy")
    assert checked(store, "copy").sealed
    assert store.open("copy").log == session.log
    if store.passphrase is None:
        assert content(store, "copy") == plain.read_bytes()


def test_a_sealed_session_of_a_store_is_gone_on_with_in_it_and_in_a_file(store: Store, tmp_path: Path) -> None:
    keep(store, "desk", "one")
    store.import_(store.open("desk").export(tmp_path / "sealed.jsonl"), as_="sealed")
    with pytest.raises(SealedSession):
        store.open("sealed").append(said("two"))
    file = Session.continue_from(store.place("sealed"), tmp_path / "next.jsonl", passphrase=store.passphrase)
    for session in (store.continue_from(store.place("sealed"), as_="next"), file):
        with session:
            session.append(said("two"))
        assert [message.text for message in session.log] == ["one", "two"]
        assert session.reading().header.continues == checked(store, "sealed").head
    with pytest.raises(SessionExists):
        store.continue_from(tmp_path / "sealed.jsonl", as_="next")


def test_boundaries_and_differences_are_read_out_of_every_store(store: Store, talk: Path) -> None:
    store.import_(talk, as_="talk")
    crossed = list(crossings(store.place("talk"), passphrase=store.passphrase))
    assert [(each.kind, each.source, each.target) for each in crossed] == [
        ("handoff", "desk", "billing"),
        ("subagent", "billing", "research"),
        ("return", "research", "billing"),
    ]
    first = store.open("talk").log[0].id
    with store.fork("talk", at=first, as_="other") as fork:
        fork.append(said("another way"))
    assert diff(store.open("talk"), Session(talk, passphrase=store.passphrase)).same
    assert not diff(store.open("talk"), store.open("other")).same


def test_titles_tags_and_searches_take_half_a_surrogate_pair_as_messages_do(store: Store) -> None:
    store.create("a", title="a \ud800", tags=["t\udc00"])
    store.rename("a", "b \ud800")
    store.tag("a", "u\ud800")
    store.untag("a", "t\udc00")
    entry = store.entry("a")
    assert (entry.title, entry.tags) == ("b \ufffd", ("u\ufffd",))
    assert list(store.search("\ud800")) == []


def test_half_a_surrogate_pair_is_replaced_and_whole_numbers_keep_every_digit(store: Store, tmp_path: Path) -> None:
    numbers = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3}'
    asked = ToolCall("c1", "scrape", numbers)
    with store.open("desk") as session:
        session.append(MessageRecord(path="desk", message=assistant(asked, id="m1", agent="desk")))
        result = tool_result(asked, "ok \ud83d end \U0001f378 \udcb0 é 北", id="m2", agent="desk")
        session.append(ToolResultRecord(path="desk", message=result))
    said_again, result_again = store.open("desk").log
    assert result_again.text == "ok \ufffd end \U0001f378 \ufffd é 北"
    assert said_again.tool_calls[0].arguments == asked.arguments
    with open_store("memory:") as other:
        other.import_(store.export("desk", tmp_path / "desk.jsonl"), as_="again")
        assert other.open("again", passphrase=store.passphrase).log == store.open("desk").log


@pytest.mark.parametrize("url", ["redis://localhost", "sqlite://", "sqlite:path.db", "nothing", "", "memory://x"])
def test_what_is_no_store_is_refused_with_those_there_are(url: str) -> None:
    with pytest.raises(UnknownStore, match=r"possible: memory:, a folder/, sqlite:///path.db"):
        open_store(url)


_WORKERS = """
import sys, threading
from handrail.filters import user
from handrail.sessions import MessageRecord, open_store
url, process = sys.argv[1:]
with open_store(url, lock_timeout=30) as store:
    def work(number):
        for turn in range(25):
            name = f"{process}-{number}-{turn}"
            with store.open(f"s{number % 4}") as session:
                session.append(MessageRecord(path="desk", message=user(name, id=name)))
    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_many_writers_in_two_processes_wait_for_each_other(shared_url: str) -> None:
    workers = [
        subprocess.Popen([sys.executable, "-c", _WORKERS, shared_url, name], stderr=subprocess.PIPE) for name in "ab"
    ]
    assert b"".join([worker.communicate()[1] for worker in workers]).decode() == ""
    with open_store(shared_url) as store:
        ids = [message.id for entry in store.list() for message in store.open(entry.id).log]
        assert len(ids) == len(set(ids)) == 1000
        for start in {id.rpartition("-")[0] for id in ids}:
            turns = [int(id.rpartition("-")[2]) for id in ids if id.rpartition("-")[0] == start]
            assert turns == list(range(25))
        assert [checked(store, entry.id).state for entry in store.list()] == ["intact"] * 4


_KILLED = """
import os, signal, sys
from handrail.filters import user
from handrail.sessions import Cost, MessageRecord, Passphrase, open_store
url, words = sys.argv[1:]
passphrase = Passphrase(words, cost=Cost(n=1 << 10, p=1)) if words else None
session = open_store(url, passphrase=passphrase).open("desk")
for number in range(20):
    session.append(MessageRecord(path="desk", message=user(f"m{number}", id=f"m{number}")))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_loses_nothing_acknowledged_and_holds_nothing(
    shared_url: str, passphrase: Passphrase | None
) -> None:
    words = WORDS if passphrase is not None else ""
    assert subprocess.run([sys.executable, "-c", _KILLED, shared_url, words], check=False).returncode == -9
    with open_store(shared_url, lock_timeout=10, passphrase=passphrase) as store:
        keep(store, "desk", "after")
        assert [message.text for message in store.open("desk").log] == [*[f"m{at}" for at in range(20)], "after"]
        assert [found.message for found in store.search("m19")] == ["m19"]
        assert checked(store, "desk").ok
