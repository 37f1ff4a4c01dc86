"""Ids and times."""

import os
import subprocess
import sys
import time

import pytest

from handrail.filters import Clock, FixedClock, FixedIds, IdSource


def test_ids_count_up_behind_one_random_prefix() -> None:
    ids = IdSource()
    first, second = ids.next(), ids.next()
    assert (first, second) == (f"{ids.prefix}-1", f"{ids.prefix}-2")
    assert len(ids.prefix) == 16
    assert IdSource().prefix != ids.prefix


def test_a_branch_has_ids_that_do_not_depend_on_its_siblings() -> None:
    left, right = FixedIds("m"), FixedIds("m")
    first = [left.branch("c1").next(), left.branch("c2").next()]
    other = [right.branch("c2").next(), right.branch("c1").next()]
    assert first == other[::-1]
    assert len({*first, left.next()}) == 3


def test_a_name_that_comes_back_is_another_branch() -> None:
    ids = FixedIds("m")
    assert ids.branch("call_1").next() != ids.branch("call_1").next()
    assert len(ids.branch("x" * 10_000 + "\ud800").next()) < 40


def test_fixed_ids_are_the_same_every_time() -> None:
    ids = FixedIds("m")
    assert [ids.next(), ids.next()] == ["m-1", "m-2"]


def test_a_clock_gives_milliseconds() -> None:
    assert abs(Clock()() - time.time() * 1000) < 60_000


def test_a_fixed_clock_goes_on_by_its_step() -> None:
    clock = FixedClock(1_000, 5)
    assert [clock(), clock(), clock()] == [1_000, 1_005, 1_010]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_and_its_child_draw_other_prefixes() -> None:
    program = """
import os, sys
from handrail.filters import IdSource
IdSource()
child = os.fork()
os.write(1, f"{IdSource().prefix}\\n".encode())
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert len(set(outcome.stdout.split())) == 2


def test_very_many_prefixes_are_all_different() -> None:
    assert len({IdSource().prefix for _ in range(1_000)}) == 1_000
