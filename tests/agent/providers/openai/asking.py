"""How tests ask a Chat Completions model, and what they keep of its answer."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
import msgspec

from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.models import ChatResponse, Delta, OutputSchema, ReasoningDelta, Settings, TextDelta, ToolSpec
from handrail.agent.providers.openai import OpenAIChat
from handrail.filters import Message, user
from servers.wire import wire

KEY = "sk-test-0123456789"


class Heard(msgspec.Struct):
    """The deltas of a streamed answer, and the answer."""

    deltas: list[Delta]
    answer: ChatResponse

    @property
    def text(self) -> str:
        return "".join([delta.text for delta in self.deltas if isinstance(delta, TextDelta)])

    @property
    def thought(self) -> str:
        return "".join([delta.text for delta in self.deltas if isinstance(delta, ReasoningDelta)])


def asking(
    messages: Sequence[Message] = (user("hello"),),
    *,
    instructions: Mapping[str, str] | None = None,
    tools: Sequence[ToolSpec] = (),
    settings: Settings | None = None,
    output: OutputSchema | None = None,
) -> ChatRequest:
    """A request; a provider reads nothing of the run and the model in it."""
    nobody: Any = None
    return ChatRequest(
        run=nobody,
        model=nobody,
        instructions=instructions or {},
        messages=messages,
        tools=tools,
        settings=settings or Settings(),
        output=output,
    )


@asynccontextmanager
async def chatting(base_url: str, **options: Any) -> AsyncIterator[OpenAIChat]:
    """A model at this address for as long as the block lasts."""
    model = OpenAIChat("any", base_url=base_url, **{"api_key": KEY, "retries": 0, **options})
    try:
        yield model
    finally:
        await model.aclose()


async def hear(model: OpenAIChat, request: ChatRequest | None = None) -> Heard:
    """Everything that a stream gives."""
    async with aclosing(model.stream(request or asking())) as stream:
        pieces = [piece async for piece in stream]
    *deltas, answer = pieces
    assert isinstance(answer, ChatResponse)
    return Heard([delta for delta in deltas if not isinstance(delta, ChatResponse)], answer)


async def hear_bytes(*pieces: bytes, **options: Any) -> Heard:
    """What a model hears of a server that streams these bytes."""
    async with wire(*pieces, **options) as server, chatting(server.base_url) as model:
        return await hear(model)


class Pieces(httpx.AsyncBaseTransport):
    """A transport that answers every request with these pieces of an event stream, without a socket."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Stream(self.pieces))


class _Stream(httpx.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def chunk(**fields: Any) -> str:
    """One chunk with this delta."""
    return as_json({"id": "x1", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def end(reason: str = "stop") -> str:
    """The chunk that ends an answer."""
    return as_json({"id": "x1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


def as_json(value: Any) -> str:
    """Compact JSON."""
    return msgspec.json.encode(value).decode()
