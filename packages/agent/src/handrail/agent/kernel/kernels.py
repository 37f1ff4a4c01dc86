"""The chains without the loop: one model call, or one tool call, through the layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.errors import BuildError
from handrail.agent.kernel.middlewares import HOOKS, Middleware, defines, layer_name

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ToolResponse
    from handrail.agent.limits import Limits
    from handrail.agent.loop import Turn
    from handrail.agent.models import ChatResponse, Model, Settings
    from handrail.agent.streams import Stream
    from handrail.agent.tools import Tool
    from handrail.filters import Clock, IdSource, Message

NAME = "kernel"


class Kernel:
    """A model and tools with middleware around them, and no loop: each call goes once through its chain.

    Turn hooks, state hooks and handoffs belong to the loop, and take no part here. Layers keep their private state from
    call to call for as long as the kernel lives. Raises `BuildError` as an agent does.
    """

    def __init__(
        self,
        model: Model | str,
        tools: Sequence[Tool | Callable[..., Any]] = (),
        middleware: Sequence[Middleware] = (),
        *,
        deps: Any = None,
        limits: Limits | None = None,
        ids: IdSource | None = None,
        clock: Clock | None = None,
    ) -> None:
        from handrail.agent.agents import Agent
        from handrail.filters import Clock, IdSource

        self._graph = Agent(NAME, model=model, tools=tools, middleware=middleware).graph()
        for layer in middleware:
            _refuse_idle(layer)
        self._deps, self._limits = deps, limits
        self._ids, self._clock = ids or IdSource(), clock or Clock()
        self._states: dict[int, Any] = {}
        self._budget: Any = None

    def _turn(self, messages: Sequence[Message], emit: Any = None) -> Turn:
        from handrail.agent.journals import NO_LOG
        from handrail.agent.limits import DEFAULT_LIMITS, Budget
        from handrail.agent.loop import Turn
        from handrail.agent.runs import Run
        from handrail.agent.scopes import Scope

        if self._budget is None:
            self._budget = Budget(self._limits or DEFAULT_LIMITS)
        run = Run(self._graph, self._ids.next(), NO_LOG, self._clock, self._budget)
        run.emit = emit
        scope = Scope(self._ids, run.id, {}, emit, self._deps)
        named = [each if each.id else each.replace(id=self._ids.next()) for each in messages]
        turn = Turn(run, scope, self._graph.agents[NAME], tuple(named), False, None, self._budget)
        turn.context.states = self._states
        return turn

    async def chat(
        self,
        messages: str | Message | Sequence[Message],
        *,
        instructions: str | Mapping[str, str] = "",
        settings: Settings | None = None,
    ) -> ChatResponse:
        """One model call through the chat chain. Raises `LimitExceeded` before it, and what a layer or the model
        raises."""
        from handrail.agent.asking import ask_once

        turn = self._turn(_messages(messages))
        response: ChatResponse = await turn.budget.in_time(ask_once(turn, _blocks(instructions), settings))
        return response

    def chat_stream(
        self,
        messages: str | Message | Sequence[Message],
        *,
        instructions: str | Mapping[str, str] = "",
        settings: Settings | None = None,
    ) -> Stream[ChatResponse]:
        """The same, heard as it comes: `async with kernel.chat_stream(…) as stream: async for event in stream: …`;
        `stream.result` is the response."""
        from handrail.agent.asking import ask_once
        from handrail.agent.streams import Stream

        async def begin(emit: Any, throttle: Any) -> ChatResponse:
            turn = self._turn(_messages(messages), emit)
            turn.run.unheard, turn.run.throttle = throttle
            response: ChatResponse = await turn.budget.in_time(ask_once(turn, _blocks(instructions), settings))
            return response

        return Stream(begin)

    async def tool(self, name: str, arguments: Mapping[str, Any] | str = "{}") -> ToolResponse:
        """One tool call through the tool chain: arguments as an object, or as JSON text.

        A call that cannot run gives an error response, as the model would be told. Raises what a layer raises.
        """
        import json

        from handrail.agent.calling import call_once
        from handrail.filters import ToolCall

        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
        turn = self._turn(())
        response: ToolResponse = await turn.budget.in_time(call_once(turn, ToolCall(turn.scope.ids.next(), name, text)))
        return response

    def describe(self) -> str:
        """The chains in order, and the tools."""
        return self._graph.describe()

    async def aclose(self) -> None:
        """Closes the model."""
        await self._graph.aclose()


def _messages(given: str | Message | Sequence[Message]) -> Sequence[Message]:
    from handrail.filters import Message, user

    one = user(given) if isinstance(given, str) else given
    messages = (one,) if isinstance(one, Message) else tuple(one) if isinstance(one, Sequence) else ()
    if not messages or not all([isinstance(each, Message) for each in messages]):
        raise BuildError("a chat is given text, a message, or messages")
    return messages


def _blocks(instructions: str | Mapping[str, str]) -> Mapping[str, str]:
    if isinstance(instructions, str):
        return {"agent": instructions} if instructions else {}
    return dict(instructions)


def _refuse_idle(layer: Middleware) -> None:
    # A layer that would never be called says nothing of it later.
    hooks = [hook for hook in HOOKS if defines(layer, hook)]
    if hooks and not any([hook in _TAKE_PART for hook in hooks]):
        raise BuildError(
            f"{layer_name(layer)} has no hook that a kernel calls; those are {', '.join(_TAKE_PART)}. "
            "Turns, state hooks and handoffs belong to an agent"
        )


_TAKE_PART = ("around_chat", "around_tool", "token_transform")
