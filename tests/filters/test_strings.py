"""Every text of a part, read and rewritten."""

import json

import pytest

from handrail.filters import Text, ToolCall
from handrail.filters.strings import json_tokens, looks_like_json, rewrite_json, strings


def loud(text: str, _: str) -> str:
    return text.upper()


def nothing(_: str) -> list[tuple[int, int]]:
    return []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a":"b"}', '{"A":"B"}'),
        ('{ "a" : 1.50,\n"n":123456789012345678901234567890 }', '{ "A" : 1.50,\n"N":123456789012345678901234567890 }'),
        ('{"a":"x","a":"y"}', '{"A":"X","A":"Y"}'),
        ('["\\u00e9 \\n"]', '["É \\n"]'),
        ('["{\\"b\\":\\"c\\"}"]', '["{\\"B\\":\\"C\\"}"]'),
        ("[]", "[]"),
        ("{broken", "{BROKEN"),
        ('["unclosed', '["UNCLOSED'),
    ],
)
def test_json_is_rewritten_string_by_string_where_it_stands(before: str, after: str) -> None:
    assert rewrite_json(before, loud, nothing) == after


def test_keys_that_would_become_one_stay_distinct_in_their_object() -> None:
    def same(text: str, _: str) -> str:
        return "X" if text.startswith("s") else text

    text = '{"s1":1,"a":[{"s2":2}],"s2":"s","X":4,"s1":5}'
    assert rewrite_json(text, same, nothing) == '{"X 2":1,"a":[{"X":2}],"X 3":"X","X":4,"X 2":5}'
    assert rewrite_json(text, same, nothing, keys=False) == text.replace('"s"', '"X"')


@pytest.mark.parametrize("opened", ['{"a":', "[", '["'])
def test_deep_nesting_is_read_like_any_other(opened: str) -> None:
    text = opened * 20_000
    assert rewrite_json(text, lambda said, _: said, nothing) == text
    assert list(strings(ToolCall("c1", "run", text)))


def test_json_in_json_is_read_only_so_deep() -> None:
    text = '"end"'
    for _ in range(12):
        text = json.dumps([text])
    assert any("end" in said for said, _ in strings(Text(text)))


def test_a_text_is_read_with_the_key_it_stands_under() -> None:
    call = ToolCall("c1", "run", '{"a":"x","b":["y",{"c":1}],"d":"{\\"e\\":\\"z\\"}"}')
    assert set(strings(call)) >= {("run", ""), ("x", "a"), ("1", "c"), ("z", "e")}


def test_what_broken_json_hides_behind_escapes_is_read() -> None:
    assert any("secret" in said for said, _ in strings(ToolCall("c1", "run", '{"a":"s\\u0065cret')))
    assert any("secret" in said for said, _ in strings(ToolCall("c1", "run", '{"a":"s\\\\u0065cret')))


@pytest.mark.parametrize(
    ("text", "is_json"), [("{}", True), (" [1]", True), ("[REDACTED:secret]", False), ("[sic] it", False)]
)
def test_words_are_no_json(text: str, is_json: bool) -> None:
    assert looks_like_json(text) is is_json


def test_a_lone_surrogate_in_json_is_written_as_it_was() -> None:
    tokens = json_tokens('["\\ud800"]')
    assert tokens is not None
    assert rewrite_json('["\\ud800","a"]', lambda said, _: "b" if said == "a" else said, nothing) == '["\\ud800","b"]'
