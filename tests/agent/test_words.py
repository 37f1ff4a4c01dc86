"""Words are found however their letters are dressed up, and nothing else is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.agent import BuildError
from handrail.agent.words import LOOKALIKES, STROKES, Words

FORBIDDEN = Words(["forbidden", "top secret"])


@pytest.mark.parametrize(
    "text",
    [
        "a forbidden thing",
        "unforbiddenly",
        "FORBIDDEN",
        "Ｆｏｒｂｉｄｄｅｎ",
        "𝐟𝐨𝐫𝐛𝐢𝐝𝐝𝐞𝐧",
        "ⓕⓞⓡⓑⓘⓓⓓⓔⓝ",
        "fo\u200brbi\u200ddd\u2060en",
        "forbid\u00adden",
        "for\x00bid\x08den",
        "f\ufe0forbidden",
        "fo\u202erbidden",
        "fórbïddẽn",
        "f\u0336o\u0336r\u0336b\u0336i\u0336d\u0336d\u0336e\u0336n\u0336",
        "f\u20dd\u0301\u0316o\u0489rbidden",
        "fоrbidden",
        "FΟRBIDDEΝ",
        "fοrЬidԁеn",
        "".join([chr(0xE0000 + ord(letter)) for letter in "forbidden"]),
        "for\U000e0078bidden",
        "top secret",
        "TOP\n\tSECRET",
        "top\u00a0\u3000secret",
    ],
)
def test_a_word_is_found_in_whatever_dress(text: str) -> None:
    assert FORBIDDEN.within(text)


@pytest.mark.parametrize(
    "text", ["", "for bidden", "f0rbidden", "forbiden", "topsecret", "top\u200bsecret", "neddibrof", "запрет", "禁止"]
)
def test_what_is_another_word_is_not_found(text: str) -> None:
    assert not FORBIDDEN.within(text)


def test_with_case_the_same_tricks_are_seen_through() -> None:
    words = Words(["Acme"], case_sensitive=True)
    assert words.within("Аcmе")
    assert words.within("Ａｃｍｅ")
    assert not words.within("acme")
    assert not words.within("ΑCME")


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("straße", "STRASSE", True),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("сор", "cop", False),
        ("вор", "ВОР", True),
        ("कुल", "कल", False),
        ("かき", "がぎ", False),
        ("ｶﾞ", "が", False),
        ("ガ", "ｶﾞ", True),
        ("가", "각", False),
        ("각", "각", True),
        ("café", "cafe\u0301", True),
        ("İstanbul", "istanbul", True),
        ("ﬁsh", "fish", True),
        ("can't", "can’t", True),
        ("x-ray", "X\u2011ray", True),
    ],
)
def test_words_of_other_scripts_are_found_as_they_are_written(word: str, text: str, found: bool) -> None:
    assert Words([word]).within(text) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class", False),
        ("ass", True),
        ("my ass!", True),
        ("_ass_", True),
        ("ass2", False),
        ("áss", True),
        ("класс ass", True),
    ],
)
def test_a_whole_word_has_no_letter_beside_it(text: str, found: bool) -> None:
    assert Words(["ass"], whole=True).within(text) is found


def test_a_whole_word_is_found_behind_one_that_is_not_whole() -> None:
    assert Words(["ass", "class"], whole=True).within("assess the class")


@pytest.mark.parametrize(
    "words", [[], "word", ["ok", ""], ["  "], ["\u200b"], ["\u0301"], [5], [None], None, iter(["word"])]
)
def test_what_is_no_word_is_refused(words: Any) -> None:
    with pytest.raises(BuildError, match="to look for"):
        Words(words)


def test_no_letter_looks_like_two() -> None:
    several = [other for table in (LOOKALIKES, STROKES) for others in table.values() for other in others]
    assert len(several) == len(set(several))
    assert all(not other.isascii() for other in several)


@given(st.text(), st.sampled_from(["bad", "véry bad", "плохо", "悪い"]), st.text())
def test_a_word_is_found_wherever_it_stands(before: str, word: str, after: str) -> None:
    assert Words([word]).within(f"{before} {word} {after}")


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert Words(["\U0001f600\U0001f600\U0001f600 never"]).within(text) is False


@given(st.lists(st.text("abc ", min_size=1).filter(str.strip), min_size=1), st.text("abc "))
def test_of_many_words_those_are_found_that_are_there(words: list[str], text: str) -> None:
    def bare(each: str) -> str:
        return " ".join(each.split())

    assert Words(words).within(text) is any(bare(word) in bare(text) for word in words)


@pytest.mark.parametrize(("letter", "crossed"), [(a, b) for a, several in STROKES.items() for b in several])
@pytest.mark.parametrize("case_sensitive", [False, True])
def test_a_stroke_through_a_letter_counts_neither_in_a_word_nor_in_a_text(
    letter: str, crossed: str, case_sensitive: bool
) -> None:
    plain, dressed = f"2{letter}3", f"2{crossed}3"
    for word, text in ((plain, dressed), (dressed, plain), (dressed, dressed)):
        assert Words([word], case_sensitive=case_sensitive).within(f"a {text}!")


@pytest.mark.parametrize("crossed", [each for several in STROKES.values() for each in several])
def test_letters_with_a_stroke_have_their_case_too(crossed: str) -> None:
    assert Words([crossed]).within(crossed.upper())
    assert Words([crossed]).within(crossed.lower())


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("Rødgrød", "RODGROD"),
        ("rodgrod", "rǿdgrød"),
        ("Łódź", "lodz"),
        ("Đorđe", "djordje đorđe"),
        ("ħal", "HAL"),
        ("ışık", "ISIK"),
        ("okay", "ꝁ is oķаұ, øꝁаұ"),
    ],
)
def test_names_with_strokes_are_found_as_they_are_typed_elsewhere(word: str, text: str) -> None:
    assert Words([word]).within(text)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("falcon", "falϲon"),
        ("falcon", "FALϹON"),
        ("falcon", "fꭺlcon"),
        ("falcon", "fal\x1ccon"),
        ("falcon", "fal\u2065con"),
        ("falcon", "fal\U000e0fffcon"),
        ("don’t panic", "don't panic"),
        ("don't panic", "don’t panic"),
        ("X–ray", "x-ray"),
        ("Łódź", "Lodz"),
        ("Lodz", "ŁÓDŹ"),
    ],
)
def test_words_and_texts_are_read_alike_at_every_stage(word: str, text: str) -> None:
    assert Words([word]).within(f"a {text} here")
