"""What a filter says it did."""

import pytest

from handrail.filters import (
    CounterMissing,
    assistant,
    compose,
    custom,
    full,
    last_n,
    strip_tool_calls,
    summary,
    tool_result,
    user,
)
from handrail.filters.messages import ToolCall

ASKED = ToolCall("c1", "track")
HISTORY = (
    user("Where is it?", id="m1"),
    assistant("One moment.", ASKED, id="m2"),
    tool_result(ASKED, "in Porto", id="m3"),
    assistant("In Porto."),
)


def test_a_report_says_step_by_step_what_became_of_each_message_and_why() -> None:
    report = compose(last_n(3), strip_tool_calls()).explain(HISTORY)
    assert str(report).splitlines() == [
        "last_n(n=3, keep_user=False): 4 -> 3 messages",
        "  dropped user m1: outside the last 3 messages",
        "strip_tool_calls(): 3 -> 2 messages",
        "  changed assistant m2: tool calls and their results do not cross",
        "  dropped tool m3: tool calls and their results do not cross",
        "strip_reasoning(): 2 -> 2 messages",
    ]


def test_a_report_has_the_counts_of_the_whole() -> None:
    report = compose(last_n(3), strip_tool_calls()).explain(HISTORY)
    assert (report.messages_in, report.messages_out, len(report.changes)) == (4, 2, 3)


def test_an_added_message_is_reported_where_it_stands() -> None:
    (change,) = summary("They talked.", keep_last=4).explain(HISTORY).changes
    assert (change.what, change.place, change.role) == ("added", 0, "system")
    assert (
        str(change)
        == "added system at 0: made by summary(text='They talked.', role='system', keep_last=4, sensitivity=None)"
    )


def test_a_message_without_an_id_is_known_by_itself() -> None:
    assert full().explain(HISTORY).changes == ()
    assert [change.place for change in custom(lambda history: history[:3]).explain(HISTORY).changes] == [3]


def test_a_report_with_a_counter_says_what_is_saved() -> None:
    report = compose(last_n(3), strip_tool_calls()).explain(HISTORY, "estimate@1")
    assert (report.tokens_in, report.tokens_out, report.saving) == (29, 12, 17)
    assert str(report).splitlines()[0] == "last_n(n=3, keep_user=False): 4 -> 3 messages, 29 -> 23 tokens"
    assert str(report).splitlines()[-1] == "saves 17 of 29 tokens (59%)"


def test_a_report_without_a_counter_counts_no_tokens() -> None:
    report = full().explain(HISTORY)
    assert (report.tokens_in, report.tokens_out, report.saving) == (None, None, None)


def test_a_counter_that_is_missing_is_an_error() -> None:
    with pytest.raises(CounterMissing):
        full().explain(HISTORY, "acme@1")
