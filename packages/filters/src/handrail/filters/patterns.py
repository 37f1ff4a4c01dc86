"""Regular expressions that are compiled when they are first used: many are needed by few programs."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Pattern:
    """Compiles at the first look at any method, and keeps what was looked at."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.__dict__["_made_of"] = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = getattr(re.compile(*self.__dict__["_made_of"]), name)
        return found


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, when it is first used.

    >>> lazy("[a-c]+").fullmatch("abc") is not None
    True
    """
    return cast(re.Pattern[AnyStr], _Pattern(pattern, flags))
