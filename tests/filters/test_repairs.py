"""The transcript laws, and how they are restored."""

import pytest

from handrail.filters import (
    Image,
    InvalidFilter,
    Reasoning,
    ToolCall,
    assistant,
    breaches,
    call,
    repair,
    system,
    tool_result,
    user,
)

STOCK_A = call("stock", call_id="c1", item="A")
STOCK_B = call("stock", call_id="c2", item="B")


def test_a_lawful_history_is_returned_as_it_is() -> None:
    history = (user("A?"), assistant(STOCK_A), tool_result(STOCK_A, "4 left"), assistant("4."))
    assert repair(history).messages is history
    assert breaches(history) == []


def test_a_result_without_a_call_is_dropped() -> None:
    history = (user("A?"), tool_result("c9", "7 left", id="m1"))
    assert [(breach.law, breach.id) for breach in breaches(history)] == [("P1", "m1")]
    repaired = repair(history)
    assert repaired.messages == (user("A?"),)
    assert [str(change) for change in repaired.changes] == [
        "dropped tool m1: no call 'c9' stands before this result (P1)"
    ]


def test_a_call_without_a_result_is_dropped_and_its_words_stay() -> None:
    history = (user("A?"), assistant("Let me look.", STOCK_A, id="m1"), user("Well?"))
    assert [breach.law for breach in breaches(history)] == ["P2"]
    repaired = repair(history)
    assert repaired.messages == (user("A?"), assistant("Let me look.", id="m1"), user("Well?"))
    assert [str(change) for change in repaired.changes] == [
        "changed assistant m1: call 'c1' of stock has no result (P2)"
    ]


def test_a_call_without_a_result_may_be_answered_instead() -> None:
    repaired = repair((user("A?"), assistant(STOCK_A)), open_calls="answer")
    answer = repaired.messages[-1]
    assert (answer.call_id, answer.name, answer.is_error, answer.synthetic) == ("c1", "stock", True, True)
    assert [change.what for change in repaired.changes] == ["added"]


def test_empty_messages_go_but_empty_results_and_system_messages_stay() -> None:
    history = (system(""), user(""), assistant(Reasoning("hm")), assistant(STOCK_A), tool_result(STOCK_A, ""))
    assert [(breach.law, breach.place) for breach in breaches(history)] == [("P3", 1), ("P3", 2)]
    assert repair(history).messages == (system(""), assistant(STOCK_A), tool_result(STOCK_A, ""))


def test_a_system_message_of_which_nothing_is_left_goes_too() -> None:
    repaired = repair((system(STOCK_A, id="m1"), user("A?")))
    assert repaired.messages == (user("A?"),)
    assert [(change.what, change.id) for change in repaired.changes] == [("dropped", "m1")]


def test_a_displaced_result_moves_to_its_call() -> None:
    late = tool_result(STOCK_A, "4 left", id="late")
    repaired = repair((assistant(STOCK_A), user("Hurry."), late))
    assert repaired.messages == (assistant(STOCK_A), late, user("Hurry."))
    assert [(change.what, change.id) for change in repaired.changes] == [("changed", "late")]


def test_a_second_result_of_one_call_is_dropped() -> None:
    history = (assistant(STOCK_A), tool_result(STOCK_A, "4 left"), tool_result(STOCK_A, "5 left"))
    assert [result.text for result in repair(history).messages[1:]] == ["4 left"]


def test_a_result_belongs_to_the_nearest_earlier_open_call_with_its_id() -> None:
    again = (assistant(STOCK_A), tool_result(STOCK_A, "4"), assistant(STOCK_A), tool_result(STOCK_A, "3"))
    assert repair(again).messages is again
    behind = (assistant("first", STOCK_A), assistant("second", STOCK_A), tool_result(STOCK_A, "3"))
    assert repair(behind).messages == (assistant("first"), assistant("second", STOCK_A), tool_result(STOCK_A, "3"))


def test_one_id_twice_in_a_message_is_one_call() -> None:
    twice = assistant(STOCK_A, ToolCall("c1", "stock", '{"item":"B"}'))
    assert repair((twice, tool_result(STOCK_A, "4"))).messages == (assistant(STOCK_A), tool_result(STOCK_A, "4"))


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_calls_stand_only_in_assistant_messages(role: str) -> None:
    asked = user("words").replace(role=role, content=(*user("words").content, STOCK_B), call_id="c1")
    history = (assistant(STOCK_A), tool_result(STOCK_A, "4"), asked) if role != "tool" else (assistant(STOCK_A), asked)
    assert "P2" in {breach.law for breach in breaches(history)}
    repaired = repair(history).messages
    assert breaches(repaired) == []
    assert repaired[-1].text == "words"


def test_results_with_pictures_are_content() -> None:
    history = (assistant(STOCK_A), tool_result(STOCK_A, Image(data="aQ==")))
    assert breaches(history) == []


def test_very_many_calls_in_one_message_are_repaired_at_once() -> None:
    calls = [call("a", call_id=f"c{number}") for number in range(20_000)]
    results = [tool_result(asked, "ok") for asked in reversed(calls[1:])]
    assert len(repair((assistant(*calls), user("Hurry."), *results)).messages) == 20_001


def test_very_many_calls_without_a_result_are_answered_at_once() -> None:
    calls = [call("a", call_id=f"c{number}") for number in range(20_000)]
    repaired = repair((assistant(*calls), tool_result(calls[7], "ok", synthetic=True)), open_calls="answer")
    assert [result.call_id for result in repaired.messages[1:]] == [asked.id for asked in calls]
    assert [change.what for change in repaired.changes] == ["added"] * 19_999


def test_the_filter_repairs_too_and_takes_no_third_way() -> None:
    assert repair()((tool_result("c9", "7"),)) == ()
    with pytest.raises(InvalidFilter, match="'drop' or 'answer', not 'guess'"):
        repair(open_calls="guess")  # type: ignore[call-overload]


def test_answers_that_are_added_stand_in_the_order_of_the_calls_with_those_that_were_given() -> None:
    given = tool_result(STOCK_B, "2 left")
    repaired = repair((user("A or B?"), assistant(STOCK_A, STOCK_B), given, user("Well?")), open_calls="answer")
    assert [(message.role, message.call_id, message.synthetic) for message in repaired.messages[2:]] == [
        ("tool", "c1", True),
        ("tool", "c2", False),
        ("user", None, False),
    ]
