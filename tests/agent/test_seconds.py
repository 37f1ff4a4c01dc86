"""Seconds are numbers above 0."""

import math
from typing import Any

import pytest

from handrail.agent import BuildError
from handrail.agent.middleware import Timeout
from handrail.agent.seconds import check_seconds


@pytest.mark.parametrize("seconds", [0.001, 5, 10**9, None])
def test_a_number_above_0_passes_and_so_does_no_limit(seconds: Any) -> None:
    assert Timeout(model=seconds, tool=1).model == seconds
    check_seconds(seconds, "a wait")


@pytest.mark.parametrize("seconds", [0, -0.0, -1, math.inf, -math.inf, math.nan, True, False, "5", [5]])
def test_anything_else_is_refused_naming_what_it_was_for(seconds: Any) -> None:
    with pytest.raises(BuildError, match="a wait is a number of seconds above 0"):
        check_seconds(seconds, "a wait")
