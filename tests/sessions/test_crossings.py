"""What crossed in a session, boundary by boundary."""

from pathlib import Path

import pytest

from handrail.filters import assistant, full, last_n, user
from handrail.sessions import DamagedSession, HandoffRecord, Session, crossings
from sessions.conversations import Conversation


def desk(path: Path, turns: int = 1) -> Path:
    """In every turn a handoff there, a sub-agent asked, and a handoff back."""
    with Conversation(path) as talk:
        for _ in range(turns):
            talk.say("triage", user("I was charged twice."))
            talk.use_tool("triage", "look", "check", backwards=True)
            talk.hand_over("triage", "billing", last_n(4), beside="note")
            talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
            talk.say("billing", assistant("Twice.", agent="billing"))
            talk.hand_over("billing", "triage", full())
    return path


def test_every_boundary_is_given_in_order_with_its_number_line_and_kind(tmp_path: Path) -> None:
    found = list(crossings(desk(tmp_path / "s")))
    assert [(each.number, each.kind, each.source, each.target) for each in found] == [
        (1, "handoff", "triage", "billing"),
        (2, "subagent", "billing", "research"),
        (2, "return", "research", "billing"),
        (3, "handoff", "billing", "triage"),
    ]
    lines = (tmp_path / "s").read_bytes().splitlines()
    assert all([f'"target":"{each.record.target}"'.encode() in lines[each.line - 1] for each in found])


def test_the_seed_is_what_the_target_started_from(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    first = next(crossings(path))
    assert tuple(first.seed) == tuple(Session(path).history("billing")[: len(first.seed)])
    assert first.edge is not None
    assert [message.role for message in first.edge.messages[:2]] == ["user", "assistant"]
    assert first.edge.messages[0].text == "I was charged twice."


def test_an_answer_crosses_as_one_message_of_the_one_who_was_asked(tmp_path: Path) -> None:
    (answer,) = [each for each in crossings(desk(tmp_path / "s")) if each.kind == "return"]
    assert (answer.seed, answer.edge) == ((assistant("Twice indeed.", agent="research"),), None)


def test_each_of_several_answers_crosses_where_it_was_given_with_its_label(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("billing", user("I was charged twice."))
        talk.ask_all("billing", full(), "Look it up.", research="Twice indeed.", archive="Once.")
    found = [(each.number, each.kind, each.source, each.target) for each in crossings(tmp_path / "s")]
    assert found == [
        (1, "subagent", "billing", "research"),
        (2, "subagent", "billing", "archive"),
        (2, "return", "archive", "billing"),
        (1, "return", "research", "billing"),
    ]
    answers = [each.seed for each in crossings(tmp_path / "s") if each.kind == "return"]
    assert answers[0] == (assistant("Once.", agent="archive", sensitivity="secret"),)


def test_long_sessions_give_the_same_as_the_records_say(tmp_path: Path) -> None:
    found = 0
    for each in crossings(desk(tmp_path / "s", 60)):
        if isinstance(each.record, HandoffRecord) and each.edge is not None:
            assert (len(each.edge.view), len(each.seed)) == (each.record.view_length, each.record.seed_length)
            assert each.edge.crossed(each.seed) == each.record.crossed
            found += 1
    assert found == 120


def test_what_crossed_before_a_line_that_was_changed_is_given(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    path.write_bytes(path.read_bytes().replace(b'"text":"Twice."', b'"text":"Once!!"'))
    given = crossings(path)
    assert [next(given).number for _ in range(3)] == [1, 2, 2]
    with pytest.raises(DamagedSession, match="was changed after it was written"):
        next(given)
