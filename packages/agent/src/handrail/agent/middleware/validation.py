"""The layer that has an answer given again until a function accepts it."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, Unpack

from handrail.agent.errors import BuildError
from handrail.agent.kernel.requests import TurnResult
from handrail.agent.validating import Judged, Options, Validating

Found: TypeAlias = bool | str | None
Check: TypeAlias = Callable[[Any], Found | Awaitable[Found]]
"""Given the output, or the whole result where its parameter is called `result` or annotated `TurnResult`."""


class Validation(Validating):
    """Answers that a function accepts: `Validation(lambda output: "42" in output)`.

    `check` gives True or None for a valid answer, False or a text (the reason) for one that is not; a `ValueError` that
    it raises is a reason too. Whatever else it gives or raises is a no. A sync check runs on the event loop, so what
    takes long is async. The other options, and what becomes of an answer, are those of `Validating`.
    """

    def __init__(self, check: Check, **options: Unpack[Options]) -> None:
        if not callable(check):
            raise BuildError(f"Validation checks answers with a function, not {check!r}")
        super().__init__(**options)
        self._check = check
        self._wants_result = _wants_result(check)

    async def judge(self, result: TurnResult) -> Judged:
        """What the function says of the answer."""
        try:
            found = self._check(result if self._wants_result else result.output)
            if inspect.isawaitable(found):
                found = await found
        except ValueError as error:
            return Judged(str(error) or "it is not valid", error=error)
        if found is True or found is None:
            return Judged(value=result.output)
        if found is False:
            return Judged("it is not valid")
        if not isinstance(found, str):
            raise TypeError(f"a check gives True, None, False or a reason, not {type(found).__name__}")
        return Judged(found or "it is not valid")


def _wants_result(check: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(check).parameters.values()))
    except (ValueError, TypeError, StopIteration):
        return False
    return first.name == "result" or first.annotation in (TurnResult, "TurnResult")
