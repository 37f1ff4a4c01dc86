"""The last few messages."""

import pytest

from handrail.filters import History, InvalidFilter, Message, assistant, call, last_n, seal, system, tool_result, user
from handrail.filters.messages import Messages

TRACK = call("track", call_id="c1", parcel="8841")
LATE = History(
    [
        system("You are Triage.", id="m0"),
        user("My parcel 8841 is late.", id="m1"),
        assistant(TRACK, id="m2"),
        tool_result(TRACK, "in transit, Porto", id="m3"),
        assistant("It is in Porto.", id="m4"),
        user("Please get me a refund.", id="m5"),
    ]
)


def ids(messages: Messages) -> list[str]:
    return [message.id for message in messages]


def with_pinned(*places: int) -> History:
    return History([message.replace(pinned=place in places) for place, message in enumerate(LATE)])


def test_a_result_whose_call_was_cut_off_goes_and_the_window_is_not_refilled() -> None:
    assert ids(last_n(3)(LATE)) == ["m0", "m4", "m5"]
    assert ids(seal(last_n(3))(LATE)) == ["m0", "m4", "m5"]


def test_a_call_and_its_results_count_one_each() -> None:
    assert ids(last_n(4)(LATE)) == ["m0", "m2", "m3", "m4", "m5"]


def test_a_result_in_the_middle_of_the_window_without_a_call_goes() -> None:
    stray = (*LATE[:5], tool_result("c9", "7 left", id="x"), LATE[5])
    assert ids(last_n(9)(stray)) == ids(LATE)
    assert ids(last_n(3)(stray)) == ["m0", "m4", "m5"]


def test_system_messages_stand_where_they_are_and_do_not_count() -> None:
    history = [user("a", id="1"), system("s", id="2"), user("b", id="3"), system("t", id="4")]
    assert ids(last_n(1)(history)) == ["2", "3", "4"]


def test_the_latest_user_message_is_added_where_the_window_lacks_it() -> None:
    history = LATE[:5]
    assert ids(last_n(1, keep_user=True)(history)) == ["m0", "m1", "m4"]
    assert ids(last_n(1, keep_user=True)(LATE)) == ["m0", "m5"]
    assert ids(last_n(1)(history)) == ["m0", "m4"]


@pytest.mark.parametrize(
    ("pinned", "kept"),
    [
        ([1], ["m0", "m1", "m5"]),
        ([2], ["m0", "m2", "m3", "m5"]),
        ([3], ["m0", "m2", "m3", "m5"]),
        ([5], ["m0", "m4", "m5"]),
    ],
)
def test_pinned_messages_stand_beside_with_the_other_half_of_their_pair(pinned: list[int], kept: list[str]) -> None:
    assert ids(last_n(1)(with_pinned(*pinned))) == kept


def test_a_pin_on_one_result_does_not_bring_the_other_results_of_its_call() -> None:
    other = call("stock", call_id="c2")
    history = History(
        [
            assistant("Looking.", TRACK, other, id="a"),
            tool_result(TRACK, "in Porto", id="b", pinned=True),
            tool_result(other, "4 left", id="c"),
            user("Well?", id="d"),
        ]
    )
    assert ids(last_n(1)(history)) == ["a", "b", "d"]
    assert seal(last_n(1))(history)[0].tool_calls == (TRACK,)


def test_everything_is_returned_as_it_is_when_it_fits() -> None:
    assert last_n(10)(LATE) is LATE


class Tail(list[Message]):
    """A list that says where it was looked at first."""

    first = 1_000_000

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        start = index.indices(len(self))[0] if isinstance(index, slice) else index
        self.first = min(self.first, start)
        return super().__getitem__(index)


def test_only_the_tail_of_a_long_history_is_looked_at() -> None:
    items = Tail([user(f"{number}", id=f"u{number}") for number in range(10_000)])
    history = History.over(items)
    assert history.survey().lawful
    items.first = 10_000
    assert ids(seal(last_n(5)).hand_over(history, origin=history)) == [f"u{number}" for number in range(9_995, 10_000)]
    assert items.first >= 9_900


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", True, None])
def test_n_is_at_least_one(n: int) -> None:
    with pytest.raises(InvalidFilter, match="at least 1"):
        last_n(n)


def test_keep_user_is_true_or_false() -> None:
    with pytest.raises(InvalidFilter, match="keep_user is true or false, not 1"):
        last_n(3, keep_user=1)  # type: ignore[arg-type]
