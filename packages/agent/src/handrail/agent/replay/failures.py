"""A failure as a record tells it, as an error that can be raised."""

import builtins
from typing import Any

from handrail.agent import errors
from handrail.filters import HandrailError
from handrail.sessions import Usage


def recorded_failure(told: str, budget: Any, spent: Usage = errors.NOTHING_SPENT) -> Exception:
    """An error of the recorded type and text, such as `ModelUnavailable: down`. One of a type that is neither Python's
    nor Handrail's is one of a type of that name."""
    name, _, text = told.partition(": ")
    text = text or "as it was recorded"
    known = getattr(errors, name, None) or getattr(builtins, name, None)
    if not isinstance(known, type) or not issubclass(known, Exception):
        return _called(name, text)
    if issubclass(known, errors.ModelError):
        return known(text, spent=spent)
    if issubclass(known, errors.LimitExceeded):
        limit = errors.LimitExceeded("a limit", 0, budget=_outermost(budget))
        limit.__class__ = known
        limit.args = (text,)
        return limit
    try:
        error = known.__new__(known)
    except TypeError:  # as of a group, which is none without what is in it
        return _called(name, text)
    error.args = (text,)
    return error


def _called(name: str, text: str) -> Exception:
    made: Exception = type(name, (Exception,), {})(text)
    return made


def said_of(error: BaseException) -> str:
    """An error in words: its type, and its text where it is one of Handrail's own."""
    return f"{type(error).__name__}: {error}" if isinstance(error, HandrailError) else type(error).__name__


def _outermost(budget: Any) -> Any:
    # Which limit it was is not in the record; one of the run ends the run.
    while budget.outer is not None:
        budget = budget.outer
    return budget
