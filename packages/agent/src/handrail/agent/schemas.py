"""JSON Schemas (draft 2020-12): checked when they are given, and held against values."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from handrail.agent.efforts import Effort, TooMuch, first_only
from handrail.agent.errors import BuildError
from handrail.agent.keywords import DRAFT, Json, Survey, keyword_at, pointer

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

MOST = 1000
"""How many problems of one value are looked for."""
BACKTRACKS = 100_000
"""How far a pattern with look-around or back-references may go back in one text (some milliseconds); beyond that the
text counts as one that does not fit, wherever the pattern stands, and nothing more is looked for. Other patterns never
go back."""


class Problem(msgspec.Struct, frozen=True, order=True):
    """What is wrong with a value: where (a JSON pointer, `#` for the whole value), and what."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Found(msgspec.Struct, frozen=True):
    """A problem with the steps that lead to its place."""

    path: Sequence[str | int]
    problem: Problem


class Schema:
    """A JSON Schema (draft 2020-12, all of it), compiled; nothing it refers to is fetched.

    `what` says in errors whose it is; with `formats=False` no format is checked. Raises `BuildError`, naming place and
    keyword, for what is no valid schema, a pattern that is no regular expression, and what `Survey` refuses. A value is
    JSON of no more levels than `read_json` lets through.

    With `foreign` it is one that others wrote for an object: keywords that the draft does not know and formats mean
    nothing, and one that no object can fit is refused.
    """

    def __init__(
        self, schema: Mapping[str, Json] | bool, *, what: str, formats: bool = True, foreign: bool = False
    ) -> None:
        self._formats = formats and not foreign
        self._schema = _copied(schema, what)
        if foreign and isinstance(self._schema, dict):
            self._schema.pop("$schema", None)
        self._survey = survey = Survey(self._schema, what, self._formats, foreign)
        self._validator = _checked(self._schema, survey, what, self._formats)
        if foreign and not survey.takes_objects(self._schema):
            raise BuildError(f"{what} is one that no object can fit")

    def problems(self, value: Json) -> list[Problem]:
        """All that is wrong with a value, in the order of its places; what was found there is not repeated.

        Where it would take too many steps to tell all, as with a deep tree of possibilities, it is the first problem.
        """
        return [found.problem for found in self.find(value)]

    def find(self, value: Json) -> list[Found]:
        """The problems with a value, with the steps to their places."""
        from jsonschema_rs import ValidationErrorKind

        # Whether it fits is remembered of each part of it; what is wrong with it is not.
        if self._validator.is_valid(value):
            return []
        try:
            Effort(self._survey.edges).count(id(self._schema), value)
        except (TooMuch, RecursionError):
            return [self._first(value)]
        found: list[Found] = []
        for number, error in enumerate(self._validator.iter_errors(value), 1):
            found.append(_found(error, _told(error)))
            if number == MOST or isinstance(error.kind, ValidationErrorKind.BacktrackLimitExceeded):
                break
        return sorted(found, key=lambda each: (_order(each.path), each.problem))

    def _first(self, value: Json) -> Found:
        from jsonschema_rs import ValidationError

        try:
            if self._first_only is not None:
                self._first_only.validate(value)
        except ValidationError as error:
            return _found(error, f"{_told(error, near=False)}; more may be wrong, here and elsewhere")
        return Found((), Problem("#", "it does not fit, and it would take too long to tell where"))

    @cached_property
    def _first_only(self) -> "Draft202012Validator | None":
        try:
            return _compiled(first_only(self._schema, self._survey.edges), self._formats)
        except ValueError:
            return None


def value_at(value: Json, path: Sequence[str | int]) -> Json:
    """The part of a value at a place in it."""
    for step in path:
        value = value[step]
    return value


def _found(error: "ValidationError", told: str) -> Found:
    return Found(tuple(error.instance_path), Problem(pointer(error.instance_path), told))


def _order(path: Sequence[str | int]) -> list[tuple[bool, int, str]]:
    return [(False, part, "") if isinstance(part, int) else (True, 0, part) for part in path]


def _copied(schema: object, what: str) -> Json:
    # A copy, so that no later change reaches it; through JSON, so that it is made of nothing else.
    if not isinstance(schema, Mapping | bool):
        raise BuildError(f"{what} is a JSON Schema, an object or a boolean, not {type(schema).__name__}")
    try:
        return json.loads(json.dumps(schema if isinstance(schema, bool) else dict(schema), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BuildError(f"{what} holds what JSON cannot carry: {error}") from error


def _checked(schema: Json, survey: Survey, what: str, formats: bool) -> "Draft202012Validator":
    from jsonschema_rs import ValidationError, meta

    if isinstance(schema, dict) and schema.get("$schema", DRAFT) not in (DRAFT, f"{DRAFT}#"):
        raise BuildError(f"{what}: #/$schema: only {DRAFT} is known here, not {schema['$schema']!r}")
    try:
        meta.validate(schema)
        survey.take()
        return _compiled(schema, formats)
    except ValidationError as error:
        keyword = keyword_at(error.instance_path)
        problem = f"this does not fit the keyword {keyword!r}: {error.message[:300]}" if keyword else error.message
        raise BuildError(f"{what}: {pointer(error.instance_path)}: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{what} cannot be used as a JSON Schema: {error}") from error


def _compiled(schema: Json, formats: bool) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions

    options = FancyRegexOptions(backtrack_limit=BACKTRACKS)
    return Draft202012Validator(schema, validate_formats=formats, mask="it", pattern_options=options, offline=True)


def _told(error: "ValidationError", near: bool = True) -> str:
    """What is wrong, for a model to put right: what is allowed is in it, what was found is not."""
    from jsonschema_rs import ValidationErrorKind as Kind

    match error.kind:
        case Kind.Enum(options):
            return f"it is not one of {', '.join([json.dumps(option, ensure_ascii=False) for option in options])}"
        case Kind.AnyOf(context) | Kind.OneOfNotValid(context):
            return f"it fits none of {len(context)} possibilities{_nearest(error, context) if near else ''}"
        case Kind.FalseSchema():
            return "it is not allowed"
        case Kind.BacktrackLimitExceeded():
            return "it holds a text that takes a pattern too long"
        case _:
            return error.message


def _nearest(error: "ValidationError", context: "Sequence[Sequence[ValidationError]]") -> str:
    # The one in which the value itself fits, and the fewest of its parts do not.
    def misfit(branch: "Sequence[ValidationError]") -> tuple[int, int]:
        return len([each for each in branch if len(each.instance_path) == len(error.instance_path)]), len(branch)

    branch = min([branch for branch in context if branch], key=misfit, default=())
    told = [f"{pointer(each.instance_path)}: {_told(each)}" for each in branch[:3]]
    return f"; of the nearest, {', '.join(told)}" if told else ""
