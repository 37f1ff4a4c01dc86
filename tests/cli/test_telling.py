"""A run told to a person."""

from pathlib import Path

import pytest

from handrail.agent import Agent, ScriptedModel, handoff, to_tool
from handrail.agent.events import HandoffEnd
from handrail.cli.telling import DeskTeller, called, crossing_lines, margin, summed_up
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


def desk(target: str, policy: Policy | None = None) -> Agent:
    """A triage agent that hands over to this one, unless the policy stops it."""
    asks = ScriptedModel(assistant(call(f"transfer_to_{target}", call_id="h1", reason=f"for {target}")))
    book = to_tool(Agent("book", model=ScriptedModel("Always.")), filter=none())
    unheard = ScriptedModel(call("book", call_id="k1", input="Page one?"), "Always.")
    asked = to_tool(Agent("research", model=unheard, tools=[book]), filter=none(), forward_events="none")
    model = ScriptedModel(*[call("research", call_id=f"r{n}", input=f"Rule {n}?") for n in (1, 2)], "Yes.")
    edge = handoff(Agent(target, model=model, tools=[asked]), policy=policy, filter=last_n(1))
    return Agent("triage", model=asks, handoffs=[edge])


async def tell(agent: Agent) -> None:
    run = agent.stream("Twice?")
    teller = DeskTeller(run)
    async with run:
        async for event in run:
            teller.tell(event)


async def test_each_boundary_is_told_with_its_own_reason_and_what_stayed(capsys: pytest.CaptureFixture[str]) -> None:
    await tell(desk("billing"))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith(("━━", "crossed", "stayed"))] == [
        "━━ triage → billing: for billing (1 of 1 message crossed, 0 made) ━━",
        "crossed  user: Twice?",
        "━━ billing → research (0 of 1 message crossed, 1 made (the input)) ━━",
        "crossed  user: Rule 1?",
        "stayed   user: Twice?  (nothing crosses but the reason or the input)",
        "━━ billing → research (0 of 3 messages crossed, 1 made (the input)) ━━",
        "crossed  user: Rule 2?",
        "stayed   user: Twice?  (nothing crosses but the reason or the input)",
        "stayed   billing: research(input='Rule 1?')  (nothing crosses but the reason or the input)",
        "stayed   billing: result of research  (nothing crosses but the reason or the input)",
    ]


async def test_a_boundary_that_a_policy_stopped_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "desk.toml").write_text('[[rule]]\nsource = "triage"\nallow_targets = ["sales"]\n')
    with pytest.raises(PolicyViolation):
        await tell(desk("billing", Policy.load(tmp_path / "desk.toml")))
    assert "━━" not in capsys.readouterr().out
