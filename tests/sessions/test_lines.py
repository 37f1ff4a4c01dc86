"""The chain of lines."""

import io
from hashlib import sha256

import pytest

from handrail.sessions.lines import ZEROS, all_follow, chained, each_block, each_line, follows, link, links, prev_of


def test_a_line_names_the_hash_of_the_line_before_it() -> None:
    first = chained(ZEROS, 0, b'{"kind":"a"}')
    second = chained(link(first), 0, b'{"kind":"b"}')
    assert second == b'{"prev":"%b","kind":"b"}' % sha256(first).hexdigest().encode()
    assert follows(second, link(first))
    assert not follows(second, ZEROS)


def test_a_link_is_read_however_the_line_is_laid_out() -> None:
    assert prev_of(b'{ "kind": "a", "prev": "abc" }') == "abc"
    assert follows(b'{ "kind": "a", "prev": "abc" }', "abc")
    assert [prev_of(line) for line in (b"[]", b"{", b"{}")] == ["", "", ""]


def test_a_record_says_its_place_in_a_batch() -> None:
    assert chained("ab", 2, b'{"kind":"a"}') == b'{"prev":"ab","batch":2,"kind":"a"}'


def test_lines_come_with_their_numbers_and_offsets_up_to_the_end_that_was_asked_for() -> None:
    assert list(each_line(io.BytesIO(b"ab\ncde\nf"), 7)) == [(1, 0, b"ab"), (2, 3, b"cde")]
    assert list(each_line(io.BytesIO(b"ab\ncde\nf"), 8)) == [(1, 0, b"ab"), (2, 3, b"cde"), (3, 7, b"f")]


def test_lines_that_come_together_are_those_that_come_one_by_one() -> None:
    data = b"".join([b"x" * (number * 37 % 5000) + b"\n" for number in range(400)]) + b"\n" + b"y" * 200_000 + b"\nz"
    apart = [line.removesuffix(b"\n") for line in io.BytesIO(data)]
    for end in (len(data), len(data) - 2, len(data) - 100_000):
        blocks = list(each_block(io.BytesIO(data), end))
        together = [line for _, _, lines in blocks for line in lines]
        assert b"\n".join(together) == data[:end].removesuffix(b"\n")
        assert together[:-1] == apart[: len(together) - 1]
        assert [data[offset : offset + len(lines[0])] for _, offset, lines in blocks] == [
            lines[0] for _, _, lines in blocks
        ]
        assert [sum([len(lines) for _, _, lines in blocks[:at]]) + 1 for at in range(len(blocks))] == [
            number for number, _, _ in blocks
        ]


def test_lines_follow_together_only_where_each_of_them_does() -> None:
    lines, prevs = [], [ZEROS]
    for number in range(5):
        lines.append(chained(prevs[-1], 0, b'{"kind":"%d"}' % number))
        prevs.append(link(lines[-1]))
    assert links(lines) == prevs[1:]
    assert all_follow(lines, prevs[:5], prevs[:5])
    for place in range(5):
        others = [*lines[:place], b" " + lines[place], *lines[place + 1 :]]
        taken = [*prevs[:place], "a" * 64, *prevs[place + 1 : 5]]
        assert not all_follow(others, prevs[:5], prevs[:5])
        assert not all_follow(lines, prevs[:5], taken)
        assert not all_follow(lines, taken, taken)


def test_progress_is_told_in_bytes() -> None:
    told: list[int] = []
    line = b"x" * 999 + b"\n"
    for _ in each_line(io.BytesIO(line * 5000), 5_000_000, told.append):
        pass
    assert told == sorted(told)
    assert told[-1] == 5_000_000
    assert len(told) == 5


@pytest.mark.parametrize(
    "line",
    [
        b'{"prev":"%b","kind":"x","prev":"%b"}' % (b"a" * 64, b"b" * 64),
        b'{"prev":"%b","kind":"x","pr\\u0065v":"%b"}' % (b"a" * 64, b"b" * 64),
        b'{"kind":"x","within":{"prev":"%b"}}' % (b"a" * 64),
        b'{"prev":5,"kind":"x"}',
    ],
)
def test_a_line_that_names_two_links_or_none_follows_nothing(line: bytes) -> None:
    assert prev_of(line) == ""
    for named in ("a" * 64, "b" * 64):
        assert not any([follows(line, named, decoded) for decoded in (None, "b" * 64)])
