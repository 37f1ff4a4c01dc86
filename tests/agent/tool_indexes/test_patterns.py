"""Tools are found by a regular expression, which a model wrote."""

from typing import Any

import pytest

from handrail.agent import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes import Hit, RegexIndex

TOOLS = [
    ToolSpec("pay_bill", "Pays what is due (EUR).", {}),
    ToolSpec("list_bills", "Lists what has to be paid.", {}),
    ToolSpec("send", "Sends a bill to a customer.", {}),
    ToolSpec("a_search", "Looks for a bill.", {}),
]
BY_DEFAULT = RegexIndex()


def found(query: str, index: RegexIndex = BY_DEFAULT, limit: int = 9) -> list[str]:
    return [hit.name for hit in index.search(index.build(TOOLS), query, limit)]


def test_names_come_before_descriptions_and_each_in_order() -> None:
    assert found("bill") == ["list_bills", "pay_bill", "a_search", "send"]
    assert found("bill", limit=3) == ["list_bills", "pay_bill", "a_search"]
    assert found("bill", limit=1) == ["list_bills"]


def test_a_hit_says_where_it_fits() -> None:
    index = RegexIndex()
    assert index.search(index.build(TOOLS), "^send", 1) == [Hit("send", 1.0, ("name",))]
    assert index.search(index.build(TOOLS), "EUR", 1) == [Hit("pay_bill", 0.5, ("description",))]


def test_case_makes_a_difference_where_it_is_told_to() -> None:
    assert found("BILL$") == ["pay_bill"]
    assert found("BILL$", RegexIndex(case_sensitive=True)) == []


def test_what_is_no_expression_is_looked_for_as_it_is_written() -> None:
    assert found("(eur") == ["pay_bill"]
    assert found("(" * 400) == []
    assert found("bill" + "|x" * 200) == []


@pytest.mark.parametrize("pattern", ["(?:(a+)+)+[b-d]", "(?R)", "(?:a?){99}a{99}[b-d]", "(a|aa)+[b-d]"])
def test_an_expression_that_does_not_end_is_stopped(pattern: str) -> None:
    index = RegexIndex(timeout=0.005)
    long = [ToolSpec(f"tool_{number}", "a" * 400, {}) for number in range(40)]
    with pytest.raises(TimeoutError, match=r"longer than 0\.005 s; write a simpler one"):
        index.search(index.build(long), pattern, 5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pattern", ["[[a-z]]", "[a||b]", "[a--b]"])
def test_an_expression_warns_of_nothing(pattern: str) -> None:
    assert found(pattern) == found(pattern)


def test_a_timeout_is_above_0() -> None:
    with pytest.raises(BuildError, match="above 0, at most 60, not 0"):
        RegexIndex(timeout=0)


@pytest.mark.parametrize("query", ["(?au)pay", "pay(?V0)(?V1)", "(", "a{99999999999}", "(?<=a{1,9}"])
def test_whatever_is_no_expression_is_looked_for_as_written(query: str) -> None:
    index = RegexIndex()
    built = index.build([ToolSpec("a", f"It is {query}.", {}), ToolSpec("b", "pay", {})])
    assert [hit.name for hit in index.search(built, query, 5)] == ["a"]


@pytest.mark.parametrize(
    "options", [{"timeout": None}, {"timeout": "1"}, {"timeout": float("inf")}, {"case_sensitive": 1}]
)
def test_what_a_pattern_index_cannot_be_told_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="RegexIndex"):
        RegexIndex(**options)
