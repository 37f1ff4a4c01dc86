"""Names and descriptions are split into words that can be compared, in any script."""

import doctest
from importlib import import_module

import pytest

from handrail.agent.tool_indexes.words import words


def test_what_is_documented_is_so() -> None:
    assert doctest.testmod(import_module("handrail.agent.tool_indexes.words")).failed == 0


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getInvoice", ["get", "invoice"]),
        ("list_open-invoices.v2", ["list", "open", "invoices", "v", "2"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("userIDs", ["user", "ids"]),
        ("OAuth2Token", ["o", "auth", "2", "token"]),
        ("ÜbergrößeCafé", ["übergrösse", "café"]),
        ("ИскатьКлиента", ["искать", "клиента"]),
        ("ग्राहक खोजें", ["ग्राहक", "खोजें"]),
        ("", []),
        ("!? -- …", []),
    ],
)
def test_identifiers_are_split_where_a_person_would(text: str, terms: list[str]) -> None:
    assert words(text).terms == terms


@pytest.mark.parametrize("text", ["ＰＡＹ", "Pay", "PAY", "pay"])
def test_width_and_case_make_no_difference(text: str) -> None:
    assert words(text).terms == ["pay"]


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert words("cafe\u0301").terms == words("caf\u00e9").terms == ["café"]


def test_half_width_kana_is_as_full_width() -> None:
    assert words("ﾃｽﾄ") == words("テスト")


def test_scripts_without_spaces_are_pairs_of_characters_and_each_of_them() -> None:
    found = words("查询订单API退")
    assert found.terms == ["查询", "询订", "订单", "api", "退"]
    assert found.characters == ["查", "询", "订", "单"]


def test_a_name_that_camel_case_splits_is_kept_as_a_whole_too() -> None:
    assert words("open a GitHub issue").whole == ["github"]
