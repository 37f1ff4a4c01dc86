"""Only the calls of some tools."""

import pytest

from handrail.filters import InvalidFilter, Opaque, assistant, breaches, call, only_tools, tool_result, user

TRACK, BALANCE = call("track", call_id="c1"), call("balance", call_id="c2")
HISTORY = (
    user("Where is it?", id="m1"),
    assistant("Let me look.", TRACK, BALANCE, id="m2"),
    tool_result(TRACK, "in Porto", id="m3"),
    tool_result(BALANCE, "12,400", id="m4"),
    assistant(BALANCE.__class__("c3", "balance"), id="m5"),
    tool_result("c3", "12,400", id="m6"),
    assistant("Done.", Opaque("openai", "web_search_call", "{}", family="tool"), id="m7"),
)


def test_the_calls_of_other_tools_go_with_their_results_and_hosted_parts() -> None:
    kept = only_tools("track")(HISTORY)
    assert [message.id for message in kept] == ["m1", "m2", "m3", "m7"]
    assert kept[1].tool_calls == (TRACK,)
    assert kept[3] == assistant("Done.", id="m7")
    assert breaches(kept) == []


def test_a_hosted_tool_is_named_by_the_type_of_its_part() -> None:
    assert only_tools("web_search_call")(HISTORY)[-1] == HISTORY[-1]


def test_a_history_of_these_tools_alone_is_unchanged() -> None:
    assert tuple(only_tools("track", "balance", "web_search_call")(HISTORY)) == HISTORY


@pytest.mark.parametrize("names", [(), ("",), (3,)])
def test_tools_have_names(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFilter, match="names of tools"):
        only_tools(*names)
