"""Filters written as text."""

import pytest

from handrail.filters import (
    Filter,
    InvalidExpression,
    compose,
    custom,
    default_handoff_filter,
    full,
    last_n,
    last_user,
    none,
    parse,
    strip_sensitive_outputs,
    strip_tool_calls,
    summary,
)


@pytest.mark.parametrize(
    ("text", "filter"),
    [
        ("full", full()),
        ("none()", none()),
        ("none", none()),
        ("last_n(10)", last_n(10)),
        (" last_n ( n = 3 , keep_user = true ) ", last_n(3, keep_user=True)),
        ("last_n(3, keep_user=True,)", last_n(3, keep_user=True)),
        ("last_n(10) | strip_tool_calls", compose(last_n(10), strip_tool_calls())),
        ("last_n(10)|strip_tool_calls()|last_user", compose(last_n(10), strip_tool_calls(), last_user())),
        ("""summary('it\\'s "so"\\n', keep_last=2)""", summary('it\'s "so"\n', keep_last=2)),
        ('summary("\\u5317 \\x41 \\U0001f378")', summary("北 A 🍸")),
        ("summary('a | b (c)')", summary("a | b (c)")),
        ("compose(last_n(3), full)", compose(last_n(3), full())),
        ("compose(last_n(3) | full, none())", compose(last_n(3), full(), none())),
        ("strip_sensitive_outputs(on_drop='placeholder')", strip_sensitive_outputs(on_drop="placeholder")),
        ("custom('acme/tail', version=2)", custom("acme/tail", version=2)),
        ("default_handoff_filter", default_handoff_filter()),
    ],
)
def test_an_expression_is_what_the_functions_of_its_names_give(text: str, filter: Filter) -> None:
    assert parse(text) == filter


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "the name of a filter is expected"),
        ("last_n(10) |", 13, "the name of a filter is expected"),
        ("last_m(10)", 1, "no filter is called 'last_m'; did you mean 'last_n'?"),
        ("full | strip_tols", 8, "did you mean 'strip_tool_calls'?"),
        ("last_n(10) strip_tool_calls", 12, "'|' or the end is expected"),
        ("last_n(10", 10, "',' or ')' is expected"),
        ("last_n(,)", 8, "a value is expected"),
        ("last_n(0)", 1, "at least 1, not 0"),
        ("last_n('3')", 1, "a whole number"),
        ("last_n(n=1, n=2)", 13, "'n' is given twice"),
        ("last_n(n=1, 2)", 13, "a positional argument stands after a named one"),
        ("last_n(m=1)", 1, "unexpected keyword argument 'm'"),
        ("full | last_n(1, 2, 3)", 8, "positional argument"),
        ("summary('open)", 9, "no closing quote"),
        ("summary('\\q')", 10, "no character is written"),
        ("summary('\\ud8')", 10, "no character is written"),
        ("last_n(3) & full", 11, "'&' has no meaning"),
        ("last_n(" + "9" * 5000 + ")", 8, "too long"),
        ("custom([1])", 1, "a custom filter is a plain function"),
        ("compose(none, None)", 1, "a filter is a value such as"),
        ("compose(" * 60 + ")" * 60, 409, "nested deeper than 50"),
        ("[" * 60, 1, "the name of a filter is expected"),
        ("custom('x', version='two')", 1, "revision"),
        ("__import__('os')", 1, "no filter is called '__import__'"),
        ("last_n.__class__", 7, "'.' has no meaning"),
    ],
)
def test_a_mistake_is_an_error_with_its_column(text: str, column: int, problem: str) -> None:
    with pytest.raises(InvalidExpression) as raised:
        parse(text)
    assert (raised.value.column, raised.value.expression) == (column, text)
    assert problem in raised.value.problem
    assert f"column {column}" in str(raised.value)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(InvalidExpression, match=r"possible: .*last_n, last_turns, last_user") as raised:
        parse("lastly")
    assert "strip_reasoning" in raised.value.possible


def test_a_long_expression_is_read_at_once_and_an_error_in_it_is_short() -> None:
    assert len(parse(" | ".join(["full"] * 5_000)).flat) == 5_001
    with pytest.raises(InvalidExpression) as raised:
        parse(" " * 200_000 + "?" + "'" * 200_000)
    assert len(str(raised.value)) < 300
