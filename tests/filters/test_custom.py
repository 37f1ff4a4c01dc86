"""Filters that are plain functions."""

import json
from typing import Any

import pytest

from handrail.filters import (
    FilterNotRunnable,
    InvalidFilter,
    compose,
    custom,
    custom_filter,
    from_descriptor,
    last_n,
    last_user,
    seal,
    user,
)
from handrail.filters.messages import Messages

HISTORY = (user("a", id="m1"), user("b", id="m2"), user("c", id="m3"))


@custom_filter("tail")
def tail(history: Messages, n: int = 1) -> Messages:
    """The last messages."""
    return history[-n:]


def test_an_anonymous_function_says_so_and_never_becomes_everything() -> None:
    written = json.dumps(custom(lambda history: history[-1:]).descriptor)
    assert '"kind": "custom"' in written
    assert "<lambda>" not in written
    assert "<locals>" not in written
    rebuilt = from_descriptor(written)
    assert json.dumps(rebuilt.descriptor) == written
    with pytest.raises(FilterNotRunnable, match="an anonymous function is not registered"):
        seal(rebuilt)(HISTORY)


def test_a_registered_function_is_rebuilt_by_its_name() -> None:
    rebuilt = from_descriptor(json.dumps(custom("tail").descriptor))
    assert rebuilt == custom("tail") == custom(tail)
    assert rebuilt(HISTORY) == HISTORY[-1:]


def test_parameters_stand_in_the_descriptor_and_reach_the_function() -> None:
    filter = custom("tail", params={"n": 2})
    assert filter.descriptor["params"]["params"] == {"n": 2}
    assert from_descriptor(filter.descriptor)(HISTORY) == HISTORY[-2:]


def test_parameters_are_the_filters_own() -> None:
    given: dict[str, Any] = {"n": 2, "more": (1,)}
    filter = custom(lambda history, n, more: more.append(1) or history[-n:], params=given)
    given["n"] = 1
    assert filter(HISTORY) == filter(HISTORY) == HISTORY[-2:]
    assert filter.params == {"n": 2, "more": [1]}


def test_a_name_that_nobody_registered_does_not_run_and_is_named() -> None:
    with pytest.raises(FilterNotRunnable, match=r"'nobody' version 1 is not registered; known: .*tail@1"):
        custom("nobody")(HISTORY)


def test_a_name_belongs_to_one_function() -> None:
    with pytest.raises(ValueError, match="'tail' version 1 is already"):
        custom_filter("tail")(lambda history: history)
    with pytest.raises(InvalidFilter, match="'tail' version 1 belongs to"):
        custom(lambda history: history, name="tail")


@pytest.mark.parametrize("wrong", [3, None, [user("a")]])
def test_what_is_no_function_is_no_filter(wrong: Any) -> None:
    with pytest.raises(InvalidFilter):
        custom(wrong)
    with pytest.raises(InvalidFilter, match="a filter is a value such as"):
        seal(wrong)


@pytest.mark.parametrize("maker", [last_n, last_user, compose])
def test_what_makes_a_filter_and_was_not_called_is_none(maker: Any) -> None:
    for takes in (seal, compose, custom):
        with pytest.raises(InvalidFilter, match=rf"{maker.__name__} makes a filter and is none itself; call it, as"):
            takes(maker)


def test_a_function_that_must_be_awaited_is_no_filter() -> None:
    async def later(history: Messages) -> Messages:
        return history

    with pytest.raises(InvalidFilter, match="a plain function"):
        seal(later)


@pytest.mark.parametrize("params", [{"x": {1, 2}}, [1]])
def test_parameters_that_are_no_json_object_are_refused(params: Any) -> None:
    with pytest.raises(InvalidFilter, match="the params of a custom filter are"):
        custom(tail, params=params)
