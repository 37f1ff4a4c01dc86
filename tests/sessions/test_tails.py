"""Where the whole part of a file ends."""

import io
from pathlib import Path

import pytest

from handrail.filters import user
from handrail.sessions import Journal, MessageRecord
from handrail.sessions.tails import BLOCK, Batches, find_tail


def written(path: Path, *batches: int) -> bytes:
    """The bytes of a session with batches of these sizes."""
    with Journal.open(path, fsync="never") as journal:
        for size in batches:
            journal.append(*[MessageRecord(path="a", message=user(f"word {n}")) for n in range(size)])
    return path.read_bytes()


def test_a_whole_file_has_nothing_torn(tmp_path: Path) -> None:
    data = written(tmp_path / "s", 1, 3, 1)
    tail = find_tail(io.BytesIO(data))
    assert (tail.end, tail.terminated, tail.torn) == (len(data), True, None)
    assert tail.last == data.splitlines()[-1]


def test_an_empty_file_ends_where_it_begins() -> None:
    tail = find_tail(io.BytesIO(b""))
    assert (tail.end, tail.last, tail.torn) == (0, b"", None)


def test_at_every_byte_the_whole_part_is_whole_records_and_whole_batches(tmp_path: Path) -> None:
    data = written(tmp_path / "s", 1, 3, 1)
    lines = data.splitlines(keepends=True)
    ends = [sum(map(len, lines[:count])) for count in (0, 1, 2, 5, 6)]
    for cut in range(len(data) + 1):
        tail = find_tail(io.BytesIO(data[:cut]))
        whole = max(end for end in ends if end <= cut or end == cut + 1)
        assert tail.end == min(whole, cut)
        assert (tail.torn is None) == (cut in ends)


@pytest.mark.parametrize(
    "told",
    [
        *[[0, 2, -1, -2, 0], [3, -1, -2], [0, -1], [2, -1, 0], [2, -2, -1], [1, -1, -2], [1, 1], [1, -1, 4, -1]],
        *[[0, 40, *range(-1, -many, -1)] for many in (1, 2, 9, 40, 41, 42)],
        *[[40, *range(-1, -41, -1), after] for after in (0, 40, -1, -41)],
        *[[40, *range(-1, -place, -1), 0, *range(-place - 1, -41, -1)] for place in (1, 20, 40)],
        [9, *range(-1, -10, -1), 300, *range(-1, -200, -1)],
        *[[0, many, *range(-1, -20, -1)] for many in (2**31, 2**63 - 1, 2**63, 2**64, 10**30)],
        [2**63],
    ],
)
def test_what_lines_say_of_their_batches_is_the_same_told_together_and_one_by_one(told: list[int]) -> None:
    apart, together = Batches(), Batches()
    sound = not any([apart.problem(batch) for batch in told])
    assert together.take(told) == sound
    assert together.left == (apart.left if sound else 0)


def test_a_whole_record_that_lacks_its_newline_stays(tmp_path: Path) -> None:
    data = written(tmp_path / "s", 1)[:-1]
    tail = find_tail(io.BytesIO(data))
    assert (tail.end, tail.terminated) == (len(data), False)
    assert tail.torn is not None
    assert tail.torn.length == 0


def test_zero_bytes_after_the_last_record_are_torn(tmp_path: Path) -> None:
    data = written(tmp_path / "s", 1)
    tail = find_tail(io.BytesIO(data + b"\0" * 5000))
    assert (tail.end, tail.torn and tail.torn.length) == (len(data), 5000)
    tail = find_tail(io.BytesIO(data[:-1] + b"\0" * 5000))
    assert (tail.end, tail.terminated) == (len(data) - 1, False)


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_a_line_longer_than_a_block_is_found(size: int) -> None:
    line = b'{"n":"%b"}' % (b"x" * size)
    tail = find_tail(io.BytesIO(b"{}\n" + line + b"\n" + b'{"torn'))
    assert (tail.end, tail.last) == (3 + len(line) + 1, line)


def test_only_the_end_of_a_file_is_read(tmp_path: Path) -> None:
    data = written(tmp_path / "s", *[1] * 5000)
    assert find_tail(io.BytesIO(b"\xff" * 10 + data[10:])).end == len(data)
