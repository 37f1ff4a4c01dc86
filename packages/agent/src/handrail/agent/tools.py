"""Tools: functions that a model may call, with arguments checked before they run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    get_args,
    overload,
)

import msgspec

from handrail.agent.attempts import check_retries
from handrail.agent.contexts import RunContext
from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.names import check_tool_name
from handrail.agent.threads import in_thread
from handrail.filters.fields import Once
from handrail.filters.sensitivity import TIERS

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ToolResponse
    from handrail.agent.loop import Turn
    from handrail.agent.subagents import AgentTool
    from handrail.filters import ToolCall

SideEffects: TypeAlias = Literal["pure", "read_only", "side_effecting", "external"]
SIDE_EFFECTS = get_args(SideEffects)
ErrorClass: TypeAlias = Literal["invalid_arguments", "transient", "timeout", "denied", "failed"]
"""What a failed call is: its arguments do not fit, it may succeed soon, it took too long, it may not run, or anything
else."""
ERROR_CLASSES = get_args(ErrorClass)
OnToolError: TypeAlias = Literal["tell", "raise"]

Check: TypeAlias = Callable[[str], dict[str, Any]]
"""JSON text of arguments in, checked keyword arguments out. Raises `InvalidArguments`."""


class InvalidArguments(Exception):
    """The arguments of a call do not fit the tool; the message is for the model."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A function that a model may call.

    `side_effects` says what running it again would mean (`side_effecting` unless declared); `timeout` is in seconds;
    `output_sensitivity` labels its results; a `sequential` tool runs while no other of its response does. One that
    `needs_approval` (always, or where a function of its checked arguments says so) has a layer such as `Approval`
    around it, or its agent is refused. A `return_direct` tool ends the turn with its result, where all calls of the
    response are of such tools and succeed.

    `retries` is how often it is run again after a failure in passing, or after one of `retry_on`; `retry_delay` the
    first wait in seconds. Only a tool that is `pure` or `read_only`, or has an `idempotency_key`, may be: a function of
    the arguments, or the name of one, whose value tells the other side that two calls are one.
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
    return_direct: bool = False
    retries: int = 0
    retry_on: tuple[type[Exception], ...] | None = None
    retry_delay: float = 0.5
    idempotency_key: Callable[[Mapping[str, Any]], Any] | str | None = None

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
        check_retries(self)

    @property
    def children(self) -> tuple[AgentTool, ...]:
        """The agents that the tool asks, each with the edge that leads to it; none for a function."""
        return ()

    async def answer(self, turn: Turn, call: ToolCall, input: str) -> ToolResponse:
        """Has its agents answer; the loop calls it where a tool has any."""
        raise NotImplementedError

    @staticmethod
    def from_json_schema(
        name: str, description: str, parameters: Mapping[str, Any], fn: Callable[..., Any], **options: Any
    ) -> Tool:
        """A tool whose arguments are described by a JSON Schema (draft 2020-12) and checked before it runs.

        Keywords that the draft does not know, and formats, mean nothing. Raises `BuildError` where the schema itself is
        not valid, refers to what it does not hold, or is one that no object can fit. `options` are the other fields of
        `Tool`.
        """
        return Tool(name=name, description=description, parameters=dict(parameters), fn=fn, **options)

    @Once
    def prepared(self) -> Prepared:
        """The tool with its schema and its check built; done when an agent is built, so that no first call stalls."""
        return self.prepare()

    def prepare(self) -> Prepared:
        """Builds what `prepared` keeps."""
        return _prepare(self)

    async def call(self, arguments: dict[str, Any], context: RunContext[Any]) -> Any:
        """Runs the function: a sync one in a thread, with the caller's context variables."""
        prepared = self.prepared
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
    plain: bool = False
    """Whether it is called once, in whatever time it takes, and has no key."""
    direct: bool = False
    """Whether it is plain besides being async, and takes no context."""


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
    return_direct: bool = False,
    retries: int = 0,
    retry_on: tuple[type[Exception], ...] | None = None,
    retry_delay: float = 0.5,
    idempotency_key: Callable[[Mapping[str, Any]], Any] | str | None = None,
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
    from handrail.agent.signatures import from_signature, name_of_context, schema_check

    is_async = inspect.iscoroutinefunction(tool.fn) or inspect.iscoroutinefunction(getattr(tool.fn, "__call__", None))  # noqa: B004
    if tool.parameters is not None:
        schema, check, context_name = dict(tool.parameters), schema_check(tool), name_of_context(tool)
    else:
        schema, check, context_name = from_signature(tool)
    names = schema.get("properties", {})
    if isinstance(tool.idempotency_key, str) and tool.idempotency_key not in names:
        possible = ", ".join(names) or "none"
        raise BuildError(f"{tool.name} has no argument {tool.idempotency_key!r} to be its key; there are: {possible}")
    plain = not tool.retries and tool.timeout is None and tool.idempotency_key is None
    direct = plain and is_async and not context_name
    return Prepared(ToolSpec(tool.name, tool.description, schema), check, context_name, is_async, plain, direct)


def explained(error: Any) -> str:
    """What pydantic found wrong, in a line for a model."""
    problems = [
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return "; ".join(problems)
