"""Spans of time as settings give them: seconds, more than none."""

import math

from handrail.agent.errors import BuildError


def check_seconds(seconds: object, what: str) -> None:
    """Raises `BuildError` for what is no number of seconds, above 0 and finite; None is no limit and passes."""
    if seconds is None:
        return
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise BuildError(f"{what} is a number of seconds above 0, or None for no limit, not {seconds!r}")
