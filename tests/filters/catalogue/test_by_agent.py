"""What some agents said."""

import pytest

from handrail.filters import InvalidFilter, assistant, by_agent, call, parse, system, tool_result, user

ASKED = call("track", call_id="c1")
HISTORY = (
    system("s", id="m0"),
    user("Hello", id="m1"),
    assistant("Hi.", ASKED, id="m2", agent="Triage"),
    tool_result(ASKED, "in Porto", id="m3", agent="Billing"),
    assistant("Refunded.", id="m4", agent="Billing"),
    assistant("By nobody.", id="m5"),
)


def test_user_and_system_messages_stay_and_of_agents_only_these() -> None:
    assert [message.id for message in by_agent("Billing")(HISTORY)] == ["m0", "m1", "m4"]


def test_a_result_goes_with_its_call_whoever_ran_the_tool() -> None:
    assert [message.id for message in by_agent("Triage")(HISTORY)] == ["m0", "m1", "m2", "m3"]


def test_several_agents_may_be_heard() -> None:
    assert [message.id for message in by_agent("Triage", "Billing")(HISTORY)] == ["m0", "m1", "m2", "m3", "m4"]
    assert parse("by_agent('Triage', 'Billing')") == by_agent("Triage", "Billing")


@pytest.mark.parametrize("names", [(), ("",), (3,)])
def test_agents_have_names(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFilter, match="names of agents"):
        by_agent(*names)
