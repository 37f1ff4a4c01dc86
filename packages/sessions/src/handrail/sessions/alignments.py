"""Aligning two sequences: which item of one stands for which item of the other, in order.

An alignment is a list of pairs of places that rises on both sides. It is found by patience (items that stand once on
either side hold the rest in place), which stays near-linear however long and however repetitive the sequences are;
short stretches are aligned exactly, by their longest common subsequence.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

Pairs: TypeAlias = list[tuple[int, int]]
"""Places that stand for each other, each greater than the one before, on both sides."""
_Span: TypeAlias = tuple[int, int, int, int]
"""A stretch of either side: start and end in the first, start and end in the second."""

_EXACT = 4096
"""Cells of the table of a stretch that is aligned exactly."""
_WIDTHS = (1, 4, 16, 64)
"""How many items in a row are looked for that stand once on either side."""
_ROUNDS = 16
"""How often what lies between aligned items is looked at once more for items that hold the rest."""


def align(first: Sequence[Sequence[Hashable]], second: Sequence[Sequence[Hashable]]) -> Pairs:
    """The alignment of two sequences, each given as its keys at several levels, from the strictest to the loosest.

    Items with equal keys of the first level are paired first; what is left between those by the next level, and so on.

    >>> align([["a", "b", "c"]], [["a", "c"]])
    [(0, 0), (2, 1)]
    """
    size = len(first[0]), len(second[0])
    pairs: Pairs = []
    for a, b in zip(first, second, strict=True):
        pairs += [pair for span in list(gaps(pairs, *size)) for pair in _within(a, b, span)]
        pairs.sort()
    return pairs


def gaps(pairs: Pairs, first: int, second: int) -> Iterator[_Span]:
    """The stretches between aligned items that hold something on both sides."""
    i = j = 0
    for x, y in [*pairs, (first, second)]:
        if i < x and j < y:
            yield i, x, j, y
        i, j = x + 1, y + 1


def _within(a: Sequence[Hashable], b: Sequence[Hashable], whole: _Span) -> Pairs:
    found: Pairs = []
    waiting = [(whole, 0)]
    while waiting:
        span, round = waiting.pop()
        i, x, j, y = _trim(a, b, span, found)
        if i == x or j == y:
            continue
        if (x - i) * (y - j) <= _EXACT:
            found += _longest(a, b, (i, x, j, y))
            continue
        fixed = _rising(_holding(a, b, (i, x, j, y)))
        found += fixed
        if fixed and round < _ROUNDS:
            shifted = [(p - i, q - j) for p, q in fixed]
            inner = gaps(shifted, x - i, y - j)
            waiting += [((i + s, i + e, j + t, j + f), round + 1) for s, e, t, f in inner]
    return found


def _trim(a: Sequence[Hashable], b: Sequence[Hashable], span: _Span, found: Pairs) -> _Span:
    # What both begin or end with is the same in any alignment.
    i, x, j, y = span
    while i < x and j < y and a[i] == b[j]:
        found.append((i, j))
        i, j = i + 1, j + 1
    while i < x and j < y and a[x - 1] == b[y - 1]:
        x, y = x - 1, y - 1
        found.append((x, y))
    return i, x, j, y


def _longest(a: Sequence[Hashable], b: Sequence[Hashable], span: _Span) -> Pairs:
    i, x, j, y = span
    table = [[0] * (y - j + 1) for _ in range(x - i + 1)]
    for p in range(x - i - 1, -1, -1):
        below, row = table[p + 1], table[p]
        for q in range(y - j - 1, -1, -1):
            row[q] = below[q + 1] + 1 if a[i + p] == b[j + q] else max(below[q], row[q + 1])
    p = q = 0
    pairs: Pairs = []
    while p < x - i and q < y - j:
        if a[i + p] == b[j + q]:
            pairs.append((i + p, j + q))
            p, q = p + 1, q + 1
        elif table[p + 1][q] >= table[p][q + 1]:
            p += 1
        else:
            q += 1
    return pairs


def _holding(a: Sequence[Hashable], b: Sequence[Hashable], span: _Span) -> Pairs:
    """Places that can hold the rest: of items that stand once on either side, else of items that stand once with what
    follows them, else the first of a kind for the first, the second for the second."""
    i, x, j, y = span
    for width in _WIDTHS:
        here, there = _places(a, i, x, width), _places(b, j, y, width)
        once = [(held[0], there[key][0]) for key, held in here.items() if len(held) == 1 == len(there.get(key, ()))]
        if once:
            return once
    here, there = _places(a, i, x, 1), _places(b, j, y, 1)
    return sorted(pair for key, held in here.items() for pair in zip(held, there.get(key, ()), strict=False))


def _places(keys: Sequence[Hashable], start: int, end: int, width: int) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for place in range(start, end - width + 1):
        key = keys[place] if width == 1 else tuple(keys[place : place + width])
        places.setdefault(key, []).append(place)
    return places


def _rising(pairs: Pairs) -> Pairs:
    """The longest part of pairs that rise on the first side which rises on the second too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for place, (_, there) in enumerate(pairs):
        at = bisect_left(ends, there)
        before.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [there]
        last[at : at + 1] = [place]
    chosen: Pairs = []
    place = last[-1] if last else -1
    while place >= 0:
        chosen.append(pairs[place])
        place = before[place]
    return chosen[::-1]
