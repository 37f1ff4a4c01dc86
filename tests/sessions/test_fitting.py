"""Whether the records around a boundary fit each other."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.filters import assistant, full, last_user, user
from handrail.sessions import Drift, verify
from sessions.conversations import Conversation, rechained

Change = Callable[[list[bytes]], list[bytes]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A handoff, in billing a sub-agent that is asked, and its answer."""
    with Conversation(tmp_path / "s") as talk:
        talk.say("desk", user("I was charged twice."))
        talk.hand_over("desk", "billing", full())
        talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
        talk.say("billing", assistant("You were.", agent="billing"))
    assert verify(tmp_path / "s").state == "intact"
    return tmp_path / "s"


def without(*marks: bytes) -> Change:
    """Leaves out the lines that hold all of these."""
    return lambda lines: [line for line in lines if not all([mark in line for mark in marks])]


def changed(old: bytes, new: bytes, mark: bytes = b"") -> Change:
    """Changes the lines that hold the mark."""
    return lambda lines: [line.replace(old, new) if mark in line else line for line in lines]


def drifts(path: Path, change: Change) -> tuple[Drift, ...]:
    verdict = verify(rechained(path, change))
    assert verdict.state == "drifted", verdict
    return verdict.drifts


@pytest.mark.parametrize(
    "change",
    [without(b'"kind":"handoff"'), changed(b'"kind":"handoff"', b'"kind":"handofg"')],
    ids=["deleted", "renamed"],
)
def test_a_transfer_that_was_answered_needs_its_handoff(path: Path, change: Change) -> None:
    drift = drifts(path, change)[0]
    assert (drift.handoff, drift.what, drift.source, drift.target) == (0, "record", "desk", "transfer_to_billing")
    assert "no handoff is recorded" in str(drift)


def test_a_transfer_that_was_refused_needs_none(path: Path) -> None:
    def refuse(lines: list[bytes]) -> list[bytes]:
        lines = without(b'"kind":"handoff"')(lines)
        return changed(b'"call_id"', b'"is_error":true,"call_id"', b"goes to billing")(lines)

    assert all(["no handoff is recorded" not in drift.problem for drift in verify(rechained(path, refuse)).drifts])


def test_the_end_of_a_sub_agent_needs_its_start(path: Path) -> None:
    (drift,) = drifts(path, without(b'"event":"start"'))
    assert (drift.what, drift.target) == ("record", "research")
    assert "its start is not" in drift.problem


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (changed(b"Twice indeed.", b"Never.", b'"event":"end"'), "not what was said last"),
        (changed(b"Twice indeed.", b"Never.", b'"kind":"tool_result"'), "another answer"),
        (changed(b"Twice indeed.", b"Never.", b'"kind":"message"'), "not what was said last"),
        (changed(b'"answer":"Twice indeed."', b'"answer":""', b'"event":"end"'), "its answer is missing"),
    ],
    ids=["end", "result", "message", "removed"],
)
def test_the_answer_of_a_sub_agent_is_what_it_said_and_what_its_caller_got(
    path: Path, change: Change, problem: str
) -> None:
    assert any([problem in drift.problem for drift in drifts(path, change)])


def test_a_reworded_answer_is_another_than_what_was_said(path: Path) -> None:
    def reword(lines: list[bytes]) -> list[bytes]:
        lines = changed(b"Twice indeed.", b"[research completed] Tw", b'"kind":"tool_result"')(lines)
        answer = b'"reworded":true,"answer":"[research completed] Tw"'
        return changed(b'"answer":"Twice indeed."', answer, b'"event":"end"')(lines)

    assert verify(rechained(path, reword)).state == "intact"


def test_an_edited_result_holds_another_answer_than_the_one_that_was_given(path: Path) -> None:
    def edit(lines: list[bytes]) -> list[bytes]:
        lines = changed(b"Twice indeed.", b"[hidden]", b'"kind":"tool_result"')(lines)
        return changed(b'"kind":"tool_result"', b'"kind":"tool_result","edited":true', b"[hidden]")(lines)

    assert verify(rechained(path, edit)).state == "intact"


@pytest.mark.parametrize("kind", [b'"kind":"handoff"', b'"event":"start"'], ids=["handoff", "subagent"])
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"source":"', b'"source":"x', "as its source"),
        (b'"target":"', b'"target":"x', "leads to"),
        (b'"target_path":"', b'"target_path":"x', "leads to"),
        (b'"call_id":"', b'"call_id":"x', ""),
    ],
)
def test_a_boundary_names_the_agents_and_the_call_that_it_is_of(
    path: Path, kind: bytes, old: bytes, new: bytes, problem: str
) -> None:
    found = drifts(path, changed(old, new, kind))
    assert found[0].what in ("record", "view")
    assert problem in found[0].problem


def test_a_call_that_something_was_said_after_is_found_all_the_same(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("desk", user("I was charged twice."))
        talk.hand_over("desk", "billing", last_user())
    note = b'{"kind":"view","path":"desk","reason":"a hook looked"}'

    def insert(lines: list[bytes]) -> list[bytes]:
        place = next(place for place, line in enumerate(lines) if b'"kind":"handoff"' in line)
        return [*lines[:place], note, *lines[place:]]

    assert verify(rechained(tmp_path / "s", insert)).state == "intact"


def test_an_answer_whose_filter_cannot_run_here_is_no_drift(path: Path) -> None:
    returns = b'"returns":{"kind":"seal","version":1,"steps":[{"kind":"acme/x","version":1}]},"answer"'
    change = changed(b'"answer"', returns, b'"event":"end"')
    assert verify(rechained(path, change)).state == "intact"


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """One call that asks two sub-agents side by side."""
    with Conversation(tmp_path / "several") as talk:
        talk.say("desk", user("I was charged twice."))
        talk.ask_all("desk", full(), "Look it up.", research="Twice indeed.", archive="Once.")
        talk.ask_all("desk", full(), "Look it up.", research="Twice indeed.", archive="Once.")
    assert str(verify(tmp_path / "several")) == "intact, not sealed"
    return tmp_path / "several"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (changed(b'"part":2', b'"part":3'), "leads to"),
        (changed(b'"part":2,', b""), "leads to"),
        (changed(b'"part":2', b'"part":1', b'"event":"end"'), "its start is not"),
        (without(b'"event":"start"', b'"part":1'), "its start is not"),
        (changed(b"Once.", b"Never.", b'"event":"end"'), "not what was said last"),
    ],
)
def test_each_of_several_sub_agents_is_held_to_its_own_start_and_words(
    several: Path, change: Change, problem: str
) -> None:
    assert any([problem in drift.problem for drift in drifts(several, change)])
