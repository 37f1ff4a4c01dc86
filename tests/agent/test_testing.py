"""What tests of agents use: the boundaries that a run crossed, and scripts that must be used up."""

import os
from pathlib import Path

import pytest

from handrail.agent import Agent, RunResult, ScriptedModel, to_tool
from handrail.agent.testing import Scripted, assert_handoffs, scripted
from handrail.filters import FixedClock, FixedIds, call
from servers.forks import Fork

__all__ = ["scripted"]


def desk() -> RunResult:
    research = Agent("research", model=ScriptedModel("It is refunded."))
    asking = [call("research", call_id="c1", input="The rule?"), call("transfer_to_triage", call_id="h1")]
    billing = Agent("billing", model=ScriptedModel(*asking), tools=[to_tool(research)], handoffs=["triage"])
    leads = ScriptedModel(call("transfer_to_billing", call_id="h2"), "It is refunded.")
    triage = Agent("triage", model=leads, handoffs=[billing])
    return triage.run_sync("I was charged twice.", ids=FixedIds("m"), clock=FixedClock())


def test_handoffs_are_named_in_their_order() -> None:
    assert_handoffs(desk(), ["triage -> billing", "billing -> triage"])


def test_sub_agents_are_named_when_asked_for() -> None:
    ways = ["triage -> billing", "billing asks research", "billing -> triage"]
    assert_handoffs(desk(), ways, subagents=True)


def test_other_handoffs_are_shown_with_what_crossed() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_handoffs(desk(), ["triage -> billing", "billing -> returns", "returns -> triage"])
    assert str(caught.value).splitlines() == [
        "the boundaries that were crossed are others:",
        "    triage -> billing (1 of 1 message crossed, 0 made)",
        "  - billing -> returns",
        "  - returns -> triage",
        "  + billing -> triage (3 of 3 messages crossed, 0 made)",
    ]


def test_no_handoffs_are_expected_by_an_empty_list() -> None:
    assert_handoffs(Agent("alone", model=ScriptedModel("Hello.")).run_sync("Hi"), [])
    with pytest.raises(AssertionError, match=r"\+ triage -> billing \(1 of 1 message crossed, 0 made\)"):
        assert_handoffs(desk(), [])


def test_a_scripted_model_answers_in_order(scripted: Scripted) -> None:
    agent = Agent("greeter", model=scripted("Hello.", "Bye."))
    assert [agent.run_sync(word).output for word in ("Hi", "I go")] == ["Hello.", "Bye."]


def test_answers_that_nobody_asked_for_fail_when_the_test_ends(tmp_path: Path, fork: Fork) -> None:
    (tmp_path / "conftest.py").write_text("from handrail.agent.testing import scripted\n")
    (tmp_path / "test_script.py").write_text("def test_it(scripted):\n    scripted('Hello.', name='greeter')\n")
    outcome = fork("pytest", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=tmp_path, env=os.environ)
    assert outcome.returncode == 1
    assert "ScriptError: 1 answers of greeter were not asked for; the next is 'Hello.'" in outcome.stdout
