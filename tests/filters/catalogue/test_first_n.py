"""The first few messages."""

import pytest

from handrail.filters import InvalidFilter, assistant, call, first_n, system, tool_result, user

ASKED, ALSO = call("track", call_id="c1"), call("stock", call_id="c2")
HISTORY = (
    system("s", id="m0"),
    user("Where is it?", id="m1"),
    assistant("Let me look.", ASKED, ALSO, id="m2"),
    tool_result(ASKED, "in Porto", id="m3"),
    tool_result(ALSO, "4 left", id="m4"),
    system("t", id="m5"),
    user("Thanks.", id="m6", pinned=True),
    user("Bye.", id="m7"),
)


@pytest.mark.parametrize(("n", "ids"), [(1, ["m0", "m1", "m5", "m6"]), (4, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"])])
def test_system_and_pinned_messages_stand_beside_the_first_n(n: int, ids: list[str]) -> None:
    assert [message.id for message in first_n(n)(HISTORY)] == ids


def test_a_call_inside_the_edge_goes_where_its_result_is_outside() -> None:
    kept = first_n(3)(HISTORY)
    assert [message.id for message in kept] == ["m0", "m1", "m2", "m3", "m5", "m6"]
    assert kept[2].tool_calls == (ASKED,)


def test_a_call_message_whose_results_are_all_outside_keeps_its_words() -> None:
    assert first_n(2)(HISTORY)[2] == assistant("Let me look.", id="m2")
    silent = (user("Look.", id="m1"), assistant(ASKED, id="m2"), tool_result(ASKED, "in Porto", id="m3"))
    assert [message.id for message in first_n(2)(silent)] == ["m1"]


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3"])
def test_n_is_a_whole_number_of_messages(n: object) -> None:
    with pytest.raises(InvalidFilter, match="at least 1"):
        first_n(n)  # type: ignore[arg-type]
