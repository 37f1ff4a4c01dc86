"""JSON is read strictly out of what a model wrote, and whatever is not one JSON value says what is wrong."""

from typing import Any

import pytest

from handrail.agent.json_texts import DEEPEST, NotJson, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("  [1, 2]\n", [1, 2]),
        ("\ufeff3.5", 3.5),
        ('"```json\\n1\\n```"', "```json\n1\n```"),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("```\nnull\n```", None),
        ("```JSON {}```", {}),
        ('Here it is:\n```json\n{"a": 1}\n```\nAnything else?', {"a": 1}),
        ('```json\n{"code": "```py\\n1\\n```"}\n```', {"code": "```py\n1\n```"}),
        ("```python\nprint()\n```\nso\n```json\n2\n```", 2),
        ("```json\n[1]", [1]),
        ("```\n1\n```\n```\n2\n```", 1),
        ("1" * 4000, int("1" * 4000)),
    ],
)
def test_the_value_comes_whole_or_out_of_the_first_json_fence(text: str, value: Any) -> None:
    assert read_json(text).value == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("```json\n```", "not JSON"),
        ("It is 5.", "not JSON: Expecting value at line 1, column 1"),
        ('{"a": 1} and more', "other text after the JSON"),
        ('{"a": 1}{"a": 2}', "other text after the JSON"),
        ("```json\n1 of 2\n```", "other text after the JSON"),
        ('{"a": 1, "b": {"a": 2, "a": 3}}', 'the key "a" stands twice'),
        ("[NaN]", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("[1e999]", "1e999 is too large"),
        ("1" * 5000, "more digits than can be read"),
        ("{'a': 1}", "not JSON"),
        ("[1,]", "not JSON"),
        ('"a\nb"', "Invalid control character at line 1, column 3"),
        ('{"note": "```json\n{}\n```"', "not JSON"),
        ("[" * 100_000, "not JSON|nested deeper"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested deeper"),
    ],
)
def test_whatever_is_not_one_json_value_is_refused_with_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(NotJson, match=problem):
        read_json(text)


def test_a_fence_may_be_ruled_out() -> None:
    with pytest.raises(NotJson):
        read_json("```json\n1\n```", fence=False)


def test_depth_is_counted_in_values_and_not_in_texts() -> None:
    assert read_json("[" * DEEPEST + "]" * DEEPEST).value
    assert read_json('{"a": "' + "[" * 1000 + '"}').value == {"a": "[" * 1000}


def test_half_a_surrogate_pair_is_no_character() -> None:
    assert read_json('["\\ud800", "\\ud83d\\ude00"]').value == ["\ufffd", "😀"]


def test_two_keys_of_half_a_pair_are_one_that_stands_twice() -> None:
    with pytest.raises(NotJson, match="stands twice"):
        read_json('{"\\ud800": 1, "\\udfff": 2}')
