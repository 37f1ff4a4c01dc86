"""`handrail audit`: what crossed in past sessions that may not."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run, one_line
from handrail.agent import Agent, ScriptedModel, handoff, to_tool, tool
from handrail.filters import assistant, call, full, user
from handrail.sessions import Session, read
from handrail.sessions.records import HandoffRecord
from servers.forks import Outcome

NOTHING_OF_PARCELS = """
[[rule]]
name = "billing hears no numbers"
source = "triage"
target = "bill*"
forbid_patterns = ['\\d{4}']
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "desk.toml").write_text(NOTHING_OF_PARCELS)
    return "desk.toml"


def rule(tmp_path: Path, text: str) -> str:
    (tmp_path / "one.toml").write_text(f"[[rule]]\n{text}\n")
    return "one.toml"


def told(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def one(found: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(found) == 1
    return found[0]


def test_a_table_tells_what_crossed_that_may_not(handrail: Run, desk_session: Path, policy: str) -> None:
    outcome = handrail("audit", desk_session, "--policy", policy)
    assert outcome.returncode == 1, outcome.stderr
    assert outcome.stderr == ""
    row = next(line for line in outcome.stdout.splitlines() if "triage → billing" in line)
    assert "billing hears no numbers (line 2)" in row
    assert "it matches '\\\\d{4}'" in row
    assert " part 0 " in row
    assert outcome.stdout.splitlines()[-1].startswith("1 session, ")
    assert "8841" not in outcome.stdout


def test_clean_sessions_end_with_zero_and_are_counted(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    outcome = handrail_here("audit", desk_session, "--policy", rule(tmp_path, "max_messages = 100"))
    assert (outcome.returncode, outcome.stdout.endswith("nothing crossed that may not\n")) == (0, True)
    assert "1 session, " in outcome.stdout
    assert ", 4 crossings audited: " in outcome.stdout


def test_as_json_each_session_is_a_line_with_every_violation(
    handrail_here: Run, desk_session: Path, policy: str
) -> None:
    (said,) = told(handrail_here("audit", desk_session, "--policy", policy, "--json"))
    assert (said["ok"], said["state"], said["crossings"]) == (False, "crossed", 4)
    violation = said["violations"][0]
    record = next(record for _, number, record in _lines(desk_session) if number == violation["line"])
    assert isinstance(record, HandoffRecord)
    assert (violation["source"], violation["target"], violation["step"]) == ("triage", "billing", record.step)
    assert (violation["handoff"], violation["rule_line"], violation["part"]) == (1, 2, 0)


def _lines(path: Path) -> list[tuple[None, int, object]]:
    return [(None, number, record) for number, _, record in read(path)]


def test_a_folder_is_audited_with_all_folders_in_it(
    handrail_here: Run, desk_session: Path, policy: str, tmp_path: Path
) -> None:
    for place in ("past/b.jsonl", "past/deep/a.jsonl"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(desk_session.read_bytes())
    (tmp_path / "past" / "other.jsonl").write_text('{"not": "a session"}\n')
    (tmp_path / "past" / "notes.txt").write_text("hello")
    outcome = handrail_here("audit", "past", "--policy", policy, "--json")
    assert [said["file"] for said in told(outcome)] == ["past/b.jsonl", "past/deep/a.jsonl"]
    assert handrail_here("audit", "past", "--policy", policy).stdout.endswith("; 1 other files passed over\n")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_session_of_a_folder_that_lost_its_header_is_told_and_not_passed_over(
    handrail_here: Run, desk_session: Path, tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "past").mkdir()
    lines = desk_session.read_bytes().splitlines(keepends=True)
    (tmp_path / "past" / "whole.jsonl").write_bytes(b"".join(lines))
    wiped = b"\0" * ((1 << 20) - 40) + b"\n"  # so that the next link lies across what is read at once
    for name, rest in [
        ("headless", lines[1:]),
        ("beheaded", [b"{}\n", *lines[1:]]),
        ("tail", lines[-1:]),
        ("torn", [lines[0][:50]]),
        ("wiped", [wiped, lines[-1]]),
    ]:
        (tmp_path / "past" / f"{name}.jsonl").write_bytes(pack(b"".join(rest)))
    (tmp_path / "past" / "empty.session.jsonl").write_bytes(b"")
    outcome = handrail_here("audit", "past", "--policy", rule(tmp_path, "max_messages = 100"))
    assert outcome.returncode != 0
    assert outcome.stdout.endswith("nothing crossed that may not; 6 unreadable\n")


def test_a_damaged_session_is_told_and_the_others_go_on(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    good = rule(tmp_path, "max_messages = 100")
    lines = desk_session.read_bytes().splitlines(keepends=True)
    (tmp_path / "a.jsonl").write_bytes(b"".join([*lines[:5], b"{broken\n", *lines[6:]]))
    (tmp_path / "b.jsonl").write_bytes(b"".join(lines).replace(b"8841", b"8842", 1))
    outcome = handrail_here("audit", "a.jsonl", "b.jsonl", desk_session, "--policy", good)
    assert outcome.returncode == 1
    assert outcome.stdout.startswith("3 sessions, ")
    assert outcome.stdout.endswith("nothing crossed that may not; 2 damaged\n")
    assert "a.jsonl, line 6: " in outcome.stderr
    assert "was changed after it was written" in outcome.stderr


def test_a_torn_end_is_audited_up_to_it(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    desk_session.write_bytes(desk_session.read_bytes()[:-30])
    assert handrail_here("audit", desk_session, "--policy", rule(tmp_path, "max_messages = 100")).returncode == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[rule]]\nmax_teir = 'public'", "p.toml, line 2: a rule has no key 'max_teir'; did you mean 'max_tier'?"),
        ("[[rule]]\nmax_tier = ", "p.toml, line 2: invalid value"),
    ],
)
def test_a_policy_with_a_mistake_is_one_line_and_ends_with_two(
    handrail_here: Run, desk_session: Path, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "p.toml").write_text(text)
    assert said in one_line(handrail_here("audit", desk_session, "--policy", "p.toml"), 2)


def test_what_is_not_there_or_is_no_session_ends_with_two(handrail_here: Run, policy: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    assert "none.jsonl: there is no such file" in one_line(handrail_here("audit", "none.jsonl", "--policy", policy), 2)
    assert "empty: holds no session" in one_line(handrail_here("audit", "empty", "--policy", policy), 2)
    assert "not a Handrail session" in one_line(handrail_here("audit", "chat.json", "--policy", policy), 2)
    assert "gone.toml" in one_line(handrail_here("audit", "empty", "--policy", "gone.toml"), 2)


def test_standard_input_is_a_session_like_any_other(handrail: Run, desk_session: Path, policy: str) -> None:
    outcome = handrail("audit", "-", "--policy", policy, input=desk_session.read_text())
    assert outcome.returncode == 1
    assert "│ -" in outcome.stdout


def test_the_way_back_is_audited_where_a_rule_speaks_of_it(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    text = 'kind = "return"\nsource = "research"\ntarget = "billing"\nforbid_patterns = "refunded"'
    (said,) = told(handrail_here("audit", desk_session, "--policy", rule(tmp_path, text), "--json"))
    violation = one(said["violations"])
    assert (violation["kind"], violation["source"], violation["target"]) == ("return", "research", "billing")


@tool(output_sensitivity="secret")
def look() -> str:
    """Look the charges up."""
    return "Two."


@pytest.mark.parametrize("rule_text", ['forbid_patterns = "Twice"', 'max_tier = "internal"'])
def test_the_answer_of_a_handoff_that_returns_is_audited(handrail_here: Run, tmp_path: Path, rule_text: str) -> None:
    billing = Agent("billing", model=ScriptedModel(call("look", call_id="c1"), "Twice."), tools=[look])
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"), "Done.")
    triage = Agent("triage", model=model, handoffs=[handoff(billing, returns=full())])
    triage.run_sync("Was it?", session=str(tmp_path / "a.jsonl"))
    text = f'kind = "return"\nsource = "billing"\ntarget = "triage"\n{rule_text}'
    (found,) = told(handrail_here("audit", "a.jsonl", "--policy", rule(tmp_path, text), "--json"))
    violation = one(found["violations"])
    assert (violation["kind"], violation["source"], violation["target"]) == ("return", "billing", "triage")


def test_a_label_that_came_back_with_a_sub_agents_answer_is_audited(handrail_here: Run, tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel(call("look", call_id="c1"), "Twice."), tools=[look])
    model = ScriptedModel(call("billing", call_id="b1", input="Was it?"), "Done.")
    triage = Agent("triage", model=model, tools=[to_tool(billing, returns=full(), expose="all")])
    triage.run_sync("Was it?", session=str(tmp_path / "a.jsonl"))
    text = 'kind = "return"\nsource = "billing"\ntarget = "triage"\nmax_tier = "internal"'
    (found,) = told(handrail_here("audit", "a.jsonl", "--policy", rule(tmp_path, text), "--json"))
    assert one(found["violations"])["why"] == "it is secret, above internal"


def test_a_secret_that_a_filter_left_is_found_in_the_record(handrail_here: Run, tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=full())])
    said = [user("Hello."), assistant("Key 17.", sensitivity="secret"), user("Twice?")]
    triage.run_sync(said, session=str(tmp_path / "a.jsonl"))
    (found,) = told(handrail_here("audit", "a.jsonl", "--policy", rule(tmp_path, 'max_tier = "internal"'), "--json"))
    message = Session(tmp_path / "a.jsonl").history("billing")[1]
    violation = one(found["violations"])
    assert (violation["message"], violation["why"]) == (message.id, "it is secret, above internal")


def test_a_session_that_names_what_it_does_not_hold_is_damaged(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    from handrail.sessions import Journal
    from handrail.sessions.records import Header

    with Journal.create(tmp_path / "made.jsonl", fsync="never") as journal:
        for record in read(desk_session).records():
            if not isinstance(record, Header):
                changed = record if not isinstance(record, HandoffRecord) else _shorter(record)
                journal.append(changed)
    outcome = handrail_here("audit", "made.jsonl", "--policy", rule(tmp_path, "max_messages = 100"))
    assert outcome.returncode == 1
    assert "the messages that it names are not those whose digest it holds" in outcome.stderr


def _shorter(record: HandoffRecord) -> HandoffRecord:
    import msgspec

    return msgspec.structs.replace(record, crossed=record.crossed[:-1])
