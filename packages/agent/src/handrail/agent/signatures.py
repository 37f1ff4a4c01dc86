"""What a function's signature says: the schema of a tool's arguments, and their check."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, get_origin, get_type_hints

from handrail.agent.contexts import RunContext
from handrail.agent.errors import BuildError
from handrail.agent.tools import Check, InvalidArguments, Tool, explained
from handrail.filters.messages import whole


def _hints(tool: Tool) -> dict[str, Any]:
    try:
        return get_type_hints(tool.fn, include_extras=True)
    except (NameError, TypeError) as error:
        if not inspect.isfunction(tool.fn) and callable(tool.fn):
            return get_type_hints(type(tool.fn).__call__, include_extras=True)
        raise BuildError(f"the annotations of the tool {tool.name} cannot be read: {error}") from error


def _is_context(annotation: Any) -> bool:
    return annotation is RunContext or get_origin(annotation) is RunContext


def name_of_context(tool: Tool) -> str:
    """The parameter that is given the run's context; empty where there is none."""
    return next((name for name, hint in _hints(tool).items() if name != "return" and _is_context(hint)), "")


def from_signature(tool: Tool) -> tuple[dict[str, Any], Check, str]:
    """The schema of a function's arguments, their check, and the parameter that is given the context.

    Raises `BuildError` for a signature that no JSON object can fill.
    """
    # A typed dict, not a model: parameters may have any name, and the checked values are the keyword arguments.
    from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
    from pydantic.errors import PydanticUserError
    from typing_extensions import TypedDict

    hints = _hints(tool)
    described = _parameter_descriptions(tool.fn)
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    context_name = ""
    for name, parameter in inspect.signature(tool.fn).parameters.items():
        annotation = hints.get(name, Any)
        if _is_context(annotation):
            context_name = name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BuildError(f"the tool {tool.name} takes {parameter}, which no JSON object can fill; name them all")
        if name in described:
            annotation = Annotated[annotation, Field(description=described[name])]
        if parameter.default is not parameter.empty:
            annotation, defaults[name] = NotRequired[annotation], parameter.default
        fields[name] = annotation
    make: Any = TypedDict
    arguments = make("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(arguments)
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise BuildError(f"the tool {tool.name} has a parameter that JSON cannot carry: {error}") from error
    _add_defaults(schema, defaults)
    validate = adapter.validator.validate_json

    def check(text: str) -> dict[str, Any]:
        try:
            checked: dict[str, Any] = validate(text or "{}")
        except ValidationError as error:
            if (mended := mended_json(text, error)) != text:
                try:
                    return check(mended)
                except InvalidArguments:
                    pass
            raise InvalidArguments(explained(error)) from error
        return checked

    return schema, check, context_name


def mended_json(text: str, error: Any) -> str:
    """The JSON in which pydantic found an error, as every reader can take it, and without the nulls that it did not
    take: to many models, and under a strict schema to all, null is the way to leave something out."""
    problems = error.errors(include_url=False, include_context=False)
    from handrail.agent.strictness import without_nulls

    return without_nulls(_readable(text), [problem["loc"] for problem in problems if problem["input"] is None])


def _readable(text: str) -> str:
    """The same JSON as every reader can take it: blank is `{}`, and half a surrogate pair is U+FFFD."""
    if not text or text.isspace():
        return "{}"
    if "\\u" not in text:
        return text
    try:
        mended = whole(json.dumps(json.loads(text), ensure_ascii=False))
    except (ValueError, RecursionError):
        return text
    return mended if "\ufffd" in mended else text


def _add_defaults(schema: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    schema.pop("title", None)
    for name, property_schema in schema.get("properties", {}).items():
        property_schema.pop("title", None)
        if name in defaults:
            try:
                property_schema.setdefault("default", to_jsonable_python(defaults[name]))
            except PydanticSerializationError:
                continue  # a default that JSON cannot say is still the function's default


def _parameter_descriptions(fn: Callable[..., Any]) -> dict[str, str]:
    doc = inspect.getdoc(fn)
    if not doc or "\n" not in doc:
        return {}
    from docstring_parser import parse

    return {parameter.arg_name: parameter.description for parameter in parse(doc).params if parameter.description}


def schema_check(tool: Tool) -> Check:
    """The check of arguments against the tool's own JSON Schema. Raises `BuildError` where that is not valid."""
    from handrail.agent.json_texts import DEEPEST, levels
    from handrail.agent.schemas import Schema, value_at
    from handrail.agent.strictness import without_nulls

    schema = Schema(tool.parameters or {}, what=f"the JSON Schema of the tool {tool.name}", foreign=True)

    def check(text: str) -> dict[str, Any]:
        text = _readable(text)
        arguments: dict[str, Any] = json.loads(text)
        if not isinstance(arguments, dict):
            raise InvalidArguments("#: it is not an object")
        if levels(arguments) > DEEPEST:
            raise InvalidArguments(f"#: it is nested deeper than {DEEPEST} levels")
        found = schema.find(arguments)
        nulls = [each.path for each in found if value_at(arguments, each.path) is None]
        if nulls:
            arguments = json.loads(without_nulls(text, nulls))
            found = found if schema.problems(arguments) else []
        if found:
            raise InvalidArguments("; ".join([str(each.problem) for each in found]))
        return arguments

    return check
