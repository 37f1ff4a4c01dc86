"""A run told to a person."""

import pytest

from handrail.agent import Agent, ScriptedModel, handoff
from handrail.agent.events import HandoffEnd
from handrail.cli.telling import Witness, called, crossing_lines, margin, summed_up
from handrail.filters import History, Report, ToolCall, assistant, call, last_n, none, redact, tool_result, user


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


async def test_a_witness_remembers_each_boundary_until_it_is_told() -> None:
    witness = Witness()
    billing = Agent("billing", model=ScriptedModel("Yes."))
    asks = ScriptedModel(assistant(call("transfer_to_billing", call_id="h1", reason="an invoice")))
    triage = Agent("triage", model=asks, handoffs=[handoff(billing)], middleware=[witness])
    await triage.run("Twice?")
    reason, history, report = witness.next()
    assert (reason, [message.text for message in history]) == ("an invoice", ["Twice?"])
    assert report.messages_in == 1
