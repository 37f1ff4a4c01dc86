"""`handrail replay`: a session once more, and what would have been."""

import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Run, one_line

DESK = """
from handrail.agent import Agent, ScriptedModel, handoff, tool
from handrail.filters import call, full

ran = []


@tool(side_effects="read_only")
async def look(n: int = 0) -> str:
    ran.append(n)
    return f"found {n}"


def desk(script=(), answers=(), words="You are the desk."):
    billing = Agent("billing", model=ScriptedModel(*answers), instructions="You refund.")
    edge = handoff(billing, filter=full())
    return Agent("triage", model=ScriptedModel(*script), instructions=words, tools=[look], handoffs=[edge])


triage = desk()
changed = desk(words="You are a desk.")
first = desk([call("look", call_id="c1", n=1), call("transfer_to_billing")], ["Refunded."])
first.run_sync("I was charged twice.", session="desk.jsonl")
"""


@pytest.fixture(autouse=True)
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "replay_desk.py").write_text(DESK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "replay_desk", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("replay_desk")


def test_a_session_that_goes_as_it_went_exits_0(handrail_here: Run) -> None:
    outcome = handrail_here("replay", "desk.jsonl", "replay_desk:triage")
    assert (outcome.returncode, outcome.stdout) == (0, "1 run, 3 model calls, 1 tool call: no divergence\n")


TEAM = """
from handrail.agent import Agent, ScriptedModel, fan_out


def ways(*answers):
    return fan_out([Agent(name, model=ScriptedModel(*answers)) for name in ("maps", "signs")])


ways("Left.").run_sync("Which way?", session="ways.jsonl")
ways = ways()
"""


def test_a_session_of_several_agents_without_a_caller_is_run_again(tmp_path: Path, handrail_here: Run) -> None:
    (tmp_path / "replay_ways.py").write_text(TEAM)
    __import__("replay_ways")
    outcome = handrail_here("replay", "ways.jsonl", "replay_ways:ways")
    assert outcome.stdout == "1 run, 2 model calls, 0 tool calls: no divergence\n"
    outcome = handrail_here("replay", "ways.jsonl", "replay_ways:ways", "--instructions", "maps=Be quick.")
    assert (outcome.returncode, outcome.stdout.count("Be quick.")) == (1, 1)


def test_a_divergence_is_shown_like_a_diff_and_exits_1(handrail_here: Run) -> None:
    outcome = handrail_here("replay", "desk.jsonl", "replay_desk:changed")
    assert outcome.returncode == 1
    assert outcome.stdout.splitlines()[1:] == [
        "run 1, triage, step 1: the request (line 5) differs",
        "  instructions agent",
        "    -You are the desk.",
        "    +You are a desk.",
    ]


def test_json_has_the_runs_and_the_divergence(handrail_here: Run) -> None:
    told = json.loads(handrail_here("replay", "desk.jsonl", "replay_desk:changed", "--json").stdout)
    assert (told["ok"], told["divergence"]["what"], told["runs"][0]["status"]) == (False, "request", "diverged")


def test_a_permitted_tool_runs(handrail_here: Run) -> None:
    assert handrail_here("replay", "desk.jsonl", "replay_desk:triage", "--allow", "look").returncode == 0
    assert sys.modules["replay_desk"].ran == [1, 1]


def test_another_filter_is_compared_with_what_crossed(handrail_here: Run) -> None:
    given = ("replay", "desk.jsonl", "replay_desk:triage", "--filter", "triage->billing=last_user()")
    outcome = handrail_here(*given)
    assert outcome.returncode == 1
    assert "5 boundaries and requests" not in outcome.stdout
    assert "boundary 1 (line 11), triage -> billing: 3 to 1 messages" in outcome.stdout
    told = json.loads(handrail_here(*given, "--answers", "recorded", "--json").stdout)
    assert [(each["what"], bool(each.get("differences"))) for each in told["comparisons"]] == [
        ("request", False),
        ("request", False),
        ("boundary", True),
        ("request", True),
    ]


def test_instructions_are_otherwise_from_a_place_on(handrail_here: Run) -> None:
    given = ("replay", "desk.jsonl", "replay_desk:triage", "--instructions", "billing=No.", "--at", "step:3")
    told = json.loads(handrail_here(*given, "--json").stdout)
    assert [each["differences"] for each in told["comparisons"]] == [
        [{"where": "instructions agent", "then": "You refund.", "now": "No."}]
    ]


def test_a_what_if_in_which_nothing_is_otherwise_exits_0(handrail_here: Run) -> None:
    assert handrail_here("replay", "desk.jsonl", "replay_desk:triage", "--what-if").returncode == 0


def test_what_cannot_be_is_one_line_that_says_what_can(handrail_here: Run) -> None:
    for options, says in (
        (["--allow", "unheard_of"], "allow names 'unheard_of'"),
        (["--filter", "last_n(3)"], "as triage->billing=last_n(3)"),
        (["--filter", "a->b=last_n(3)"], "there is no edge 'a->b'; there are triage->billing"),
        (["--allow", "look", "--what-if"], "a what-if touches nothing"),
        (["--at", "9"], "its boundaries are 1 to 1, its model calls step:1 to step:3"),
    ):
        outcome = handrail_here("replay", "desk.jsonl", "replay_desk:triage", *options)
        assert says in one_line(outcome, 2)


def test_a_file_that_was_tampered_with_is_refused(handrail_here: Run) -> None:
    path = Path("desk.jsonl")
    path.write_bytes(path.read_bytes().replace(b"found 1", b"found 2", 1))
    outcome = handrail_here("replay", "desk.jsonl", "replay_desk:triage")
    assert "changed after it was written" in one_line(outcome, 1)
