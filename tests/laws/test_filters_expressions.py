"""Whatever text is read as an expression or a descriptor: a filter, or a typed error that names the place."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail.filters import Filter, InvalidDescriptor, InvalidExpression, from_descriptor, parse
from laws.strategies import any_text

signs = st.sampled_from(["(", ")", "|", ",", "=", "[", "]"])
values = st.sampled_from(
    [
        "last_n",
        "summary",
        "compose",
        "none",
        "3",
        "-1",
        "1.5",
        "'x'",
        "keep",
        "when",
        "redact",
        "by_agent",
        "token_budget",
    ]
)
pieces = st.lists(signs | values | any_text, max_size=12).map(" ".join)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["last-n", "compose", "seal", "custom", "keep", "when", "redact"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "version", "params", "steps", "n", "name", "text", "predicate", "patterns", "detect"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


def parsed(text: str) -> Filter | InvalidExpression:
    try:
        return parse(text)
    except InvalidExpression as error:
        return error


def rebuilt(value: Any) -> Filter | InvalidDescriptor:
    try:
        return from_descriptor(value)
    except InvalidDescriptor as error:
        return error


@given(pieces)
def test_a_text_is_a_filter_or_an_error_with_a_column(text: str) -> None:
    outcome = parsed(text)
    assert isinstance(outcome, Filter) or 1 <= outcome.column <= len(text) + 1


@given(json_values)
def test_a_value_is_a_descriptor_or_an_error_with_a_problem(value: Any) -> None:
    outcome = rebuilt(value)
    assert isinstance(outcome, Filter) or outcome.problem
