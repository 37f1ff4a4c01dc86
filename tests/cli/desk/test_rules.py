"""What the desk answers, by its rules, to what was actually asked."""

from pathlib import Path

import pytest

from handrail.agent import RunResult
from handrail.cli.desk import support_desk


def talk(folder: Path, *lines: str) -> RunResult:
    """The desk's last answer, after these lines one after the other in one conversation."""
    desk = support_desk()
    results = [desk.run_sync(line, session=str(folder / "desk.session.jsonl")) for line in lines]
    return results[-1]


@pytest.mark.parametrize(
    ("line", "agent", "said"),
    [
        ("Hello!", "triage", "Hello. I can tell you the opening hours"),
        ("When are you open on Sunday?", "triage", "We are open: sunday closed."),
        ("What are your opening hours?", "triage", "thursday 9 to 20"),
        ("Where is parcel 8841?", "triage", "Parcel 8841 (office chair) is in transit, Porto, expected on Thursday."),
        ("Track 8842 please", "triage", "delivered, left with a neighbour."),
        ("Where is parcel 9999?", "triage", "I cannot find that: there is no parcel 9999"),
        ("Where is my parcel?", "triage", "Which parcel?"),
        ("Tell me a joke.", "triage", "I cannot help with that. I can"),
        (
            "Was I charged twice on invoice 1042?",
            "billing",
            "It was charged twice: 148.00 EUR on 7 March and on 8 March.",
        ),
        ("Was invoice 1041 charged twice?", "billing", "It was not charged twice."),
        ("What do I owe on INV-1043?", "billing", "Invoice 1043 (standing desk) is over 399.00 EUR, unpaid"),
        ("Show me invoice 7777", "billing", "I cannot find that: there is no invoice 7777"),
        ("I want to pay a bill", "billing", "Which invoice is it?"),
        (
            "Is the lamp under warranty?",
            "billing",
            "The handbook says: Furniture has a warranty of 3 years, lamps of 2.",
        ),
        ("Can I get a refund?", "billing", "Goods may be returned within 30 days"),
        ("What is the policy on dragons?", "billing", "The handbook says nothing about that."),
        ("Let me talk to billing", "billing", "This is billing."),
        ("billing please", "billing", "This is billing."),
    ],
)
def test_the_desk_answers_what_was_asked(tmp_path: Path, line: str, agent: str, said: str) -> None:
    result = talk(tmp_path, line)
    assert said in result.output
    assert result.agent == agent


def test_billing_has_research_look_up_the_rule_and_says_what_it_found(tmp_path: Path) -> None:
    result = talk(tmp_path, "Was I charged twice on invoice 1042?")
    assert [(each.source, each.target) for each in result.handoffs] == [("triage", "billing"), ("billing", "research")]
    assert "The handbook says: A double charge" in result.output


def test_a_yes_takes_up_the_refund_that_was_offered(tmp_path: Path) -> None:
    result = talk(tmp_path, "Was I charged twice on invoice 1042?", "yes, refund it")
    assert "I have given the second payment back." in result.output


def test_a_bare_number_takes_up_what_was_asked(tmp_path: Path) -> None:
    result = talk(tmp_path, "Was I charged twice on my invoice?", "1041")
    assert "It was not charged twice." in result.output


def test_a_refund_is_given_once(tmp_path: Path) -> None:
    result = talk(tmp_path, "Please refund invoice 1042", "Please refund invoice 1042")
    assert "was given back already" in result.output


def test_a_number_that_only_an_agent_named_is_not_acted_on(tmp_path: Path) -> None:
    talked = talk(tmp_path, "billing please", "yes", "please refund it")
    assert not any(
        call.name in ("find_invoice", "refund_double_charge") for m in talked.messages for call in m.tool_calls
    )


def test_a_question_about_two_things_is_answered_by_both(tmp_path: Path) -> None:
    result = talk(tmp_path, "Where is parcel 8842, and what do I owe on invoice 1043?")
    words = " ".join(message.text for message in result.new_messages if message.role == "assistant")
    assert "Parcel 8842 (desk lamp) is delivered" in words
    assert "Invoice 1043 (standing desk) is over 399.00 EUR" in words


def test_billing_hands_back_what_is_not_its_own(tmp_path: Path) -> None:
    result = talk(tmp_path, "What do I owe on invoice 1043?", "When are you open on Saturday?")
    assert [(each.source, each.target) for each in result.handoffs] == [("billing", "triage")]
    assert result.output == "We are open: saturday 10 to 14."


def test_nobody_is_sent_to_and_fro(tmp_path: Path) -> None:
    result = talk(tmp_path, "What do I owe on invoice 1043?", "Bring me back to triage about my invoice")
    assert len(result.handoffs) == 1
    assert result.agent == "triage"


def test_no_card_number_leaves_billing(tmp_path: Path) -> None:
    result = talk(tmp_path, "Was I charged twice on invoice 1042?", "When are you open?")
    assert "find_payments" in [message.name for message in result.handoffs[-1].stayed]
    assert not any("4929" in message.text for message in result.messages)
