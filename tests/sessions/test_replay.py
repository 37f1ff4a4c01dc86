"""Checking a session: every line, and every boundary again."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from handrail.filters import (
    Filter,
    History,
    Message,
    assistant,
    compose,
    custom,
    custom_filter,
    default_handoff_filter,
    full,
    last_n,
    strip_tool_calls,
    user,
)
from handrail.sessions import HandoffRecord, Journal, Verdict, export, read, verify
from handrail.sessions.records import AnyRecord, Footer, Header
from sessions.conversations import Conversation


@custom_filter("sessions-test/last-two")
def last_two(history: History) -> tuple[Message, ...]:
    return tuple(history[-2:])


def desk(path: Path, filter: Filter | None = None) -> Path:
    """Three handoffs among two agents, and a sub-agent."""
    with Conversation(path) as talk:
        talk.say("triage", user("I was charged twice."))
        talk.use_tool("triage", "look", "check", backwards=True)
        talk.hand_over("triage", "billing", filter or default_handoff_filter(), beside="note")
        talk.say("billing", assistant("Which one?", agent="billing"))
        talk.ask("billing", "research", full(), "Look it up.", "Twice indeed.")
        talk.hand_over("billing", "triage", compose(last_n(4), strip_tool_calls()))
        talk.say("triage", user("And now?"))
        talk.hand_over("triage", "billing", full())
    return path


def rewritten(path: Path, change: Callable[[AnyRecord], AnyRecord]) -> Verdict:
    """The verdict on the same records with a change, in a chain of their own."""
    made = path.with_name("rewritten.jsonl")
    with Journal.create(made, fsync="never") as journal:
        journal.append(*[change(record) for record in read(path).records() if not isinstance(record, Header)])
    return verify(made)


def test_an_intact_session_verifies_every_boundary(tmp_path: Path) -> None:
    verdict = verify(desk(tmp_path / "s"))
    assert (verdict.state, verdict.ok, verdict.sealed, verdict.handoffs) == ("intact", True, False, 4)
    assert str(verdict) == "intact, not sealed"


def test_a_sealed_copy_verifies_as_sealed(tmp_path: Path) -> None:
    verdict = verify(export(desk(tmp_path / "s"), tmp_path / "sealed"))
    assert (verdict.state, verdict.sealed) == ("intact", True)


def test_one_changed_byte_anywhere_is_never_intact(tmp_path: Path) -> None:
    data = export(desk(tmp_path / "s"), tmp_path / "sealed").read_bytes()
    changed = tmp_path / "changed"
    for place in range(200, len(data) - 1, 97):
        changed.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        line = data[:place].count(b"\n") + 1
        verdict = verify(changed, integrity_only=True)
        assert verdict.state in ("damaged", "tampered")
        assert verdict.line is not None
        assert abs(verdict.line - line) <= 1


def test_a_missing_line_and_a_moved_line_are_tampering(tmp_path: Path) -> None:
    lines = desk(tmp_path / "s").read_bytes().splitlines(keepends=True)
    changed = tmp_path / "changed"
    for made in ([*lines[:4], *lines[5:]], [*lines[:4], lines[5], lines[4], *lines[6:]]):
        changed.write_bytes(b"".join(made))
        verdict = verify(changed)
        assert (verdict.state, verdict.ok) == ("tampered", False)
        assert verdict.line in (4, 5)


def test_a_sealed_copy_cut_at_a_line_is_not_sealed_any_more(tmp_path: Path) -> None:
    sealed = export(desk(tmp_path / "s"), tmp_path / "sealed")
    lines = sealed.read_bytes().splitlines(keepends=True)
    sealed.write_bytes(b"".join(lines[:-1]))
    assert (verify(sealed).state, verify(sealed).sealed) == ("intact", False)
    sealed.write_bytes(b"".join(lines[:-2] + lines[-1:]))
    assert verify(sealed).state == "tampered"


@pytest.mark.parametrize("field", ["counts", "head"])
def test_a_footer_that_does_not_fit_is_tampering(tmp_path: Path, field: str) -> None:
    sealed = export(desk(tmp_path / "s"), tmp_path / "sealed")
    footer = list(read(sealed).records())[-1]
    assert isinstance(footer, Footer)
    old, new = (
        (f'"message":{footer.counts["message"]}', '"message":1')
        if field == "counts"
        else (f'"head":"{footer.head}"', f'"head":"{"0" * 64}"')
    )
    sealed.write_text(sealed.read_text().replace(old, new))
    assert (verify(sealed).state, verify(sealed).line) == ("tampered", sum(1 for _ in read(sealed)))


def test_a_broken_line_is_damage_with_its_number(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], b"{broken\n", *lines[6:]]))
    verdict = verify(path)
    assert (verdict.state, verdict.line) == ("damaged", 7)
    assert "it is not JSON" in str(verdict)


def test_a_torn_tail_is_told_and_the_rest_is_checked(tmp_path: Path) -> None:
    path = desk(tmp_path / "s")
    path.write_bytes(path.read_bytes()[:-9])
    verdict = verify(path)
    assert (verdict.state, verdict.ok) == ("torn", True)
    assert verdict.torn is not None


def test_a_changed_message_before_a_handoff_makes_its_view_drift(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        line = msgspec.json.encode(record).replace(b"charged twice", b"charged once")
        return msgspec.json.decode(line, type=type(record))

    verdict = rewritten(desk(tmp_path / "s"), change)
    assert verdict.state == "drifted"
    assert {drift.what for drift in verdict.drifts} == {"view"}
    assert verdict.drifts[0].handoff == 1


def test_a_filter_that_gives_something_else_now_is_a_drift_that_names_the_message(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        if isinstance(record, HandoffRecord) and record.target == "triage":
            return msgspec.structs.replace(
                record, filter={"kind": "seal", "version": 1, "steps": [last_n(1).descriptor]}
            )
        return record

    verdict = rewritten(desk(tmp_path / "s"), change)
    (drift,) = verdict.drifts
    assert (drift.handoff, drift.source, drift.target, drift.what) == (3, "billing", "triage", "seed")
    assert drift.message
    assert "handoff 3 (billing -> triage)" in str(verdict)


def test_a_message_that_crosses_with_another_value_names_the_field(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("a", user("Hello"))
        talk.hand_over(
            "a",
            "b",
            custom(lambda history: [message.replace(pinned=True) for message in history], name="sessions-test/louder"),
        )
    custom_filter("sessions-test/louder")(
        lambda history: [message.replace(sensitivity="secret") for message in history]
    )
    (drift,) = verify(tmp_path / "s").drifts
    assert (drift.message, drift.field) == ("m1", "sensitivity")


def test_a_record_whose_parts_do_not_fit_each_other_is_a_drift(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        return msgspec.structs.replace(record, seed="0" * 64) if isinstance(record, HandoffRecord) else record

    assert {drift.what for drift in rewritten(desk(tmp_path / "s"), change).drifts} == {"record"}


def test_a_registered_function_runs_again_and_an_anonymous_one_is_told_apart(tmp_path: Path) -> None:
    assert verify(desk(tmp_path / "named", custom("sessions-test/last-two"))).state == "intact"
    verdict = verify(desk(tmp_path / "anonymous", custom(lambda history: history[-2:])))
    assert (verdict.state, verdict.ok, verdict.drifts) == ("not runnable", False, ())
    (missing,) = verdict.not_runnable
    assert (missing.handoff, missing.target) == (1, "billing")


def test_a_filter_of_an_unknown_kind_is_not_runnable(tmp_path: Path) -> None:
    def change(record: AnyRecord) -> AnyRecord:
        if isinstance(record, HandoffRecord):
            return msgspec.structs.replace(
                record, filter={"kind": "seal", "version": 1, "steps": [{"kind": "acme/x", "version": 3}]}
            )
        return record

    verdict = rewritten(desk(tmp_path / "s"), change)
    assert verdict.state == "not runnable"
    assert "acme/x" in verdict.not_runnable[0].missing


def test_integrity_alone_leaves_the_boundaries_out(tmp_path: Path) -> None:
    verdict = verify(desk(tmp_path / "s"), integrity_only=True)
    assert (verdict.state, verdict.handoffs) == ("intact", 0)
    assert verdict.counts == verify(tmp_path / "s").counts


def test_progress_reaches_the_end_of_the_file(tmp_path: Path) -> None:
    told: list[int] = []
    verify(desk(tmp_path / "s"), progress=told.append)
    assert told[-1] == (tmp_path / "s").stat().st_size
