"""Tools are found by the words of their names and descriptions, the rarer the better."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.agent import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.tool_indexes import KeywordIndex

BY_DEFAULT = KeywordIndex()


def tools(**about: str) -> list[ToolSpec]:
    return [ToolSpec(name, text, {}) for name, text in about.items()]


def found(query: str, specs: list[ToolSpec], index: KeywordIndex = BY_DEFAULT, limit: int = 9) -> list[str]:
    return [hit.name for hit in index.search(index.build(specs), query, limit)]


SHOP = tools(
    get_order="Looks an order up by its number.",
    refundOrder="Pays an order back to the customer.",
    list_customers="Lists customers by name or place.",
    send_mail="Sends a letter to a customer.",
)


def test_the_best_fit_comes_first_and_what_does_not_fit_not_at_all() -> None:
    assert found("refund an order", SHOP) == ["refundOrder", "get_order"]
    assert found("weather", SHOP) == []


def test_a_score_is_that_of_bm25() -> None:
    specs = tools(pay="bill bill now", send="a bill")
    hits = {
        hit.name: hit.score
        for hit in KeywordIndex(name_boost=2).search(KeywordIndex(name_boost=2).build(specs), "bill", 9)
    }
    idf, average = math.log(1 + (2 - 2 + 0.5) / (2 + 0.5)), (5 + 4) / 2

    def expected(times: int, length: int) -> float:
        return idf * times * 2.2 / (times + 1.2 * (1 - 0.75 + 0.75 * length / average))

    assert hits == {"pay": pytest.approx(expected(2, 5)), "send": pytest.approx(expected(1, 4))}


def test_a_word_of_the_name_weighs_more_than_one_of_the_description() -> None:
    specs = tools(archive="Puts an invoice away for good.", invoice="Makes a paper out of one sale.")
    assert found("invoice", specs) == ["invoice", "archive"]


def test_equal_scores_are_in_the_order_of_names_however_the_tools_came() -> None:
    specs = tools(c="bill", a="bill", b="bill")
    assert found("bill", specs) == found("bill", specs[::-1]) == ["a", "b", "c"]
    assert found("bill", specs, limit=2) == ["a", "b"]


def test_a_word_that_is_repeated_in_a_query_weighs_no_more() -> None:
    index = KeywordIndex()
    built = index.build(SHOP)
    assert index.search(built, "order order", 9) == index.search(built, "order", 9)


def test_a_hit_says_which_words_it_fits() -> None:
    index = KeywordIndex()
    assert index.search(index.build(SHOP), "Refunds for customers", 1)[0].matched == ("refunds", "customers")


def test_a_single_character_finds_longer_names_and_descriptions() -> None:
    specs = tools(orders="查询订单的状态", refunds="退款给客户")
    assert found("退", specs) == ["refunds"]
    assert found("订单", specs) == ["orders"]
    assert found("单订", specs) == []


def test_single_characters_make_no_text_longer() -> None:
    index, specs = KeywordIndex(), tools(a="退款 pay", b="退款客 pay")
    scores = {hit.name: hit.score for hit in index.search(index.build(specs), "pay", 9)}
    average = (3 + 2 + 3 + 3) / 2
    idf = math.log(1 + 0.5 / 2.5)
    assert scores["a"] == pytest.approx(idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 5 / average)))


@pytest.mark.parametrize("query", ["github", "GitHub", "git hub", "GITHUB"])
def test_a_name_in_camel_case_is_found_in_one_word_and_in_two(query: str) -> None:
    assert found(query, tools(issue="Opens an issue on GitHub.", mail="Sends a mail.")) == ["issue"]


def test_an_unsplit_name_is_found_by_its_camel_case() -> None:
    assert found("GitHub", tools(github="Opens an issue.", mail="Sends a mail.")) == ["github"]


def test_endings_make_no_difference_unless_they_are_told_to() -> None:
    specs = tools(pay="Refunds what was paid.")
    assert found("refunding", specs) == ["pay"]
    assert found("refunding", specs, KeywordIndex(stem="")) == []
    assert found("gekaufte", tools(k="Zeigt den gekauften Artikel."), KeywordIndex(stem="german")) == ["k"]


def test_a_synonym_stands_for_what_it_was_said_to() -> None:
    index = KeywordIndex(synonyms={"reimburse": ["refund", "pay back"]})
    assert found("reimburse her", SHOP, index)[0] == "refundOrder"
    assert found("reimbursing", SHOP, index)[0] == "refundOrder"
    assert found("reimburse", SHOP) == []


def test_nothing_is_found_among_no_tools_or_by_no_words() -> None:
    assert found("order", []) == []
    assert found("?!", SHOP) == []


@given(st.lists(st.text()), st.text())
def test_whatever_is_written_hits_are_ordered_and_weigh_something(texts: list[str], query: str) -> None:
    specs = tools(**{f"t{number}": text for number, text in enumerate(texts)})
    hits = BY_DEFAULT.search(BY_DEFAULT.build(specs), query, 3)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.name))
    assert all(hit.score > 0 and hit.matched for hit in hits)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"k1": -1}, "k1 from 0 to"),
        ({"b": 1.5}, "b from 0 to 1"),
        ({"name_boost": 0}, "name_boost"),
        ({"k1": None}, "k1 from 0 to"),
        ({"b": "1"}, "b from 0 to 1"),
        ({"stem": None}, "stem is one of"),
        ({"stem": ["english"]}, "stem is one of"),
        ({"synonyms": ["pay"]}, "synonyms are lists of words"),
        ({"synonyms": {"pay": 1}}, "synonyms are lists of words"),
        ({"synonyms": {1: ["pay"]}}, "synonyms are lists of words"),
        ({"stem": "klingon"}, "stem is one of arabic, .*not 'klingon'"),
        ({"synonyms": {"pay": "refund"}}, "synonyms are lists of words"),
        ({"synonyms": {"pay": [1]}}, "synonyms are lists of words"),
        ({"synonyms": {"pay back": ["refund"]}}, "by one word each"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        KeywordIndex(**options)
