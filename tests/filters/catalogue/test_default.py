"""The filter of every edge without one of its own."""

from handrail.filters import (
    Reasoning,
    assistant,
    call,
    compose,
    default_handoff_filter,
    last_n,
    strip_sensitive_outputs,
    tool_result,
    user,
)


def test_the_default_is_the_last_ten_messages_without_sensitive_outputs() -> None:
    assert default_handoff_filter() == compose(last_n(10, keep_user=True), strip_sensitive_outputs())


def test_the_default_keeps_the_question_and_no_thought() -> None:
    asked = call("balance", call_id="c1")
    history = [
        user("How much?"),
        assistant(Reasoning("They look rich."), asked),
        tool_result(asked, "12,400", sensitivity="secret"),
        *[assistant(f"Step {number}.") for number in range(12)],
    ]
    left = default_handoff_filter()(history)
    assert [message.text for message in left] == ["How much?", *[f"Step {number}." for number in range(2, 12)]]
