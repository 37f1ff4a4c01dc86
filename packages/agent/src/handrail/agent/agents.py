"""Agents: instructions, a model, tools, and the agents that one may hand over to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from handrail.agent.bounds import offered_tools
from handrail.agent.entering import Input
from handrail.agent.errors import BuildError
from handrail.agent.gates import check_approved
from handrail.agent.graphs import Graph, check_offered, resolve
from handrail.agent.handoffs import Handoff, check_policy, handoff
from handrail.agent.kernel.middlewares import Middleware, check_middleware, layer_name
from handrail.agent.kernel.states import declared, together
from handrail.agent.limits import Limits
from handrail.agent.models import DEFAULT_SETTINGS, Model, Settings, find_model
from handrail.agent.names import check_agent_name
from handrail.agent.outputs import Prepared, prepare
from handrail.agent.runs import RunResult, execute
from handrail.agent.streams import Stream
from handrail.agent.subagents import AgentTool, to_tool
from handrail.agent.tools import ERROR_CLASSES, ErrorClass, OnToolError, Tool
from handrail.agent.tools import tool as as_tool
from handrail.filters import Clock, Filter, IdSource
from handrail.filters.messages import Messages
from handrail.sessions import Session

if TYPE_CHECKING:
    from handrail.agent.reports import Crossing
    from handrail.filters.policies import Policy

Instructions: TypeAlias = str | Mapping[str, str]
AnyFilter: TypeAlias = Filter | Callable[[Messages], Any]


class Agent:
    """An agent: immutable, reusable, and safe to run many times at once.

    `instructions` are text, or named blocks; they stand beside the messages and never cross a handoff. `model` is a
    `Model` or `service:name`. `tools` are `Tool`s or functions; `handoffs` are `handoff(…)` values, agents, callables
    that return one, or names of reachable agents. `output_type` is what the answer has to be: any type that pydantic
    knows, or an `Output`. `description` says to other agents what this one is for. `labels`
    says how what it writes is labelled after it saw labelled content: not at all (`own`), or with the highest tier of
    its view (`inherit`). `policy` says what may cross from it. `channels` declares shared state (a TypedDict or a
    pydantic model), `requires` what the deps of a run must hold, by name and type. `tool_errors` says for each class
    of tool errors whether the model is told (`tell`, as for all that are not named) or the run ends (`raise`).

    What is known when the agent is made is checked there (`BuildError`), the rest at `check()`, `describe()` or the
    first run, before any request.
    """

    __slots__ = (
        "_graph",
        "channels",
        "description",
        "handoffs",
        "instructions",
        "labels",
        "limits",
        "middleware",
        "model",
        "name",
        "output",
        "policy",
        "requires",
        "settings",
        "tool_errors",
        "tools",
    )
    name: str
    description: str
    instructions: Mapping[str, str]
    model: Model
    tools: tuple[Tool, ...]
    handoffs: tuple[Handoff, ...]
    middleware: tuple[Middleware, ...]
    limits: Limits | None
    labels: Literal["own", "inherit"]
    policy: Policy | None
    settings: Settings
    channels: Any
    requires: Mapping[str, Any]
    output: Prepared | None
    tool_errors: Mapping[ErrorClass, OnToolError]
    _graph: Graph | None

    def __init__(
        self,
        name: str,
        *,
        model: Model | str,
        instructions: Instructions = "",
        description: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        handoffs: Sequence[Handoff | Agent | str | Callable[[], Agent]] = (),
        middleware: Sequence[Middleware] = (),
        output_type: Any = None,
        limits: Limits | None = None,
        settings: Settings = DEFAULT_SETTINGS,
        labels: Literal["own", "inherit"] = "own",
        policy: Policy | None = None,
        channels: Any = None,
        requires: Mapping[str, Any] = {},  # it is only read
        tool_errors: Mapping[ErrorClass, OnToolError] = {},  # the same
    ) -> None:
        give = object.__setattr__
        give(self, "name", check_agent_name(name))
        give(self, "description", description)
        give(self, "instructions", _blocks(instructions))
        give(self, "model", find_model(model))
        give(self, "tools", tuple([each if isinstance(each, Tool) else as_tool(each) for each in tools]))
        give(self, "handoffs", tuple([each if isinstance(each, Handoff) else handoff(each) for each in handoffs]))
        give(self, "middleware", tuple(middleware))
        _check_kinds(name, self.model, limits, settings)
        give(self, "limits", limits)
        give(self, "settings", settings)
        give(self, "output", None if output_type is None else prepare(output_type, name))
        if labels not in ("own", "inherit"):
            raise BuildError(f"labels is 'own' or 'inherit', not {labels!r}")
        give(self, "labels", labels)
        check_policy(policy, name)
        give(self, "policy", policy)
        give(self, "_graph", None)
        give(self, "channels", channels)
        give(self, "requires", dict(requires))
        give(self, "tool_errors", _checked_tool_errors(name, tool_errors))
        check_middleware(self.middleware, name)
        check_offered(self, [_known_name(edge.target) for edge in self.handoffs])
        check_approved(name, offered_tools(self, self.middleware), self.middleware)
        together([declared(channels, name), *[declared(each.channels, layer_name(each)) for each in self.middleware]])
        for each in offered_tools(self, self.middleware):
            each.prepared  # noqa: B018  # built now, and kept

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"an agent is immutable; make another one to change {name}")

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"

    def graph(self) -> Graph:
        """This agent and all it can reach, resolved once. Raises `BuildError` for what cannot work."""
        known = self._graph
        if known is None:
            known = resolve(self)
            object.__setattr__(self, "_graph", known)
        return known

    def check(self) -> None:
        """Resolves every late-bound target now, and raises `BuildError` for what cannot work."""
        self.graph()

    def describe(self) -> str:
        """Every chain in order, the tools, and the handoffs with their filters, for this agent and all it can reach."""
        return self.graph().describe()

    def to_tool(
        self,
        *,
        filter: AnyFilter | None = None,
        returns: AnyFilter | None = None,
        **options: Any,
    ) -> AgentTool:
        """This agent as another agent's tool; `options` are those of `handrail.agent.to_tool`."""
        return to_tool(self, filter=filter, returns=returns, **options)

    async def run(
        self,
        input: Input,
        *,
        session: Session | str | os.PathLike[str] | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        session_limits: Limits | None = None,
        start: Literal["active", "self"] = "active",
        instructions: str = "",
        policy: Policy | None = None,
        counter: str | None = None,
        middleware: Sequence[Middleware] = (),
        state: Mapping[str, Any] | None = None,
        ids: IdSource | None = None,
        clock: Clock | None = None,
    ) -> RunResult:
        """Runs until an agent answers, and returns the answer with all that led to it.

        `input` is text, a message, or messages. With a `session` (a path or a `Session`) the conversation in it goes
        on with its active agent (`start="self"` begins with this one), and the run is journalled. `instructions` adds
        a block for this run; `policy` says what may cross in it; `counter` (such as `o200k_base`) has the tokens
        of each boundary counted and recorded. `limits` bound the run, `session_limits` it and all earlier runs of the
        session together. `middleware` stands outside every agent's own, entered anew in each turn;
        `state` are values for channels to begin with. Raises `RunError` with the partial transcript, or what a hook
        raised.
        """
        return await execute(
            self.graph(),
            input,
            session,
            deps=deps,
            limits=limits,
            session_limits=session_limits,
            start=start,
            instructions=instructions,
            policy=policy,
            counter=counter,
            middleware=middleware,
            state=state,
            ids=ids,
            clock=clock,
        )

    def stream(
        self,
        input: Input,
        *,
        session: Session | str | os.PathLike[str] | None = None,
        deps: Any = None,
        limits: Limits | None = None,
        session_limits: Limits | None = None,
        start: Literal["active", "self"] = "active",
        instructions: str = "",
        policy: Policy | None = None,
        counter: str | None = None,
        middleware: Sequence[Middleware] = (),
        state: Mapping[str, Any] | None = None,
        ids: IdSource | None = None,
        clock: Clock | None = None,
    ) -> Stream[RunResult]:
        """The same run, heard as it goes: `async with agent.stream(…) as run: async for event in run: …`.

        `run.handoffs` are the boundaries that were crossed so far, `run.result` is the result once the events have
        ended; leaving the block before that cancels the run. It ends and fails as `run` does.
        """
        graph = self.graph()
        crossings: list[Crossing] = []

        async def begin(emit: Any, throttle: Any) -> RunResult:
            return await execute(
                graph,
                input,
                session,
                deps=deps,
                limits=limits,
                session_limits=session_limits,
                start=start,
                instructions=instructions,
                policy=policy,
                counter=counter,
                middleware=middleware,
                state=state,
                ids=ids,
                clock=clock,
                emit=emit,
                throttle=throttle,
                crossings=crossings,
            )

        return Stream(begin, crossings)

    def run_sync(self, input: Input, **options: Any) -> RunResult:
        """`run` for code that is not async; `options` are those of `run`. Models are closed at the end.

        Raises `RuntimeError` inside a running event loop.
        """
        if _loop_runs():
            raise RuntimeError("run_sync cannot be called from a running event loop; await agent.run(…) there")
        return asyncio.run(self._run_and_close(input, options))

    async def _run_and_close(self, input: Input, options: dict[str, Any]) -> RunResult:
        try:
            return await self.run(input, **options)
        finally:
            await self.graph().aclose()


def _check_kinds(name: str, model: Any, limits: Any, settings: Any) -> None:
    missing = [part for part in ("name", "profile", "complete", "stream", "aclose") if not hasattr(model, part)]
    if missing:
        hint = "; FunctionModel(fn) is a function as a model" if callable(model) else ""
        raise BuildError(f"the model of {name} is {model!r}, which has no {', '.join(missing)}{hint}")
    if not isinstance(model.name, str):
        raise BuildError(f"the name of the model of {name} is a text, not {model.name!r}")
    if limits is not None and not isinstance(limits, Limits):
        raise BuildError(f"the limits of {name} are Limits(…), not {limits!r}")
    if not isinstance(settings, Settings):
        raise BuildError(f"the settings of {name} are Settings(…), not {settings!r}")


def _checked_tool_errors(agent: str, tool_errors: Mapping[ErrorClass, OnToolError]) -> dict[Any, Any]:
    for error_class, how in tool_errors.items():
        if error_class not in ERROR_CLASSES:
            possible = ", ".join(ERROR_CLASSES)
            raise BuildError(f"tool_errors of {agent} is by class, one of {possible}; found {error_class!r}")
        if how not in get_args(OnToolError):
            raise BuildError(f"tool_errors of {agent} says 'tell' or 'raise' of {error_class}, not {how!r}")
    return dict(tool_errors)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _known_name(target: Any) -> str | None:
    return target if isinstance(target, str) else target.name if isinstance(target, Agent) else None


def _blocks(instructions: Instructions) -> Mapping[str, str]:
    if isinstance(instructions, str):
        return {"agent": instructions} if instructions else {}
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in instructions.items()):
        raise BuildError("instructions are text, or blocks of text by name")
    return dict(instructions)
