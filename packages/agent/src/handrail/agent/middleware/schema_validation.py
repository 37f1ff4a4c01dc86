"""The layer that has an answer given again until it is JSON that fits a schema."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from handrail.agent.errors import BuildError
from handrail.agent.json_texts import JsonText, NotJson, read_json
from handrail.agent.kernel.requests import TurnResult
from handrail.agent.keywords import pointer
from handrail.agent.schemas import Problem, Schema
from handrail.agent.validating import Judged, Options, Validating
from handrail.filters import Message

Fit: TypeAlias = Callable[[JsonText], tuple[Any, Sequence[Problem]]]
"""The value of a JSON text as its type has it, and what is wrong with it."""


class SchemaValidation(Validating):
    """Answers in JSON: of a JSON Schema (draft 2020-12), or of any type that pydantic knows.

    The text of the answer is JSON as a whole or, with `code_fence`, in its first plain or `json` fence. The value read
    is the turn's output, and the verdict's value. What is wrong is fed back as `place: problem`, in the order of the
    places, at most `max_errors` of it. `formats=False` leaves formats alone; the other options, and what becomes of an
    answer, are those of `Validating`. Raises `BuildError` for a schema that is not valid (see `Schema`).
    """

    def __init__(
        self,
        schema: Any,
        *,
        max_errors: int | None = None,
        code_fence: bool = True,
        formats: bool = True,
        **options: Unpack[Options],
    ) -> None:
        if max_errors is not None and (type(max_errors) is not int or max_errors < 1):
            raise BuildError(f"max_errors of SchemaValidation is a number from 1 on, not {max_errors!r}")
        for option, given in (("code_fence", code_fence), ("formats", formats)):
            if type(given) is not bool:
                raise BuildError(f"{option} of SchemaValidation is True or False, not {given!r}")
        self._max_errors = max_errors
        self._code_fence = code_fence
        what = "the schema of SchemaValidation"
        self._fit = _by_schema(schema, what, formats) if isinstance(schema, Mapping | bool) else _by_type(schema, what)
        super().__init__(**options)

    async def judge(self, result: TurnResult) -> Judged:
        """Reads the answer, and holds it against the schema."""
        try:
            text = read_json(result.message.text if result.message is not None else "", fence=self._code_fence)
        except NotJson as error:
            return Judged(f"#: {error}")
        value, problems = self._fit(text)
        if not problems:
            return Judged(value=value)
        told = [str(problem) for problem in problems[: self._max_errors]]
        more = len(problems) - len(told)
        return Judged("; ".join([*told, f"and {more} more"] if more else told))

    def read(self, message: Message) -> Any:
        """The fallback's value where it fits the schema, else its text."""
        try:
            value, problems = self._fit(read_json(message.text, fence=self._code_fence))
        except Exception:  # noqa: BLE001  # no JSON, or the type's own code raises
            return message.text
        return message.text if problems else value


def _by_schema(schema: Mapping[str, Any] | bool, what: str, formats: bool) -> Fit:
    problems = Schema(schema, what=what, formats=formats).problems
    return lambda text: (text.value, problems(text.value))


def _by_type(kind: Any, what: str) -> Fit:
    from pydantic import TypeAdapter, ValidationError

    if isinstance(kind, str | list | tuple | None) or inspect.isroutine(kind):
        raise BuildError(f"{what} is a JSON Schema or a type, not {kind!r}")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        adapter.rebuild(raise_errors=True)
    except Exception as error:  # the type's own code may be asked for its schema, so this may be anything
        told = (str(error).splitlines() or [type(error).__name__])[0]
        raise BuildError(f"{what} is {kind!r}, which pydantic cannot check: {told}") from error

    def fit(text: JsonText) -> tuple[Any, Sequence[Problem]]:
        try:
            return adapter.validate_json(text.text), ()
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            return None, [Problem(pointer(each["loc"]), each["msg"]) for each in found]

    return fit
