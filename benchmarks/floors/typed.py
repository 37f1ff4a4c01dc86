"""The *typed* floor: frozen messages, checked arguments, a task and a timeout for each tool, layers and events."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import reduce
from itertools import count
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

TIMEOUT = 30.0


class Text(msgspec.Struct, frozen=True, gc=False, tag=True):
    text: str


class ToolCall(msgspec.Struct, frozen=True, gc=False, tag=True):
    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: tuple[Text | ToolCall, ...]
    id: str = ""
    call_id: str | None = None
    is_error: bool = False

    @property
    def tool_calls(self) -> list[ToolCall]:
        return [part for part in self.content if type(part) is ToolCall]

    @property
    def text(self) -> str:
        return "".join([part.text for part in self.content if type(part) is Text])


class Answer(msgspec.Struct, frozen=True):
    message: Message
    input_tokens: int = 0
    output_tokens: int = 0


class Event(msgspec.Struct, frozen=True):
    run: str
    kind: Literal["run_start", "step_start", "message", "tool_start", "tool_end", "step_end", "run_end"]
    step: int
    detail: Message | ToolCall | None = None


class ChatRequest(msgspec.Struct, frozen=True):
    messages: Sequence[Message]
    tools: "Mapping[str, Tool]"
    step: int
    states: dict[object, dict[str, Any]]


class ToolRequest(msgspec.Struct, frozen=True):
    tool: "Tool"
    call: ToolCall
    arguments: Mapping[str, Any]


class Tool(msgspec.Struct, frozen=True):
    name: str
    function: Callable[..., Awaitable[Any]]
    arguments: type[BaseModel]


Chat: TypeAlias = Callable[[ChatRequest], Awaitable[Answer]]
UseTool: TypeAlias = Callable[[ToolRequest], Awaitable[str]]
Listener: TypeAlias = Callable[[Event], None]
_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


async def passing(request: _Request, call_next: Callable[[_Request], Awaitable[_Response]]) -> _Response:
    """A layer that only passes through."""
    return await call_next(request)


def chain(
    layers: Sequence[Callable[[_Request, Callable[[_Request], Awaitable[_Response]]], Awaitable[_Response]]],
    terminal: Callable[[_Request], Awaitable[_Response]],
) -> Callable[[_Request], Awaitable[_Response]]:
    """The layers around a call, the first outermost."""
    return reduce(lambda inner, layer: lambda request: layer(request, inner), reversed(layers), terminal)


class Sum(BaseModel):
    a: int
    b: int


async def add(a: int, b: int) -> int:
    return a + b


async def use(request: ToolRequest) -> str:
    return str(await request.tool.function(**request.arguments))


TOOLS: Mapping[str, Tool] = {"add": Tool("add", add, Sum)}


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def answer(text: str) -> Answer:
    return Answer(Message("assistant", (Text(text),)))


def asking(number: int) -> Answer:
    return Answer(Message("assistant", (ToolCall(f"call_{number}", "add", '{"a":1,"b":2}'),)))


class Agent:
    """A model, tools, and layers around both, composed once."""

    def __init__(
        self,
        model: Chat,
        tools: Mapping[str, Tool] = TOOLS,
        chat_layers: Sequence[Callable[[ChatRequest, Chat], Awaitable[Answer]]] = (passing,),
        tool_layers: Sequence[Callable[[ToolRequest, UseTool], Awaitable[str]]] = (passing,),
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.tools = tools
        self.chat = chain(chat_layers, model)
        self.use = chain(tool_layers, use)
        self.listeners = listeners
        self.ids = count(1)

    async def run(self, text: str, history: Sequence[Message] = ()) -> str:
        """Model, tools, model, until it only talks; every event goes to every listener."""
        run = f"run-{next(self.ids)}"
        messages = [*history, msgspec.structs.replace(user(text), id=f"m-{next(self.ids)}")]
        states: dict[object, dict[str, Any]] = {}
        self.emit(Event(run, "run_start", 0))
        for step in count(1):
            self.emit(Event(run, "step_start", step))
            answered = await self.chat(ChatRequest(messages, self.tools, step, states))
            said = msgspec.structs.replace(answered.message, id=f"m-{next(self.ids)}")
            messages.append(said)
            self.emit(Event(run, "message", step, said))
            if not (calls := said.tool_calls):
                break
            tasks = [asyncio.create_task(self.result(run, step, call)) for call in calls]
            for task in tasks:
                messages.append(await task)
            self.emit(Event(run, "step_end", step))
        self.emit(Event(run, "run_end", step, said))
        return said.text

    async def result(self, run: str, step: int, call: ToolCall) -> Message:
        """The result of one call: its value, or what went wrong."""
        self.emit(Event(run, "tool_start", step, call))
        try:
            async with asyncio.timeout(TIMEOUT):
                tool = self.tools[call.name]
                arguments = tool.arguments.model_validate_json(call.arguments)
                value, failed = await self.use(ToolRequest(tool, call, arguments.__dict__)), False
        except (KeyError, ValidationError, TimeoutError) as error:
            value, failed = f"{type(error).__name__}: {error}", True
        message = Message("tool", (Text(value),), f"m-{next(self.ids)}", call.id, failed)
        self.emit(Event(run, "tool_end", step, message))
        return message

    def emit(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)
