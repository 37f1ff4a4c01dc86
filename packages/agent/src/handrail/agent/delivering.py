"""What of an answer is heard while it comes: its pieces, what token transforms make of them, and what is withdrawn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from handrail.agent.errors import InvalidAnswer
from handrail.agent.events import Arguments, Discard, ReasoningText, Text
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.kernel.tokens import Pipeline, Token, TokenTransform
from handrail.agent.models import ArgumentsDelta, ChatResponse, Delta, Model, ReasoningDelta, TextDelta
from handrail.agent.scripted import Told, pieces
from handrail.agent.telling import LEAD
from handrail.filters import Message, Refusal
from handrail.sessions import Usage

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

Deliver: TypeAlias = "Callable[[Turn, str, Delta | object], None]"


async def heard(turn: Turn, request: ChatRequest, message_id: str) -> ChatResponse:
    """The model's answer, its pieces told to those who listen as they come. Raises what the model and the transforms
    raise, and `InvalidAnswer`."""
    through = _Through(turn, request) if turn.bound.transforms else None
    tell: Deliver = deliver if through is None else through.deliver
    stream = request.model.stream(request)
    if type(stream) is Told:
        # Once there is anything there is all of it, and between its pieces nothing is waited for but who listens.
        response = await stream.whole()
        for piece in pieces(response.message):
            tell(turn, message_id, piece)
            if len(turn.run.unheard) > LEAD:
                await turn.run.throttle()
    else:
        response = await _arriving(turn, request.model, stream, message_id, tell)
    check_response(response, request.model)
    request.run.arrived = response.usage
    if through is not None and not _is_refused(response):
        through.end(turn, message_id)
    return response


async def _arriving(
    turn: Turn, model: Model, stream: AsyncGenerator[Delta | ChatResponse, None], message_id: str, tell: Deliver
) -> ChatResponse:
    response: ChatResponse | None = None
    unheard, throttle = turn.run.unheard, turn.run.throttle
    try:
        async for piece in stream:
            if type(piece) is ChatResponse:
                response = piece
            else:
                tell(turn, message_id, piece)
                if len(unheard) > LEAD:
                    await throttle()
    except BaseException:
        # One that has come to its end has closed itself.
        await stream.aclose()
        raise
    if response is None:
        raise InvalidAnswer(f"the stream of {model.name} ended without its answer")
    return response


def check_response(response: object, model: Model | None) -> None:
    """Raises `InvalidAnswer` for what is no response with an assistant's message, or does not say in whole numbers what
    it cost and in a text why it ended; it came from this model, or from a chain."""
    if type(response) is not ChatResponse:
        raise InvalidAnswer(f"{_source(model)} gave {type(response).__name__}, not a ChatResponse")
    message = response.message
    if type(message) is not Message or message.role != "assistant":
        raise InvalidAnswer(f"{_source(model)} gave a ChatResponse whose message is not an assistant's")
    if not _counts(response.usage):
        raise InvalidAnswer(f"{_source(model)} gave a ChatResponse whose usage does not count: {response.usage!r:.200}")
    if type(response.finish_reason) is not str:
        found = type(response.finish_reason).__name__
        raise InvalidAnswer(f"{_source(model)} gave a ChatResponse whose finish_reason is {found}, not a text")


def _source(model: Model | None) -> str:
    return "the chat chain" if model is None else f"the model {model.name}"


def _counts(usage: object) -> bool:
    # What is none would make a line of the session that nobody can read.
    return (
        type(usage) is Usage
        and type(usage.input_tokens) is int
        and type(usage.output_tokens) is int
        and type(usage.cached_tokens) is int
        and type(usage.reasoning_tokens) is int
        and type(usage.requests) is int
    )


def _is_refused(response: ChatResponse) -> bool:
    # What the service itself did not let out to its end, or the model took back, has no clean end.
    refused = any([type(part) is Refusal for part in response.message.content])
    return refused or response.finish_reason == "content_filtered"


def deliver(turn: Turn, message_id: str, piece: Delta | object) -> None:
    """Tells those who listen of a piece as it is."""
    if message_id not in turn.delivered:
        turn.delivered += (message_id,)
    if type(piece) is TextDelta:
        turn.tell(Text, message_id, piece.text)
    elif type(piece) is ArgumentsDelta:
        turn.tell(Arguments, message_id, piece.call_id, piece.name, piece.text)
    elif type(piece) is ReasoningDelta:
        turn.tell(ReasoningText, message_id, piece.text)
    else:
        raise _no_piece(piece)


def _no_piece(piece: object) -> InvalidAnswer:
    return InvalidAnswer(f"a stream is made of deltas and a ChatResponse, not {type(piece).__name__}")


class _Through:
    """Pieces on their way through the token transforms of one model call."""

    __slots__ = ("_begun", "_path", "_pipeline", "_step")

    def __init__(self, turn: Turn, request: ChatRequest) -> None:
        made = [(name, make(request)) for name, make in turn.bound.transforms]
        for name, transform in made:
            if not isinstance(transform, TokenTransform):
                raise InvalidAnswer(f"{name}.token_transform gives a TokenTransform, not {type(transform).__name__}")
        self._pipeline = Pipeline(made)
        self._begun: set[int] = set()
        self._path = turn.path
        self._step = turn.context.step

    def deliver(self, turn: Turn, message_id: str, piece: Delta | object) -> None:
        """Tells those who listen of what the transforms make of a piece."""
        if type(piece) is TextDelta:
            token = Token(piece.text, "text", message_id, self._path, self._step)
        elif type(piece) is ArgumentsDelta:
            if piece.index not in self._begun:
                self._begun.add(piece.index)
                _tell(turn, message_id, self._pipeline.pause())
            token = Token(piece.text, "arguments", message_id, self._path, self._step, piece.call_id, piece.name)
        elif type(piece) is ReasoningDelta:
            token = Token(piece.text, "reasoning", message_id, self._path, self._step)
        else:
            raise _no_piece(piece)
        tokens = self._pipeline.step(token)
        if tokens:
            _tell(turn, message_id, tokens)

    def end(self, turn: Turn, message_id: str) -> None:
        """Tells those who listen of what the transforms still hold."""
        _tell(turn, message_id, self._pipeline.flush())


def _tell(turn: Turn, message_id: str, tokens: Sequence[Token]) -> None:
    if message_id not in turn.delivered and tokens:
        turn.delivered += (message_id,)
    for token in tokens:
        if token.kind == "text":
            turn.tell(Text, message_id, token.text)
        elif token.kind == "arguments":
            turn.tell(Arguments, message_id, token.call_id, token.name, token.text)
        else:
            turn.tell(ReasoningText, message_id, token.text)


def withdraw(turn: Turn, message_ids: Sequence[str], reason: str) -> None:
    """Tells those who listen that what was delivered of these messages is none of an answer."""
    for message_id in message_ids:
        if message_id in turn.delivered:
            turn.delivered = tuple([each for each in turn.delivered if each != message_id])
            turn.tell(Discard, message_id, reason)


def settle(turn: Turn, accepted: str, reason: str) -> None:
    """An answer was accepted, or none (empty): what was delivered of others is withdrawn."""
    if len(turn.delivered) > 1 or accepted not in turn.delivered:
        withdraw(turn, [each for each in turn.delivered if each != accepted], reason)
    turn.delivered = ()
