"""Which items of two sequences stand for each other."""

import random
from collections.abc import Sequence
from itertools import pairwise
from time import perf_counter

from hypothesis import given
from hypothesis import strategies as st

from handrail.sessions.alignments import align, gaps

WORDS = st.lists(st.sampled_from("abcde"), max_size=30)


def longest(a: Sequence[str], b: Sequence[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before, row = row, [0]
        for place, y in enumerate(b):
            row.append(before[place] + 1 if x == y else max(before[place + 1], row[place]))
    return row[-1]


@given(WORDS, WORDS)
def test_an_alignment_rises_and_pairs_what_is_equal(a: list[str], b: list[str]) -> None:
    pairs = align([a], [b])
    assert all(x < y and p < q for (x, p), (y, q) in pairwise(pairs))
    assert all(a[x] == b[p] for x, p in pairs)


@given(WORDS, WORDS)
def test_short_sequences_are_aligned_by_their_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    assert len(align([a], [b])) == longest(a, b)


def test_what_is_left_between_equal_items_is_paired_by_the_next_level() -> None:
    strict, loose = [["u1", "a1", "u2"], ["u1", "a9", "x", "u2"]], [["u", "a", "u"], ["u", "a", "a", "u"]]
    assert align([strict[0], loose[0]], [strict[1], loose[1]]) == [(0, 0), (1, 1), (2, 3)]


def test_a_long_sequence_of_few_words_is_aligned_almost_whole_and_fast() -> None:
    chance = random.Random(1)
    a = [chance.choice("abc") for _ in range(20_000)]
    b = [each for each in a if chance.random() > 0.01]
    began = perf_counter()
    pairs = align([a], [b])
    assert perf_counter() - began < 20
    assert all(a[x] == b[p] for x, p in pairs)
    assert len(pairs) > 0.95 * len(b)


def test_gaps_are_the_stretches_with_something_on_both_sides() -> None:
    assert list(gaps([(0, 0), (2, 1), (5, 4)], 6, 6)) == [(3, 5, 2, 4)]
