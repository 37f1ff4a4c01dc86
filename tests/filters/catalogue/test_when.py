"""One filter or another."""

import pytest

from handrail.filters import (
    InvalidFilter,
    Message,
    Note,
    assistant,
    from_descriptor,
    full,
    last_n,
    none,
    parse,
    predicate,
    redact,
    seal,
    strip_tool_calls,
    user,
    when,
)

HISTORY = (user("Hello", id="m1"), assistant("Hi.", id="m2"), user("My refund?", id="m3"))


@predicate("tests/breaks-on-hello")
def breaks_on_hello(message: Message) -> bool:
    """Cannot say anything of a greeting."""
    if message.text == "Hello":
        raise LookupError
    return False


def test_one_message_of_which_it_is_true_decides() -> None:
    filter = when("mentions", last_n(1), full(), text="refund")
    assert [message.id for message in filter(HISTORY)] == ["m3"]
    assert filter(HISTORY[:2]) == HISTORY[:2]


def test_a_message_of_which_nothing_can_be_said_crosses_in_neither_case() -> None:
    assert [message.id for message in when("tests/breaks-on-hello", none(), full())(HISTORY)] == ["m2", "m3"]


def test_a_note_passes_where_both_branches_judge_each_message_alone() -> None:
    both = when("mentions", redact("refund"), strip_tool_calls(), text="refund")
    assert both.per_message
    assert not when("mentions", last_n(1), redact("refund"), text="refund").per_message
    seed = seal(both).hand_over((), [Note("input", "my refund please")])
    assert [message.text for message in seed] == ["my [REDACTED:secret] please"]


def test_it_is_rebuilt_with_both_branches() -> None:
    filter = when("mentions", last_n(1), full(), text="refund")
    assert from_descriptor(filter.descriptor) == filter
    assert parse("when('mentions', last_n(1), full(), text='refund')") == filter


def test_a_branch_is_a_filter() -> None:
    with pytest.raises(InvalidFilter):
        when("mentions", last_n(1), "full")
