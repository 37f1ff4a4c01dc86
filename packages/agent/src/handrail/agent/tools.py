"""Tools: functions that a model may call, with arguments checked before they run."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from handrail.agent.contexts import RunContext
from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.names import check_tool_name
from handrail.agent.strictness import without_nulls
from handrail.agent.threads import in_thread
from handrail.filters.messages import whole
from handrail.filters.sensitivity import TIERS

if TYPE_CHECKING:
    from handrail.agent.subagents import AgentTool

SideEffects: TypeAlias = Literal["pure", "read_only", "side_effecting", "external"]
SIDE_EFFECTS = get_args(SideEffects)

Check: TypeAlias = Callable[[str], dict[str, Any]]
"""JSON text of arguments in, checked keyword arguments out. Raises `InvalidArguments`."""


class InvalidArguments(Exception):
    """The arguments of a call do not fit the tool; the message is for the model."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A function that a model may call.

    `side_effects` says what running it again would mean (`side_effecting` unless declared); `timeout` is in seconds;
    `output_sensitivity` labels its results; a `sequential` tool runs while no other of its response does. One that
    `needs_approval` (always, or where a function of its checked arguments says so) has a layer such as `Approval`
    around it, or its agent is refused.
    """

    name: str
    description: str = ""
    fn: Callable[..., Any]
    parameters: Mapping[str, Any] | None = None
    side_effects: SideEffects = "side_effecting"
    output_sensitivity: str | None = None
    timeout: float | None = None
    sequential: bool = False
    needs_approval: bool | Callable[[Mapping[str, Any]], bool] = False

    def __post_init__(self) -> None:
        check_tool_name(self.name, f"the tool {self.name!r}")
        if self.side_effects not in SIDE_EFFECTS:
            possible = ", ".join(SIDE_EFFECTS)
            raise BuildError(f"side_effects of {self.name} is one of {possible}, not {self.side_effects!r}")
        if self.output_sensitivity is not None and self.output_sensitivity not in TIERS:
            possible = ", ".join(TIERS)
            raise BuildError(f"output_sensitivity of {self.name} is one of {possible}, not {self.output_sensitivity!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise BuildError(f"the timeout of {self.name} is in seconds and above 0, not {self.timeout!r}")
        if not isinstance(self.needs_approval, bool) and not callable(self.needs_approval):
            possible = "True, False or a function of its arguments"
            raise BuildError(f"needs_approval of {self.name} is {possible}, not {self.needs_approval!r}")

    @property
    def children(self) -> "tuple[AgentTool, ...]":
        """The agents that the tool asks, each with the edge that leads to it; none for a function."""
        return ()

    @staticmethod
    def from_json_schema(
        name: str, description: str, parameters: Mapping[str, Any], fn: Callable[..., Any], **options: Any
    ) -> "Tool":
        """A tool whose arguments are described by a JSON Schema (draft 2020-12) and checked by jsonschema.

        Raises `BuildError` where the schema itself is not valid. `options` are the other fields of `Tool`.
        """
        return Tool(name=name, description=description, parameters=dict(parameters), fn=fn, **options)

    def prepare(self) -> "Prepared":
        """The tool with its schema and its check built; done when an agent is built, so that no first call stalls."""
        prepared: Prepared | None = self.__dict__.get("prepared")
        if prepared is None:
            prepared = self.__dict__["prepared"] = _prepare(self)
        return prepared

    async def call(self, arguments: dict[str, Any], context: RunContext[Any]) -> Any:
        """Runs the function: a sync one in a thread, with the caller's context variables."""
        prepared = self.prepare()
        if prepared.context_name:
            arguments[prepared.context_name] = context
        if prepared.is_async:
            return await self.fn(**arguments)
        value = await in_thread(self.fn, arguments)
        return await value if inspect.isawaitable(value) else value


def has_effects(tool: Tool) -> bool:
    """Whether running the tool changes something in the world; a sub-agent's effects are those of its own tools."""
    return tool.side_effects in ("side_effecting", "external") and not tool.children


class Prepared(msgspec.Struct, frozen=True):
    """What is worked out once for a tool."""

    spec: ToolSpec
    check: Check
    context_name: str
    is_async: bool


@overload
def tool(fn: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    side_effects: SideEffects = "side_effecting",
    output_sensitivity: str | None = None,
    timeout: float | None = None,
    sequential: bool = False,
    needs_approval: bool | Callable[[Mapping[str, Any]], bool] = False,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function, sync or async: its signature is the schema, its docstring the descriptions.

    A parameter annotated `RunContext` is given the run's context and is not in the schema. Raises `BuildError` for a
    signature that no JSON object can fill.
    """
    if fn is None:
        return lambda function: _tool(function, **options)
    return _tool(fn, **options)


def _tool(fn: Callable[..., Any], name: str | None = None, description: str | None = None, **options: Any) -> Tool:
    if not callable(fn):
        raise BuildError(f"a tool is made of a function, not {fn!r}")
    called = name or str(getattr(fn, "__name__", type(fn).__name__))
    if description is None:
        description = _first_paragraph(inspect.getdoc(fn) or "")
    return Tool(name=called, description=description, fn=fn, **options)


def _first_paragraph(doc: str) -> str:
    return " ".join(doc.split("\n\n", 1)[0].split())


def _prepare(tool: Tool) -> Prepared:
    is_async = inspect.iscoroutinefunction(tool.fn) or inspect.iscoroutinefunction(getattr(tool.fn, "__call__", None))  # noqa: B004
    if tool.parameters is not None:
        schema, check, context_name = dict(tool.parameters), _schema_check(tool), _context_name(tool)
    else:
        schema, check, context_name = _from_signature(tool)
    return Prepared(ToolSpec(tool.name, tool.description, schema), check, context_name, is_async)


def _hints(tool: Tool) -> dict[str, Any]:
    try:
        return get_type_hints(tool.fn, include_extras=True)
    except (NameError, TypeError) as error:
        if not inspect.isfunction(tool.fn) and callable(tool.fn):
            return get_type_hints(type(tool.fn).__call__, include_extras=True)
        raise BuildError(f"the annotations of the tool {tool.name} cannot be read: {error}") from error


def _is_context(annotation: Any) -> bool:
    return annotation is RunContext or get_origin(annotation) is RunContext


def _context_name(tool: Tool) -> str:
    return next((name for name, hint in _hints(tool).items() if name != "return" and _is_context(hint)), "")


def _from_signature(tool: Tool) -> tuple[dict[str, Any], Check, str]:
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


def explained(error: Any) -> str:
    """What pydantic found wrong, in a line for a model."""
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return "; ".join(problems)


def _parameter_descriptions(fn: Callable[..., Any]) -> dict[str, str]:
    doc = inspect.getdoc(fn)
    if not doc or "\n" not in doc:
        return {}
    from docstring_parser import parse

    return {parameter.arg_name: parameter.description for parameter in parse(doc).params if parameter.description}


def _schema_check(tool: Tool) -> Check:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    schema = tool.parameters or {}
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise BuildError(f"the JSON Schema of the tool {tool.name} is not valid: {error.message}") from error
    validator = Draft202012Validator(schema)

    def check(text: str) -> dict[str, Any]:
        text = _readable(text)
        arguments = json.loads(text)
        errors = list(validator.iter_errors(arguments))
        nulls = [error.absolute_path for error in errors if error.instance is None]
        if nulls:
            arguments = json.loads(without_nulls(text, nulls))
            errors = errors if any(validator.iter_errors(arguments)) else []
        if errors:
            raise InvalidArguments("; ".join([f"{error.json_path}: {error.message}" for error in errors]))
        checked: dict[str, Any] = arguments
        return checked

    return check
