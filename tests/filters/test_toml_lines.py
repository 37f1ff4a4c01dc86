"""The lines of keys and tables in TOML."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handrail.filters.toml_lines import Lines, mistake

TEXT = """
first = 1
"quoted key" = [ # a comment with ] and "
  '[[rule]]', "=",
]
a.b.c = '''
[[rule]]
'''

[[rule]]
name = "x"

[[ rule ]]   # the second
other = { inner = 1, more = "[" }
  [rule.nested]
  deep = 1
"""


def test_every_key_and_table_has_its_line() -> None:
    lines = Lines(TEXT)
    assert [lines.at(*path) for path in (("first",), ("quoted key",), ("a",), ("a", "b", "c"))] == [2, 3, 6, 6]
    assert [lines.at("rule", place) for place in (0, 1)] == [10, 13]
    assert lines.at("rule", 0, "name") == 11
    assert lines.at("rule", 1, "nested") == 15
    assert lines.at("rule", 1, "nested", "deep") == 16


def test_what_stands_within_a_value_has_the_line_of_its_key() -> None:
    assert Lines(TEXT).at("rule", 1, "other", "inner") == 14
    assert Lines(TEXT).at("nowhere") == 1


@given(
    st.lists(st.sampled_from(['"a"', "'''x\n[[t]]\n'''", '"""\n#\\""""', "[ # ]\n1,\n]", "'#'", "1 # =", "{a = [1]}"]))
)
def test_a_key_after_any_values_has_its_line(values: list[str]) -> None:
    text = "".join([f"k{place} = {value}\n" for place, value in enumerate(values)])
    last = f"{text}[[t]]\nlast = 1"
    assert set(tomllib.loads(last)) >= {"t"}
    assert Lines(last).at("t", 0, "last") == last.count("\n") + 1


def test_a_mistake_of_the_parser_is_its_line_and_its_words() -> None:
    def told(text: str) -> Any:
        try:
            tomllib.loads(text)
        except ValueError as error:
            return mistake(text, error)

    assert told("a = 1\nb = \n") == (2, "invalid value")
    assert told("a = 1\n\nb = [\n")[0] == 3
