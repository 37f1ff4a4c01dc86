"""Several filters as one."""

import pytest

from handrail.filters import (
    InvalidFilter,
    Reasoning,
    assistant,
    compose,
    full,
    last_n,
    last_user,
    strip_reasoning,
    strip_tool_calls,
    user,
)


def test_filters_are_applied_from_left_to_right() -> None:
    history = (user("a"), assistant("b"), user("c"))
    assert compose(last_user(), last_n(1))(history) == (user("c"),)
    assert compose(lambda given: given[:2], last_user())(history) == (user("a"),)


def test_a_composition_always_ends_without_reasoning() -> None:
    assert compose()((assistant(Reasoning("hm"), "Hi"),)) == (assistant("Hi"),)
    assert compose(full()).steps[-1] == strip_reasoning()
    assert compose(full(), strip_reasoning()) == compose(full())


def test_a_composition_within_one_is_flattened_and_its_closing_step_goes() -> None:
    nested = compose(compose(last_n(3), strip_tool_calls()), last_user())
    assert nested == compose(last_n(3), strip_tool_calls(), last_user())
    assert repr(nested) == "compose(last_n(n=3, keep_user=False), strip_tool_calls(), last_user(), strip_reasoning())"


def test_a_composition_judges_each_message_alone_when_all_its_steps_do() -> None:
    assert compose(strip_tool_calls()).per_message
    assert not compose(strip_tool_calls(), last_n(3)).per_message


def test_what_is_no_filter_cannot_be_composed() -> None:
    with pytest.raises(InvalidFilter, match=r"not \['last_n'\]"):
        compose(full(), ["last_n"])  # type: ignore[arg-type]
