"""Everything but the calls of some tools."""

import pytest

from handrail.filters import InvalidFilter, Opaque, assistant, breaches, call, drop_tools, tool_result, user
from handrail.filters.messages import ToolCall

TRACK, BALANCE = call("track", call_id="c1"), call("balance", call_id="c2")
HISTORY = (
    user("Where is it?", id="m1"),
    assistant("Let me look.", TRACK, BALANCE, id="m2"),
    tool_result(TRACK, "in Porto", id="m3"),
    tool_result(BALANCE, "12,400", id="m4"),
    assistant("Done.", Opaque("openai", "web_search_call", "{}", family="tool"), id="m5"),
)


def test_the_calls_of_these_tools_go_with_their_results() -> None:
    kept = drop_tools("balance")(HISTORY)
    assert [message.id for message in kept] == ["m1", "m2", "m3", "m5"]
    assert kept[1].tool_calls == (TRACK,)
    assert breaches(kept) == []


def test_a_hosted_tool_is_named_by_the_type_of_its_part() -> None:
    assert drop_tools("web_search_call")(HISTORY)[-1] == assistant("Done.", id="m5")


def test_a_result_without_its_call_is_known_by_its_name() -> None:
    assert drop_tools("balance")((HISTORY[0], HISTORY[3])) == (HISTORY[0],)


def test_an_id_that_comes_back_belongs_to_the_nearest_call() -> None:
    again = (
        *HISTORY[:4],
        assistant(ToolCall("c2", "track"), id="m6"),
        tool_result(ToolCall("c2", "track"), "here", id="m7"),
    )
    assert [message.id for message in drop_tools("balance")(again)] == ["m1", "m2", "m3", "m6", "m7"]


@pytest.mark.parametrize("names", [(), ("",), (3,)])
def test_tools_have_names(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidFilter, match="names of tools"):
        drop_tools(*names)
