"""A session as the agents that go on with it see it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from handrail.filters import assistant, full, user
from handrail.sessions import (
    AgentRecord,
    BudgetRecord,
    DamagedSession,
    HandoffRecord,
    Journal,
    JournalFailed,
    MessageRecord,
    ModelCallRecord,
    NotASession,
    Session,
    SessionChanged,
    SessionConflict,
    SessionExists,
    Spent,
    StateRecord,
    ToolCallRecord,
    Unknown,
    UnknownView,
    Usage,
    export,
    import_file,
    read,
    verify,
)
from sessions.conversations import Conversation, full_disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A conversation in which the desk handed over to billing, and billing asked research."""
    path = tmp_path / "talk.jsonl"
    with Conversation(path) as talk:
        talk.say("desk", user("I was charged twice."))
        talk.hand_over("desk", "billing", full())
        talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
        talk.say("billing", assistant("You were.", agent="billing"))
    return path


def said(text: str) -> MessageRecord:
    return MessageRecord(path="desk", message=user(text, id=text))


def test_a_session_that_is_not_there_yet_is_empty_and_made_at_the_first_write(tmp_path: Path) -> None:
    session = Session(tmp_path / "new.jsonl")
    assert (session.views, session.handoffs, session.active_agent, session.log) == ({}, [], None, ())
    assert not session.path.exists()
    Path(str(session.path)).touch()
    assert (session.log, session.tail(1), list(session.records())) == ((), (), [])
    session.append(said("one"))
    assert [message.text for message in session.log] == ["one"]
    session.close()
    assert verify(session.path).state == "intact"


def test_each_agent_has_its_own_view_and_the_log_has_everything_once(path: Path) -> None:
    session = Session(path)
    assert [message.text for message in session.history("billing")] == [
        "I was charged twice.",
        "",
        "Twice indeed.",
        "You were.",
    ]
    assert session.history("desk")[1].tool_calls[0].transfer
    assert len({message.id for message in session.log}) == len(session.log) == 7


def test_the_active_agent_is_the_target_of_the_last_handoff(path: Path) -> None:
    session = Session(path)
    assert session.active_agent == "billing"
    assert [(handoff.source, handoff.target) for handoff in session.handoffs] == [("desk", "billing")]
    assert session.history() == session.history("billing")


def test_a_handoff_within_a_sub_agents_call_does_not_set_the_active_agent(tmp_path: Path) -> None:
    session = Session(tmp_path / "s")
    session.append(HandoffRecord(path="desk/a@t", source="a", target="b", target_path="desk/b@t"))
    assert (len(session.handoffs), session.active_agent) == (1, None)
    session.close()
    assert Session(session.path).active_agent is None


def test_what_is_appended_is_noted_at_once(tmp_path: Path) -> None:
    with Session(tmp_path / "s") as session:
        assert session.usage == Usage()
        session.append(
            AgentRecord(name="desk", model="m"), ModelCallRecord(path="desk", step=1, usage=Usage(10, 2, requests=1))
        )
        session.append(ModelCallRecord(path="desk", step=2, usage=Usage(5, 1, requests=1)))
        assert session.usage == Usage(15, 3, requests=2)
        assert session.agents["desk"].model == "m"
    assert Session(session.path).usage == session.usage


def test_what_a_long_run_appends_is_told_as_its_file_tells_it(tmp_path: Path) -> None:
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        assert session.spent == Spent()
        for step in range(1, 3_001):
            session.append(ModelCallRecord(path="desk", step=step, usage=Usage(2, 1, requests=1)))
            session.append(ToolCallRecord(path="desk", call_id=f"c{step}", name="add"))
        assert (session.spent.steps, session.spent.tool_calls, session.usage) == (
            3_000,
            3_000,
            Usage(6_000, 3_000, requests=3_000),
        )
        assert Session(session.path).spent == session.spent


def test_what_is_appended_is_told_as_its_file_tells_it_whatever_kind_it_is(tmp_path: Path) -> None:
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        assert session.spent == Spent()
        session.append(said("one"))
        for purpose in ("answer", "summary"):
            session.append(ModelCallRecord(path="desk", step=1, purpose=purpose, usage=Usage(1, requests=1)))
        for attempt in (1, 2):
            session.append(ToolCallRecord(path="desk", call_id="c", name="add", attempt=attempt))
        session.append(StateRecord(path="desk", values=msgspec.Raw(b'{"tone":2}')))
        assert (session.spent.steps, session.spent.tool_calls, session.usage.requests) == (1, 1, 2)
        assert session.state == {"tone": 2}
        again = Session(session.path)
        assert (again.spent, again.usage, again.state) == (session.spent, session.usage, session.state)


CALL = ModelCallRecord(path="desk", step=1, usage=Usage(1, requests=1))
HANDOFF = HandoffRecord(path="desk", source="a", target="b", target_path="b")


def test_an_interrupt_while_a_session_takes_in_what_was_appended_loses_no_part_of_it(
    tmp_path: Path, stopped: Callable[[float, Callable[[], object]], bool]
) -> None:
    often = 0
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        assert session.spent == Spent()
        for time in range(1, 101):
            session.append(*[CALL, CALL, HANDOFF] * 250)
            often += stopped(time * 2e-6, lambda: session.spent)
            assert session.spent.steps == session.usage.requests == 500 * time
            assert session.spent.handoffs == len(session.handoffs) == 250 * time
    assert often > 10


@pytest.mark.parametrize("fsync", ["always", "never"])
def test_after_an_interrupt_while_it_appends_a_session_tells_what_its_file_tells(
    tmp_path: Path, fsync: Literal["always", "never"], stopped: Callable[[float, Callable[[], object]], bool]
) -> None:
    often = 0
    with Session(tmp_path / "s.jsonl", fsync=fsync) as session:
        session.append(CALL)
        for time in range(1, 101):
            assert session.spent == Session(session.path).spent
            often += stopped(time * 2e-6, lambda: session.append(CALL, CALL))
        session.append(CALL)
        assert session.spent == Session(session.path).spent
    assert often > 10
    assert verify(session.path).state == "intact"


def test_a_session_of_messages_alone_names_the_agent_that_its_file_names(tmp_path: Path) -> None:
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        assert session.active_agent is None
        session.append(said("one"))
        assert session.active_agent == Session(session.path).active_agent == "desk"


def test_what_a_run_used_is_not_counted_again_where_its_calls_come_in_with_its_end(tmp_path: Path) -> None:
    usage = Usage(2, 1, requests=1)
    with Session(tmp_path / "s.jsonl", fsync="never") as session:
        assert session.spent == Spent()
        for run in range(3):
            session.append(ModelCallRecord(path="desk", step=1, usage=usage))
            session.append(ToolCallRecord(path="desk", call_id=f"c{run}", name="add"))
            session.append(BudgetRecord(path="desk", run=f"r{run}", spent=Spent(steps=1, tool_calls=1, usage=usage)))
        session.append(ModelCallRecord(path="desk", step=1, usage=usage))
        assert (session.spent.steps, session.spent.tool_calls, session.spent.usage.requests) == (4, 3, 4)
        assert Session(session.path).spent == session.spent


def test_an_agent_without_a_view_is_an_error_that_names_those_with_one(path: Path) -> None:
    with pytest.raises(UnknownView, match="possible: billing, desk") as caught:
        Session(path).history("sales")
    assert caught.value.known == ("billing", "desk")


def test_without_a_name_the_view_of_the_agent_that_goes_on_is_meant(tmp_path: Path) -> None:
    with Session(tmp_path / "s") as session:
        session.append(said("one"))
        session.reload()
        session.append(MessageRecord(path="other", message=user("two")))
        session.reload()
        assert session.history() == session.history("desk") != session.history("other")


def test_two_writers_do_not_mix(path: Path) -> None:
    with Session(path) as first, Session(path) as second:
        first.append(said("one"))
        with pytest.raises(SessionConflict):
            second.append(said("two"))
    with Session(path) as third:
        third.append(said("three"))


def test_a_session_that_another_wrote_to_since_it_was_read_is_read_again_first(path: Path) -> None:
    stale = Session.open(path)
    with Session(path) as other:
        other.append(said("one"))
    with pytest.raises(SessionChanged):
        stale.append(said("two"))
    stale.reload()
    stale.append(said("two"))
    stale.close()
    assert [message.text for message in Session(path).log[-2:]] == ["one", "two"]


def test_a_torn_end_is_told_and_cut_at_the_first_write(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"prev":"torn')
    session = Session.open(path)
    assert session.torn is not None
    session.append(said("after"))
    session.close()
    assert session.torn is None
    assert verify(path).state == "intact"


def test_a_closed_session_can_be_written_to_again(path: Path) -> None:
    session = Session(path)
    session.append(said("one"))
    session.close()
    session.append(said("two"))
    session.turn_end()
    session.before_effect()
    session.close()
    assert [message.text for message in session.log[-2:]] == ["one", "two"]


def test_a_sealed_copy_is_gone_on_from_in_a_session_of_its_own(path: Path, tmp_path: Path) -> None:
    sealed = Session(path).export(tmp_path / "sealed.jsonl")
    session = Session.continue_from(sealed, tmp_path / "next.jsonl")
    assert session.views == Session(path).views
    session.append(said("more"))
    session.close()
    assert read(session.path).header.continues == read(sealed).head
    assert verify(session.path).state == "intact"
    with pytest.raises(SessionExists):
        Session.continue_from(sealed, tmp_path / "next.jsonl")


def test_a_record_that_names_what_never_was_is_an_error_with_its_line(path: Path) -> None:
    with Session(path) as session:
        session.append(HandoffRecord(path="desk", source="desk", target="x", target_path="x", crossed=((5, 90),)))
    lines = len(path.read_bytes().splitlines())
    with pytest.raises(DamagedSession) as caught:
        Session.open(path)
    assert caught.value.line == lines


def test_after_a_refused_record_the_session_is_what_the_file_holds(path: Path) -> None:
    session = Session.open(path, fsync="never")
    before = dict(session.views)
    with full_disk(path.stat().st_size + 300), pytest.raises(JournalFailed):
        session.append(said("x" * 5000), AgentRecord(name="lost"))
    session.views["desk"] = session.views["desk"].enter((user("lost", id="lost"),))
    assert (dict(session.views), "lost" in session.agents) == (before, False)
    with pytest.raises(JournalFailed):
        session.append(said("past the gap"))
    session.reload()
    session.append(said("after"))
    session.close()
    assert session.log[-1].text == "after"
    assert verify(path).state == "intact"


def test_another_run_goes_on_after_a_refused_record_from_what_the_file_holds(path: Path) -> None:
    session = Session.open(path)
    with session.in_use(), full_disk(path.stat().st_size + 300), pytest.raises(JournalFailed):
        session.append(said("x" * 5000))
    with session.in_use():
        session.append(said("after"))
    session.close()
    assert [message.text for message in session.log[-2:]] == ["You were.", "after"]


@pytest.mark.parametrize(
    "line", [b'{"kind":"decision","n":NaN,"big":%b}' % (b"9" * 5000), b'{"n":1, "kind":"decision"}']
)
def test_lines_of_any_json_are_gone_on_from_as_they_are(path: Path, tmp_path: Path, line: bytes) -> None:
    with Journal.open(path) as journal:
        journal.append(Unknown("decision", line))
    Session.continue_from(export(path, tmp_path / "sealed.jsonl"), tmp_path / "next.jsonl").close()
    assert (tmp_path / "next.jsonl").read_bytes().splitlines()[-1].endswith(line[1:])
    assert verify(tmp_path / "next.jsonl").state == "intact"


def test_a_sealed_copy_that_is_not_whole_is_not_gone_on_from_and_nothing_is_left(path: Path, tmp_path: Path) -> None:
    sealed = Session(path).export(tmp_path / "sealed.jsonl")
    sealed.write_bytes(sealed.read_bytes().replace(b"charged twice", b"charged ONCE!"))
    with pytest.raises(DamagedSession, match="does not follow"):
        Session.continue_from(sealed, tmp_path / "next.jsonl")
    with pytest.raises(JournalFailed):
        Session.continue_from(path, tmp_path / "nowhere" / "next.jsonl")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["sealed.jsonl", "talk.jsonl"]


def test_a_name_that_no_file_can_have_is_told_as_what_it_is(path: Path, tmp_path: Path) -> None:
    for write in (Session.continue_from, export):
        with pytest.raises(JournalFailed, match="zero byte"):
            write(path, tmp_path / "a\0b")
    with pytest.raises(JournalFailed, match="zero byte"):
        Session(tmp_path / "a\0b").append(said("one"))
    (tmp_path / "chat.json").write_text('[{"role":"user","content":"Hi"}]')
    with pytest.raises(JournalFailed, match="zero byte"):
        import_file(tmp_path / "chat.json", tmp_path / "a\0b")
    for look in (verify, read):
        with pytest.raises(OSError, match="zero byte"):
            look("a\0b")


@pytest.mark.parametrize("place", ["nowhere/s", "file/s", "loop", "a\0b"])
def test_where_no_file_can_be_there_is_no_session_yet_and_who_writes_is_told_why(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    session = Session(tmp_path / place)
    assert (session.views, session.usage) == ({}, Usage())
    with pytest.raises(JournalFailed, match=r"No such file|Not a directory|symbolic links|zero byte"):
        session.append(said("one"))


@pytest.mark.parametrize("place", ["pipe", "/dev/full"])
def test_a_session_that_is_no_regular_file_is_refused_before_anything_is_said(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotASession):
        Session(tmp_path / place).views  # noqa: B018


def test_a_file_that_is_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(NotASession):
        Session.open(tmp_path / "notes")
