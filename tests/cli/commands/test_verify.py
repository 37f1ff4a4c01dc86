"""`handrail verify` and `handrail stats`: whether a session is as it was, and what is in it."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import call
from sessions.conversations import rechained

OWN = """
from handrail.agent import Agent, ScriptedModel, handoff
from handrail.filters import Filter, Messages, call, filter_kind


@filter_kind("own/only-last")
class OnlyLast(Filter, frozen=True):
    def __call__(self, history: Messages) -> Messages:
        return tuple(history[-1:])


billing = Agent("billing", model=ScriptedModel("Yes."))
model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=OnlyLast())])
"""


def test_an_intact_session_ends_with_zero_sealed_or_not(handrail: Run, desk_session: Path) -> None:
    handrail("export", desk_session, "-o", "sealed.jsonl")
    outcome = handrail("verify", desk_session, "sealed.jsonl")
    assert outcome.returncode == 0
    assert f"{desk_session}: intact, not sealed" in outcome.stdout
    assert "sealed.jsonl: intact, sealed" in outcome.stdout
    assert "3 boundaries run again" in outcome.stdout


def test_a_changed_word_is_tampering_and_ends_with_one(handrail: Run, desk_session: Path) -> None:
    desk_session.write_bytes(
        desk_session.read_bytes().replace(b"charged twice on invoice", b"charged once on invoice", 1)
    )
    outcome = handrail("verify", desk_session, "--json")
    said = json.loads(outcome.stdout)
    assert outcome.returncode == 1
    assert (said["state"], said["ok"]) == ("tampered", False)
    assert isinstance(said["line"], int)


@pytest.mark.parametrize(("damaged", "code"), [(False, 2), (True, 1)])
def test_a_file_that_cannot_be_read_is_told_and_the_others_are_verified(
    handrail_here: Run, desk_session: Path, tmp_path: Path, damaged: bool, code: int
) -> None:
    (tmp_path / "notes.txt").write_text("Not a session.")
    (tmp_path / "other.jsonl").write_bytes(
        desk_session.read_bytes().replace(b"parcel 8841", b"parcel 8842" * damaged or b"parcel 8841")
    )
    outcome = handrail_here("verify", "nowhere.jsonl", "notes.txt", "other.jsonl", desk_session)
    assert outcome.returncode == code
    assert [line.split(":")[1] for line in outcome.stderr.splitlines()] == [" nowhere.jsonl", " notes.txt"]
    assert f"{desk_session}: intact" in outcome.stdout


def test_a_broken_line_is_named_and_ends_with_one(handrail_here: Run, desk_session: Path) -> None:
    lines = desk_session.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3][:40] + b"\n"
    desk_session.write_bytes(b"".join(lines))
    outcome = handrail_here("verify", desk_session)
    assert outcome.returncode == 1
    assert "damaged at line 4, not sealed" in outcome.stdout
    assert "line 4" in one_line(handrail_here("stats", desk_session), 1)
    assert "line 4" in one_line(handrail_here("filter", desk_session), 1)


def test_a_torn_end_is_told_and_is_no_failure(handrail: Run, desk_session: Path) -> None:
    whole = desk_session.read_bytes()
    desk_session.write_bytes(whole[:-30])
    outcome = handrail("verify", desk_session)
    assert outcome.returncode == 0
    assert f"{desk_session}: torn, not sealed" in outcome.stdout
    assert desk_session.read_bytes() == whole[:-30]


def test_a_boundary_whose_records_give_something_else_now_has_drifted_and_ends_with_one(
    handrail_here: Run, desk_session: Path
) -> None:
    changed = rechained(
        desk_session, lambda lines: [line.replace(b"charged twice on", b"charged once on", 1) for line in lines]
    )
    outcome = handrail_here("verify", changed)
    assert outcome.returncode == 1
    assert f"{changed}: drifted, not sealed" in outcome.stdout
    assert "handoff 1 (triage -> billing), step" in outcome.stdout


def test_a_filter_that_is_only_code_cannot_run_here_and_ends_with_one(handrail: Run, tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=lambda history: history[-1:])])
    triage.run_sync("Twice?", session=str(tmp_path / "a.jsonl"))
    outcome = handrail("verify", "a.jsonl")
    assert outcome.returncode == 1
    assert "not runnable" in outcome.stdout
    assert handrail("verify", "a.jsonl", "--integrity-only").returncode == 0


def test_a_registered_filter_of_ones_own_runs_again_once_its_module_is_imported(handrail: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    assert handrail("run", "own:triage", "Twice?", "--session", "a.jsonl").returncode == 0
    assert "not runnable" in handrail("verify", "a.jsonl").stdout
    outcome = handrail("verify", "a.jsonl", "--import", "own")
    assert outcome.returncode == 0
    assert "1 boundary run again; head" in outcome.stdout


def test_the_head_is_printed_and_another_one_than_was_noted_ends_with_one(
    handrail_here: Run, desk_session: Path
) -> None:
    head = json.loads(handrail_here("verify", desk_session, "--json").stdout)["head"]
    assert f"; head {head}" in handrail_here("verify", desk_session, "--head", head).stdout
    assert handrail_here("verify", desk_session, "--head", head).returncode == 0
    desk_session.write_bytes(b"".join(desk_session.read_bytes().splitlines(keepends=True)[:5]))
    outcome = handrail_here("verify", desk_session, "--head", head)
    assert outcome.returncode == 1
    assert "another head: it is " in outcome.stdout
    assert "--head is the head of one file" in one_line(handrail_here("verify", "a", "b", "--head", head), 2)


def test_a_file_that_must_be_sealed_and_is_not_ends_with_one(handrail_here: Run, desk_session: Path) -> None:
    assert handrail_here("verify", desk_session, "--require-sealed").returncode == 1
    handrail_here("export", desk_session, "-o", "sealed.jsonl")
    assert handrail_here("verify", "sealed.jsonl", "--require-sealed").returncode == 0


def test_of_an_import_nothing_is_said_of_boundaries(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    handrail_here("import", "chat.json")
    outcome = handrail_here("verify", "chat.session.jsonl")
    assert (outcome.returncode, "bound" in outcome.stdout) == (0, False)


def test_one_bad_file_among_good_ones_ends_with_one(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(desk_session.read_bytes().replace(b"8841", b"8842", 1))
    outcome = handrail_here("verify", "bad.jsonl", desk_session)
    assert outcome.returncode == 1
    assert "bad.jsonl: tampered" in outcome.stdout
    assert f"{desk_session}: intact" in outcome.stdout


@pytest.mark.parametrize("command", ["verify", "stats", "export", "filter"])
def test_a_session_of_a_newer_version_is_refused_with_both_versions(
    handrail_here: Run, desk_session: Path, command: str
) -> None:
    desk_session.write_bytes(desk_session.read_bytes().replace(b'"version":1', b'"version":2', 1))
    assert "version 2; this Handrail reads version 1" in one_line(handrail_here(command, desk_session), 2)


@pytest.mark.parametrize("command", ["verify", "stats", "export"])
def test_what_is_no_session_says_what_to_do(handrail_here: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    assert "`handrail import` reads other transcripts" in one_line(handrail_here(command, "chat.json"), 2)


def test_stats_count_what_a_session_holds(handrail_here: Run, desk_session: Path) -> None:
    said = json.loads(handrail_here("stats", desk_session, "--json").stdout)
    assert said["handoffs"] == {"triage -> billing": 1, "billing -> triage": 1}
    assert said["tools"]["find_invoice"] == 1
    assert said["roles"]["user"] == 3
    assert said["records"]["subagent"] == 2
    assert said["format"] == "handrail-session 1 (draft)"


def test_stats_read_well_and_take_standard_input(handrail: Run, desk_session: Path) -> None:
    outcome = handrail("stats", "-", input=desk_session.read_text())
    assert outcome.stdout.startswith("-: handrail-session 1 (draft), not sealed\n")
    assert "handoffs   2 (triage -> billing 1, billing -> triage 1)" in outcome.stdout
