"""Both ends, and a marker of what was left out."""

import pytest

from handrail.filters import InvalidFilter, assistant, breaches, call, head_tail, system, tool_result, user
from handrail.filters.messages import Messages

ASKED, ALSO = call("track", call_id="c1"), call("stock", call_id="c2")


def said(messages: Messages) -> list[str]:
    return [message.id or message.text for message in messages]


def letters(count: int) -> Messages:
    return tuple([user(str(number), id=f"m{number}") for number in range(count)])


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        (1, 1, ["m0", "[4 messages left out]", "m5"]),
        (0, 2, ["[4 messages left out]", "m4", "m5"]),
        (2, 0, ["m0", "m1", "[4 messages left out]"]),
        (2, 3, ["m0", "m1", "[1 message left out]", "m3", "m4", "m5"]),
        (3, 3, ["m0", "m1", "m2", "m3", "m4", "m5"]),
        (9, 9, ["m0", "m1", "m2", "m3", "m4", "m5"]),
    ],
)
def test_a_marker_stands_for_what_was_left_out(head: int, tail: int, expected: list[str]) -> None:
    assert said(head_tail(head, tail)(letters(6))) == expected


def test_the_marker_is_no_message_that_could_be_answered() -> None:
    assert [message.role for message in head_tail(1, 1)(letters(3))] == ["user", "system", "user"]


def test_system_messages_stand_beside_both_ends() -> None:
    history = (user("a", id="m1"), user("b", id="m2"), system("s", id="m3"), user("c", id="m4"), user("d", id="m5"))
    assert said(head_tail(1, 1)(history)) == ["m1", "[2 messages left out]", "m3", "m5"]


def test_the_marker_never_stands_between_a_call_and_its_result() -> None:
    history = (
        assistant(ASKED, ALSO, id="m1"),
        tool_result(ASKED, "in Porto", id="m2"),
        tool_result(ALSO, "4 left", id="m3", pinned=True),
        user("a", id="m4"),
        user("b", id="m5"),
    )
    kept = head_tail(0, 1)(history)
    assert said(kept) == ["m1", "m3", "[2 messages left out]", "m5"]
    assert breaches(kept) == []


@pytest.mark.parametrize(("head", "tail"), [(0, 0), (-1, 2), (1, True), (1.0, 1)])
def test_both_ends_are_numbers_of_messages(head: object, tail: object) -> None:
    with pytest.raises(InvalidFilter):
        head_tail(head, tail)  # type: ignore[arg-type]
