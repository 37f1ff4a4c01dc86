"""A text that comes in pieces is redacted as the whole would be, and nothing of a secret goes out before."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.test_detectors import IN_CONTEXT, PERSONAL_EXAMPLES, SECRET_EXAMPLES
from filters.test_growth import patterns
from handrail.filters import Finding, detector
from handrail.filters.arrivals import Arrivals
from handrail.filters.errors import FilterFailed, InvalidFilter
from handrail.filters.redaction import Redactor

EVERYTHING = Redactor(detect=("secrets", "personal"))
WATCH = Arrivals(EVERYTHING, 512)
SECRETS = [
    *[text for given in SECRET_EXAMPLES.values() for text in given],
    *[before + secret + after for _, before, secret, after in IN_CONTEXT if " " not in secret],
    *[text for _, text in PERSONAL_EXAMPLES],
]


def cut(text: str, places: Sequence[int]) -> list[str]:
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if end > start]


def arrived(watch: Arrivals, pieces: Sequence[str]) -> list[str]:
    arrival = watch.begin()
    return [*[arrival.add(piece) for piece in pieces], arrival.flush()]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_cut_at_every_place_never_comes_out(secret: str) -> None:
    text = f"Take {secret} and go."
    redacted = EVERYTHING.text(text, "")
    assert redacted != text
    for place in range(len(text)):
        assert "".join(arrived(WATCH, cut(text, [place]))) == redacted
    assert "".join(arrived(WATCH, [*text])) == redacted


_bits = st.sampled_from(
    [*SECRETS, "Ann", " ", "\n", "@", "4111 ", "password", "=", "'", "[REDACTED:secret:jwt]", "[RED"]
)
texts = st.lists(st.one_of(_bits, st.tuples(_bits, st.integers(0, 30)).map(lambda each: each[0][: each[1]]))).map(
    "".join
)


@given(texts, st.lists(st.integers(0, 300), max_size=30))
def test_however_a_text_is_cut_it_comes_out_as_the_whole_would(text: str, places: list[int]) -> None:
    assert "".join(arrived(WATCH, cut(text, places))) == EVERYTHING.text(text, "")


@given(st.lists(patterns, min_size=1, max_size=2), st.text("abAsS-1 \n[", max_size=30), st.data())
def test_so_it_is_with_patterns_of_any_kind(given_patterns: list[str], text: str, data: st.DataObject) -> None:
    try:
        redactor = Redactor(tuple(given_patterns))
        watch = Arrivals(redactor, 30)
    except InvalidFilter:
        return
    pieces = cut(text, data.draw(st.lists(st.integers(0, 30), max_size=30)))
    assert "".join(arrived(watch, pieces)) == redactor.text(text, "")


def test_ordinary_text_hardly_waits() -> None:
    arrival = WATCH.begin()
    said = [arrival.add(piece) for piece in ("The quick", " brown", " fox", " jumps.")]
    assert said == ["The ", "quick ", "brown ", "fox "]
    assert arrival.flush() == "jumps."


def test_a_match_that_is_complete_waits_for_nothing() -> None:
    arrival = Arrivals(Redactor((r"sk-\d{4}",)), 512).begin()
    assert arrival.add("Key sk-1234") == "Key [REDACTED:secret]"


def test_a_match_longer_than_the_window_is_followed_to_its_end() -> None:
    watch = Arrivals(Redactor((r"sk-\w+",)), 16)
    text = f"Key sk-{'a' * 5000} is it."
    assert "".join(arrived(watch, [*text])) == "Key [REDACTED:secret] is it."


def test_what_may_become_a_match_without_an_end_counts_as_found_after_the_window() -> None:
    watch = Arrivals(Redactor((r"(?s)<.*>",)), 8)
    for pieces in (["a <bcdefghijkl"], [*"a <bcdefghijkl"]):
        assert "".join(arrived(watch, pieces)) == "a [REDACTED:secret]ijkl"


def test_a_pattern_that_sets_its_own_limit_needs_no_window() -> None:
    watch = Arrivals(Redactor((r"<[a-z]{0,20}>",)), 2)
    assert "".join(arrived(watch, [*"<abcdefghij and <abcdefghij>"])) == "<abcdefghij and [REDACTED:secret]"


@pytest.mark.parametrize("pattern", [r"([\"'])\w*\1", r"(?<=\b)k\w+"])
def test_a_pattern_that_does_not_say_where_it_may_grow_is_waited_for(pattern: str) -> None:
    text = "It is 'key' here, and 'key2' there; no more"
    redactor = Redactor((pattern,))
    assert "".join(arrived(Arrivals(redactor, 8), [*text])) == redactor.text(text, "")
    assert "".join(arrived(Arrivals(redactor, 8), [*text])[:-1]).endswith("there;")


def test_a_detector_of_ones_own_is_waited_for_and_found() -> None:
    @detector("arrivals-test")
    def _zebra(text: str) -> list[Finding]:
        at = text.find("zebra")
        return [Finding("animal", at, at + 5, "internal")] if at >= 0 else []

    watch = Arrivals(Redactor(detect=("arrivals-test", "email")), 8)
    text = "A zebra writes to ann@example.org, it seems."
    assert "".join(arrived(watch, [*text])) == (
        "A [REDACTED:internal:animal] writes to [REDACTED:internal:email], it seems."
    )


def test_what_goes_on_after_a_flush_is_seen_with_what_was_before() -> None:
    arrival = Arrivals(Redactor((r"sk-\w{4,}",)), 512).begin()
    assert [arrival.add("Key sk-ab"), arrival.flush(), arrival.flush()] == ["Key ", "sk-ab", ""]
    assert [arrival.add("cdef. On"), arrival.flush()] == ["[REDACTED:secret]. On", ""]


def test_a_token_that_came_in_pieces_stays_whole() -> None:
    text = "It was [REDACTED:internal:email] and [REDACTED:secret:a.b@c.org], and [REDACTED"
    assert "".join(arrived(WATCH, [*text])) == EVERYTHING.text(text, "")


@pytest.mark.parametrize("watch", [WATCH, Arrivals(Redactor(("(['\"])x\\1",), ("email",)), 8)])
def test_a_long_text_is_redacted_to_its_end(watch: Arrivals) -> None:
    pieces = ["Write to ann@exam", "ple.org, please; or to [REDACTED:secret", ":x].\n"] * 500
    assert "".join(arrived(watch, pieces)) == EVERYTHING.text("".join(pieces), "")


def test_a_pattern_with_too_many_ways_is_stopped() -> None:
    with pytest.raises(FilterFailed, match="too long"):
        arrived(Arrivals(Redactor(("(a|aa)+[bc]",)), 512), [*("a" * 60)])


def test_a_pattern_that_finds_its_way_though_there_are_many_goes_on() -> None:
    redactor = Redactor((r"x(?:a{1,2}|a)*",))
    text = f"x{'a' * 60} and more of it {'b' * 600}"
    assert "".join(arrived(Arrivals(redactor, 512), [text[:50], text[50:70], text[70:]])) == redactor.text(text, "")


def test_another_text_in_the_place_of_tokens() -> None:
    watch = Arrivals(Redactor(detect=("email",), instead="***"), 512)
    assert "".join(arrived(watch, [*"To ann@example.org, bob@example.org."])) == "To ***, ***."
