"""What windows share."""

from handrail.filters import History, assistant, call, tool_result, user
from handrail.filters.windows import as_history, beside, kept, last_others

FIRST, SECOND = call("a", call_id="c1"), call("b", call_id="c2")
HISTORY = History(
    [
        user("go"),
        assistant(FIRST, SECOND),
        tool_result(FIRST, "1", pinned=True),
        tool_result(SECOND, "2"),
        assistant("done"),
    ]
)


def test_a_history_is_taken_as_it_is() -> None:
    assert as_history(HISTORY) is HISTORY
    assert as_history(tuple(HISTORY)) == HISTORY


def test_the_call_of_a_pinned_result_stands_beside_the_window() -> None:
    assert beside(HISTORY) == {1, 2}


def test_the_last_others_are_counted_from_the_end() -> None:
    assert last_others(HISTORY, 2, {1, 2}) == [4, 3]
    assert last_others(HISTORY, 9, set()) == [4, 3, 2, 1, 0]


def test_a_result_is_kept_only_with_its_call() -> None:
    assert kept(HISTORY, [4, 3])[0] == [4]
    assert kept(HISTORY, [3, 1])[0] == [1, 3]


def test_in_a_broken_history_a_result_is_matched_by_its_call_id() -> None:
    broken = History([assistant(FIRST), user("Hurry."), tool_result(FIRST, "1"), tool_result(SECOND, "2")])
    assert kept(broken, [0, 2, 3])[0] == [0, 2]
    assert kept(broken, [1, 2])[0] == [1]
    assert beside(History([*broken[:2], broken[2].replace(pinned=True)])) == {0, 2}
