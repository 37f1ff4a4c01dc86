"""From where on a text may still become a match: never later than a search would want more of it."""

import re

import pytest
import regex  # type: ignore[import-untyped,unused-ignore]
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.filters.growth import beginning, growth

LETTERS = "abAsS-1 \n"
_bare = st.sampled_from([r"\b", r"\B", "^", "$", r"\Z", "(?<=a)", "(?<!\\w)", "(?<![a-b-])"])
_character = st.sampled_from(["a", "b", "s", "-", r"\w", r"\d", r"\s", "[ab]", "[^a]", ".", "[a-]", r"\-", "[^\\w-]"])
_times = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "*?", "+?", "{1,2}?", "++", "?+"])


def _groups(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    opening = st.sampled_from(["(?:", "(", "(?i:", "(?P<name>", "(?>", "(?=", "(?!"])
    return st.tuples(opening, inner, _times).map(
        lambda each: f"{each[0]}{each[1]}){'' if each[0] in ('(?=', '(?!') else each[2]}"
    )


def _sequences(piece: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sequence = st.lists(piece, min_size=1, max_size=4).map("".join)
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


_piece = st.one_of(st.tuples(_character, _times).map("".join), _bare, st.just("abc"))
patterns = st.tuples(
    st.sampled_from(["", "", "(?i)", "(?m)", "(?s)"]),
    st.recursive(_sequences(_piece), lambda inner: _sequences(st.one_of(_piece, _groups(inner))), max_leaves=6),
).map("".join)
texts = st.text(LETTERS, max_size=12)


@given(patterns, texts, st.data())
def test_what_begins_before_it_is_the_same_whatever_follows(pattern: str, text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    for engine in (re, regex):
        try:
            search = engine.compile(pattern)
        except (re.error, regex.error):
            assume(False)
        made = growth(pattern)
        assert made is not None or "(?P<name>" in pattern
        if made is None:
            continue
        first, more, whole = (engine.compile(each) for each in (beginning(made.firsts), made.more, made.whole))
        open = more.search(text[:cut]).start()
        for start in range(open):
            there, here = search.match(text, start), search.match(text[:cut], start)
            assert (there and there.span()) == (here and here.span())
            assert (here and here.span()) == ((found := whole.match(text, start, cut)) and found.span())
            if here and here.end() > start:
                assert first.match(text, start)


@pytest.mark.parametrize(
    ("pattern", "text", "open"),
    [
        (r"sk-\w+", "as", 1),
        (r"sk-\w+", "x sk-ab", 2),  # greedy: it would take more
        (r"sk-\w+", "x sk-ab.", 8),
        (r"sk-\w{2}", "sk-ab", 5),  # it has all it wants
        (r"ab|abcd", "abc", 0),
        (r"\d{3}(?!\d)", "123", 0),
        (r"\d{3}\b", "123", 0),
        (r"-\bx", "a-", 1),
        (r"end$", "end\n", 0),
        (r"(?<=a)b+", "ab", 1),
        (r"(?i)key", "KE", 0),
        (r"a(?=.*z)", "ab", 0),
        (r"(?:a|b)*?c", "xab", 1),
    ],
)
def test_where_a_search_would_want_more(pattern: str, text: str, open: int) -> None:
    made = growth(pattern)
    assert made is not None
    found = re.search(made.more, text)
    assert found is not None
    assert found.start() == open


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "a(?i)b", r"\X", "(?:abc){e<=1}", "(?(1)a|b)", r"(?<=\b)a", "(?R)", "[[:alpha:]]", "a{,}", "("],
)
def test_what_is_not_known_here_is_said_to_be(pattern: str) -> None:
    assert growth(pattern) is None


def test_a_pattern_that_is_nested_too_deep_is_given_up() -> None:
    assert growth("(?:" * 20 + "a+" + ")+" * 20) is not None
    assert growth("(" * 3_000 + ")" * 3_000) is None
    assert growth("a?" * 30_000) is None


@pytest.mark.parametrize(
    ("pattern", "most"), [("ab?c", 3), ("a{2,5}(?!bc)", 7), ("a|bcd", 3), ("a+", None), ("(?:ab){3}|c*", None), ("", 0)]
)
def test_how_much_a_search_looks_at(pattern: str, most: int | None) -> None:
    made = growth(pattern)
    assert made is not None
    assert made.most == most
