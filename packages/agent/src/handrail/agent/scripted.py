"""Models that run in the process: one that follows a script, and one that is a function."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from types import CoroutineType, TracebackType
from typing import Any, TypeAlias

from handrail.agent.errors import InvalidAnswer, ScriptError
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.models import ArgumentsDelta, ChatResponse, Delta, Profile, ReasoningDelta, TextDelta
from handrail.filters import Message, Reasoning, Text, ToolCall, assistant
from handrail.filters.messages import Part
from handrail.filters.patterns import lazy

Answer: TypeAlias = str | ToolCall | Message | ChatResponse | Sequence[str | Part]
"""What a function or a script may answer: words, a call, several parts, a whole message, or a whole response."""

_AT_ONCE = frozenset({str, ToolCall, Message, ChatResponse, list, tuple})
_WORDS = lazy(r"\S+\s*|\s+")


class FunctionModel:
    """A model that is a function of the request, sync or async: for rules, demonstrations and tests.

    >>> from handrail.filters import user
    >>> echo = FunctionModel(lambda request: f"You said: {request.messages[-1].text}")
    >>> echo.name
    'function'
    """

    def __init__(
        self,
        answer: Callable[[ChatRequest], Answer | Awaitable[Answer]],
        *,
        name: str = "function",
        profile: Profile | None = None,
    ) -> None:
        self._answer = answer
        self._name = name
        self._profile = profile or Profile()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def profile(self) -> Profile:
        """What it can do: it streams and takes tools, unless it was given another."""
        return self._profile

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """What the function answers."""
        answer = self._answer(request)
        if isinstance(answer, CoroutineType) or (type(answer) not in _AT_ONCE and inspect.isawaitable(answer)):
            answer = await answer
        return as_response(answer)

    def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        """The same answer, word by word."""
        return Told(self, request)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"


class Told(AsyncGenerator[Delta | ChatResponse, None]):
    """An answer as it would come. The event loop keeps books of Python's own generators, which costs more than this."""

    __slots__ = ("_left", "_model", "_request")

    def __init__(self, model: FunctionModel, request: ChatRequest) -> None:
        self._model = model
        self._request = request
        self._left: Iterator[Delta | ChatResponse] | None = None

    async def whole(self) -> ChatResponse:
        """The answer, for who takes all of it at once; its pieces are those of `pieces`."""
        self._left = iter(())
        return await self._model.complete(self._request)

    async def __anext__(self) -> Delta | ChatResponse:
        if self._left is None:
            response = await self._model.complete(self._request)
            self._left = iter((*pieces(response.message), response))
        for piece in self._left:
            return piece
        raise StopAsyncIteration

    async def asend(self, value: None) -> Delta | ChatResponse:
        return await self.__anext__()

    async def athrow(self, *error: Any) -> Any:
        self._left = iter(())
        raise error[1] if len(error) > 1 and error[1] is not None else error[0]

    async def aclose(self) -> None:
        self._left = iter(())


class ScriptedModel(FunctionModel):
    """A model that gives these answers in this order, and fails when asked for more, or (as a context manager, or by
    `done()`) when asked for less.

    An answer may be an exception, which is raised, or a function of the request. `requests` holds what was asked.

    >>> with ScriptedModel("Hello.") as model:
    ...     from handrail.agent import Agent
    ...     Agent("greeter", model=model).run_sync("Hi").output
    'Hello.'
    """

    def __init__(
        self,
        *answers: Answer | Exception | Callable[[ChatRequest], Answer],
        name: str = "scripted",
        profile: Profile | None = None,
    ) -> None:
        super().__init__(self._next, name=name, profile=profile)
        self._left = list(answers)
        self._given = 0
        self.requests: list[ChatRequest] = []

    def _next(self, request: ChatRequest) -> Answer:
        self.requests.append(request)
        if not self._left:
            last = request.messages[-1].text if request.messages else ""
            raise ScriptError(
                f"the script of {self.name} has {self._given} answers, and one more was asked for; "
                f"the last message was {last[:200]!r}"
            )
        answer = self._left.pop(0)
        self._given += 1
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def done(self) -> None:
        """Raises `ScriptError` where answers were not asked for."""
        if self._left:
            raise ScriptError(
                f"{len(self._left)} answers of {self.name} were not asked for; the next is {self._left[0]!r}"
            )

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.done()


def as_response(answer: Any) -> ChatResponse:
    """A whole response from what a function answered. Raises `InvalidAnswer`."""
    if isinstance(answer, ChatResponse):
        return answer
    if type(answer) is str:
        return ChatResponse(assistant(answer))
    if type(answer) is Message and answer.role == "assistant":
        return ChatResponse(answer, finish_reason="tool_calls" if answer.tool_calls else "stop")
    several = isinstance(answer, list | tuple) and all(isinstance(part, str | Part) for part in answer)
    if several or isinstance(answer, str | ToolCall | Text):
        answer = assistant(answer)
    if not isinstance(answer, Message) or answer.role != "assistant":
        raise InvalidAnswer(f"a model answers with text, calls, parts or an assistant message, not {answer!r}")
    return ChatResponse(answer, finish_reason="tool_calls" if answer.tool_calls else "stop")


def pieces(message: Message) -> list[Delta]:
    """A whole message as the deltas that a stream would bring: text word by word, arguments call by call."""
    deltas: list[Delta] = []
    calls = 0
    for part in message.content:
        # No part is of a class derived from these: a message refuses it.
        if type(part) is ToolCall:
            deltas.append(ArgumentsDelta(calls, part.id, part.name, part.arguments))
            calls += 1
        elif type(part) is Text:
            deltas.extend([TextDelta(word) for word in _WORDS.findall(part.text)])
        elif type(part) is Reasoning:
            deltas.append(ReasoningDelta(part.text))
    return deltas
