"""A summary in the place of what was said."""

from collections.abc import Iterator
from typing import Any

import pytest

from handrail.filters import History, InvalidFilter, Message, assistant, call, seal, summary, system, tool_result, user

ASKED = call("track", call_id="c1")
HISTORY = (
    system("Be brief.", id="1"),
    user("Where is it?", id="2"),
    assistant(ASKED, id="3"),
    tool_result(ASKED, "in Porto", id="4"),
    assistant("In Porto.", id="5"),
    system("Be kind.", id="6"),
    user("Thanks.", id="7"),
)


def texts(filter: Any, history: Any = HISTORY) -> list[str]:
    return [message.text for message in filter(history)]


def test_a_summary_stands_where_the_first_replaced_message_stood() -> None:
    assert texts(summary("They talked.")) == ["Be brief.", "They talked.", "Be kind."]
    assert [message.role for message in summary("They talked.", role="user")(HISTORY)] == ["system", "user", "system"]


def test_a_tail_stays_and_a_result_in_it_needs_its_call() -> None:
    assert texts(summary("They talked.", keep_last=1)) == ["Be brief.", "They talked.", "Be kind.", "Thanks."]
    assert texts(summary("They talked.", keep_last=3)) == [
        "Be brief.",
        "They talked.",
        "In Porto.",
        "Be kind.",
        "Thanks.",
    ]


def test_pinned_messages_stay_where_they_are() -> None:
    history = (user("Order 8841", pinned=True), user("Where is it?"), assistant("In Porto."))
    assert texts(summary("They talked."), history) == ["Order 8841", "They talked."]


@pytest.mark.parametrize(
    ("history", "expected"), [((), ["Hi"]), ((system("s"), user("a")), ["s", "Hi", "a"]), ((system("s"),), ["s", "Hi"])]
)
def test_a_summary_is_there_also_where_it_replaces_nothing(history: Any, expected: list[str]) -> None:
    assert texts(summary("Hi", keep_last=9), history) == expected


def test_a_summary_crosses_with_an_id_of_its_own() -> None:
    first = seal(summary("They talked.", role="user"))(HISTORY)
    assert first[1].id.startswith("f1-")
    assert seal(summary("They talked.", role="user"))(HISTORY) == first


def test_the_text_stands_in_the_descriptor_whole() -> None:
    assert summary("half \ud83d").descriptor["params"]["text"] == "half \ufffd"


@pytest.mark.parametrize(
    "wrong", [{"text": " "}, {"text": 3}, {"text": "a", "role": "tool"}, {"text": "a", "keep_last": -1}]
)
def test_a_summary_says_something_in_a_role_of_the_application(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilter):
        summary(**wrong)


class Read(list[Message]):
    """Messages kept elsewhere, and how many of them were asked for."""

    asked = 0

    def __iter__(self) -> Iterator[Message]:
        for message in super().__iter__():
            self.asked += 1
            yield message


@pytest.mark.parametrize("keep_last", [0, 3])
def test_a_view_that_was_walked_once_is_not_walked_again_at_the_next_boundary(keep_last: int) -> None:
    items = Read([user(f"{number}", id=f"m{number}") for number in range(2_000)])
    view = History.over(items)
    sealed = seal(summary("They talked.", role="user", keep_last=keep_last))
    first = sealed(view)
    before = items.asked
    assert sealed(view) == first
    assert len(sealed(view.append(user("More.", id="m")))) == 1 + keep_last
    assert items.asked - before < 50


def test_a_view_with_messages_without_an_id_keeps_them_as_they_are() -> None:
    said = user("Thanks.")
    given = History([user("Where is it?", id="1"), said])
    assert seal(summary("They talked.", keep_last=1))(given)[-1] is said
