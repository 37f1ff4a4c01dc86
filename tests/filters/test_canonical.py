"""Canonical JSON of what others wrote."""

import json
import sys
from contextlib import suppress
from itertools import product

import pytest

from handrail.filters import ToolCall, assistant
from handrail.filters.canonical import DEEPEST, canonical, canonical_text, not_canonical


def own(kind: str, text: str) -> str:
    return json.dumps({"$handrail": [kind, text]}, separators=(",", ":"), ensure_ascii=False)


def test_by_one_look_at_many_texts_none_that_may_change_is_missed_whatever_stands_beside_it() -> None:
    texts = ["", " ", "\n", "\r", "{}", "{ }", "1", "1\n2", "1 2", "[1,", "2]", "[1]\n", "1.0", '"a"', "null"]
    for beside in product(texts, repeat=3):
        changed = {place for place, text in enumerate(beside) if canonical_text(text) != text}
        assert changed <= set(not_canonical(beside)), beside


@pytest.mark.parametrize("text", ["", "  ", "{}", "{ }"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert canonical_text(text) == "{}"


def test_text_that_is_not_json_stays_as_it_is() -> None:
    assert canonical_text('{"path": "/tm') == '{"path": "/tm'


def test_key_order_spaces_and_escapes_do_not_matter() -> None:
    assert canonical_text('{ "b": 1,\n "a": "\\u00e9" }') == canonical_text('{"a":"é","b":1}') == '{"a":"é","b":1}'


def test_keys_beyond_the_basic_plane_are_ordered_as_utf_16() -> None:
    assert canonical_text('{"\ufb33": 1, "🍸": 2}') == '{"🍸":2,"\ufb33":1}'


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("[NaN]", own("number", "nan")),
        ("[-Infinity]", own("number", "-inf")),
        ("[9007199254740993]", own("integer", "9007199254740993")),
        (f"[{'7' * 5000}]", own("integer", "7" * 5000)),
        ('["\\udc97"]', own("text", '"\\udc97"')),
        ('[{"b":1,"a":1,"a":2}]', own("object", '{"a":1,"a":2,"b":1}')),
        ('[{"\\ud800":1}]', own("object", '{"\\ud800":1}')),
        ('[{"$handrail":[1]}]', own("object", '{"$handrail":[1]}')),
    ],
)
def test_what_the_standard_cannot_carry_is_written_in_our_own_way(text: str, carried: str) -> None:
    assert canonical_text(text) == f"[{carried}]"


def test_our_own_key_written_by_others_is_not_taken_for_ours() -> None:
    assert canonical_text('{"$handrail":["number","nan"]}') != canonical_text("NaN")


def test_values_of_python_are_carried_too() -> None:
    from datetime import date

    assert canonical({"d": date(2024, 5, 1), "b": b"\x00"}) == (
        f'{{"b":{own("bytes", "00")},"d":{own("date", "2024-05-01")}}}'.encode()
    )


def test_objects_that_repeat_their_keys_at_every_level_do_not_grow() -> None:
    text = '{"a":0,"a":' * DEEPEST + "0" + "}" * DEEPEST
    assert text != canonical_text(text)
    assert len(canonical_text(text)) < 3 * len(text)


def test_text_nested_beyond_reading_is_kept_as_it_is() -> None:
    text = "[" * 200_000
    assert canonical_text(text) == text


@pytest.mark.parametrize(
    ("opening", "closing", "levels"),
    [("[", "]", 1), ('{"b":1,"a":', "}", 1), ('{"a":0,"a":', "}", 1), ('[{"\\"[":', "}]", 2)],
)
def test_how_deep_is_read_is_told_by_the_text_alone(opening: str, closing: str, levels: int) -> None:
    times = DEEPEST // levels
    read = f"{opening * times} 1.0{closing * times}"
    assert canonical_text(read) != read
    assert canonical_text(f"[{read}]") == f"[{read}]"


def test_brackets_side_by_side_and_in_words_are_not_deep() -> None:
    text = '["[[[[{{\\"", ' + "[1.0]," * 500 + "2.0]"
    assert canonical_text(text).endswith("[1],2]")


def test_a_digest_does_not_depend_on_how_deep_its_caller_stands() -> None:
    text = f"{'[' * DEEPEST} 1.0{']' * DEEPEST}"
    found = set()
    for depth in range(0, sys.getrecursionlimit(), 25):
        with suppress(RecursionError):
            found.add(called_from(depth, text))
    assert found == {canonical_text(text)} != {text}


def called_from(depth: int, text: str) -> str:
    return called_from(depth - 1, text) if depth else canonical_text(text)


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000 + "[" * 101, '"\\' * 200_000 + "[" * 101, '["' * 200_000])
def test_text_made_to_be_read_slowly_is_read_at_once(text: str) -> None:
    assert canonical_text(text) == text


def test_calls_with_the_same_arguments_have_the_same_digest() -> None:
    spaced = assistant(ToolCall("c1", "pay", '{"to": "A", "sum": 1.0}'))
    tight = assistant(ToolCall("c1", "pay", '{"sum":1,"to":"A"}'))
    other = assistant(ToolCall("c1", "pay", '{"sum":2,"to":"A"}'))
    assert spaced.digest == tight.digest != other.digest


def test_large_whole_numbers_tell_calls_apart() -> None:
    one = assistant(ToolCall("c1", "find", '{"id":2512292042121000001}'))
    other = assistant(ToolCall("c1", "find", '{"id":2512292042121000002}'))
    assert one.digest != other.digest


def test_of_the_arguments_of_many_calls_those_that_are_not_canonical_are_found_at_one_look() -> None:
    canonical_ones = ['{"order":1,"words":["é\\n",null,true]}', "{}", '"two\\nlines"', "-7"]
    assert not_canonical(canonical_ones) == []
    for odd in ("", "{ }", '{"b":1,"a":2}', '"\\u00e9"'):
        assert not_canonical([*canonical_ones, odd, "{}"]) == [4]
    for odd in ('"a', "1\n2", '{"a":1}\n', '{"$handrail":1}', '"🍸"', "[[[[1]]]]"):
        assert 4 in not_canonical([*canonical_ones, odd])
