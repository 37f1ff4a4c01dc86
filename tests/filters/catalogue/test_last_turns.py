"""The last few turns."""

import pytest

from handrail.filters import InvalidFilter, assistant, last_turns, system, user

HISTORY = (
    system("s", id="m0"),
    assistant("Welcome.", id="m1"),
    user("Hello", id="m2"),
    user("Where is it?", id="m3"),
    assistant("In Porto.", id="m4"),
    user("And the other?", id="m5"),
    assistant("In Lyon.", id="m6"),
)


@pytest.mark.parametrize(
    ("n", "ids"),
    [(1, "m0 m5 m6"), (2, "m0 m2 m3 m4 m5 m6"), (3, "m0 m1 m2 m3 m4 m5 m6")],
)
def test_a_turn_begins_with_the_users_messages_in_a_row(n: int, ids: str) -> None:
    assert [message.id for message in last_turns(n)(HISTORY)] == ids.split()


def test_a_conversation_without_a_user_message_is_one_turn() -> None:
    history = (assistant("Welcome.", id="m1"),)
    assert tuple(last_turns(1)(history)) == history


def test_a_pinned_message_of_an_earlier_turn_stays() -> None:
    history = (user("Order 77.", id="m1", pinned=True), assistant("Yes.", id="m2"), user("Bye", id="m3"))
    assert [message.id for message in last_turns(1)(history)] == ["m1", "m3"]


@pytest.mark.parametrize("n", [0, False, "1"])
def test_n_is_a_whole_number_of_turns(n: object) -> None:
    with pytest.raises(InvalidFilter, match="turns"):
        last_turns(n)  # type: ignore[arg-type]
