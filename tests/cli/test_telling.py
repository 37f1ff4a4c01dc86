"""A run told to a person."""

from pathlib import Path

import pytest

from handrail.agent import Agent, ScriptedModel, handoff
from handrail.agent.events import HandoffEnd
from handrail.cli.telling import Witness, called, crossing_lines, margin, summed_up
from handrail.filters import (
    History,
    Policy,
    PolicyViolation,
    Report,
    ToolCall,
    assistant,
    call,
    last_n,
    none,
    redact,
    tool_result,
    user,
)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (call("look", place="box", times=2), "look(place='box', times=2)"),
        (ToolCall("c1", "look"), "look()"),
        (ToolCall("c1", "look", "{broken"), "look({broken)"),
        (ToolCall("c1", "look", "[1]"), "look([1])"),
        (call("look", place="\x1b[2J\n"), "look(place='\\x1b[2J\\n')"),
    ],
)
def test_a_call_reads_as_it_would_in_python(asked: ToolCall, shown: str) -> None:
    assert called(asked) == shown


def test_a_result_is_named_and_not_shown() -> None:
    result = tool_result(call("find_payments", call_id="c1"), "4929 8801", agent="billing")
    assert summed_up(result) == "billing: result of find_payments"


def test_a_long_message_keeps_its_beginning() -> None:
    assert summed_up(user("word " * 100), 20) == "user: word word wor…"


def test_a_sub_agent_stands_to_the_right_of_its_caller() -> None:
    assert (margin("billing"), margin("billing/research@c1")) == ("", "    ")


def test_many_messages_that_stayed_for_one_reason_are_one_line() -> None:
    history = History([user(f"number {n}", id=f"m{n}") for n in range(6)])
    report: Report = last_n(1).explain(history)
    event = HandoffEnd("run", "a", "a", "b", "c1", (history[5],), len(history))
    assert crossing_lines(event, "because", history, report) == [
        "━━ a → b: because (1 of 6 messages crossed, 0 made) ━━",
        "    crossed  user: number 5",
        "    stayed   5 older messages  (outside the last message)",
    ]


def test_what_a_sub_agent_is_asked_is_no_message_of_the_history() -> None:
    history = History([user(f"number {n}", id=f"m{n}") for n in range(2)])
    asked = user("What is the rule?", id="f1")
    event = HandoffEnd("run", "a", "a", "b", "c1", (asked,), len(history))
    assert crossing_lines(event, "", history, none().explain(history)) == [
        "━━ a → b (0 of 2 messages crossed, 1 made (the input)) ━━",
        "    crossed  user: What is the rule?",
        "    stayed   user: number 0  (nothing crosses but the reason or the input)",
        "    stayed   user: number 1  (nothing crosses but the reason or the input)",
    ]


def test_a_message_that_was_changed_is_told_once() -> None:
    history = (user("Mail ann@example.org", id="m1"), user("Please.", id="m2"))
    filter = redact(["email"])
    event = HandoffEnd("run", "a", "a", "b", "c1", tuple(filter(history)), len(history))
    head, *lines = crossing_lines(event, "", history, filter.explain(history))
    assert head == "━━ a → b (2 of 2 messages crossed, 0 made) ━━"
    assert len(lines) == 2
    assert lines[0].startswith("    crossed  user: Mail [REDACTED:internal:email]  (changed: ")


def desk(witness: Witness, target: str, policy: Policy | None = None) -> Agent:
    """A triage agent that hands over to this one, unless the policy stops it."""
    asks = ScriptedModel(assistant(call(f"transfer_to_{target}", call_id="h1", reason=f"for {target}")))
    edge = handoff(Agent(target, model=ScriptedModel("Yes.")), policy=policy)
    return Agent("triage", model=asks, handoffs=[edge], middleware=[witness])


async def crossed(agent: Agent) -> list[HandoffEnd]:
    async with agent.stream("Twice?") as run:
        return [event async for event in run if isinstance(event, HandoffEnd)]


async def test_a_witness_remembers_each_boundary_until_it_is_told() -> None:
    witness = Witness()
    (event,) = await crossed(desk(witness, "billing"))
    seen = witness.of(event)
    assert seen is not None
    assert (seen.reason, [message.text for message in seen.history]) == ("for billing", ["Twice?"])
    assert seen.report.messages_in == 1
    assert witness.of(event) is None


async def test_a_boundary_that_a_policy_stopped_is_not_told_as_the_next_one(tmp_path: Path) -> None:
    witness = Witness()
    (tmp_path / "desk.toml").write_text('[[rule]]\nsource = "triage"\nallow_targets = ["sales"]\n')
    with pytest.raises(PolicyViolation):
        await crossed(desk(witness, "billing", Policy.load(tmp_path / "desk.toml")))
    (event,) = await crossed(desk(witness, "sales"))
    seen = witness.of(event)
    assert seen is not None
    assert (seen.target, seen.reason) == ("sales", "for sales")
