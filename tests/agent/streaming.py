"""A model that streams what a test gives it, and what was heard of it."""

import asyncio
from typing import Any

from agent.desks import Heard
from handrail.agent.events import Text
from handrail.agent.models import ChatResponse, Profile, TextDelta
from handrail.filters import assistant


class Streaming:
    """A model that streams what it is given: pieces, errors, or what to wait for."""

    name = "streaming"
    profile = Profile()

    def __init__(self, *streams: list[Any]) -> None:
        self.streams = list(streams)

    async def complete(self, request: Any) -> ChatResponse:
        raise AssertionError("it is only streamed")

    async def stream(self, request: Any) -> Any:
        for piece in self.streams.pop(0):
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                yield piece

    async def aclose(self) -> None:
        """Nothing is held open."""


def words(*texts: str) -> list[Any]:
    return [*map(TextDelta, texts), ChatResponse(assistant("".join(texts)))]


def joined(heard: Heard) -> str:
    return "".join([event.text for event in heard.of(Text)])
