"""An answer that comes in chunks, put together."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from handrail.agent.errors import StreamBroken
from handrail.agent.http.failures import failed_within, told_by, unreadable
from handrail.agent.http.secrets import Where
from handrail.agent.models import ArgumentsDelta, ChatResponse, Delta, ReasoningDelta, TextDelta
from handrail.agent.providers.openai.answers import read_answer, read_usage, response
from handrail.agent.providers.openai.pieces import Calls, Words, merged, read_piece, without_halves
from handrail.filters.messages import whole
from handrail.sessions import Usage

# Servers have two names for what a model thinks, and some send it under both at once.
_THOUGHTS = ("reasoning_content", "reasoning")


class Assembly:
    """What has arrived of one streamed answer. `done` is set when the service has said that it is over."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.done = False
        self.usage = Usage()
        self._reason: str | None = None
        self._begun = False
        self._content: list[Words | Any] = []
        self._words: dict[str, Words] = {}
        self._calls = Calls()
        self._rest: dict[str, list[Any]] = {}
        self._whole: ChatResponse | None = None

    @property
    def partial(self) -> str:
        """The text so far."""
        return "".join([part.text for part in self._content if isinstance(part, Words)])

    @property
    def finished(self) -> bool:
        """Whether the answer is all there."""
        return self._reason is not None or self._whole is not None

    def take(self, data: str) -> list[Delta]:
        """The deltas in one chunk. Raises `StreamBroken` for an error that it tells, `InvalidResponse` for no chunk."""
        chunk = read_piece(data, self.where)
        with suppress(RecursionError):
            return self._take(chunk, data)
        raise unreadable(self.where, "an event is nested too deep", data)

    def _take(self, chunk: dict[str, Any], data: str) -> list[Delta]:
        if chunk.get("error") or chunk.get("object") == "error" or chunk.get("type") == "error":
            raise failed_within(told_by(chunk), self.where, streaming=True)
        if chunk.get("usage"):
            self.usage = read_usage(chunk["usage"])
        deltas: list[Delta] = []
        for choice in self._list(chunk.get("choices"), "choices", data):
            if choice.get("index") in (None, 0):
                deltas.extend(self._choice(choice, data))
        return deltas

    def take_whole(self, body: bytes) -> list[Delta]:
        """The deltas of an answer that did not come in chunks, though it was asked to."""
        answer = self._whole = read_answer(body, self.where)
        self.usage = answer.usage
        self._content = [words := Words()]
        words.add(answer.message.text)
        deltas: list[Delta] = [TextDelta(words.text)] if words.text else []
        for place, call in enumerate(answer.message.tool_calls):
            deltas.append(ArgumentsDelta(place, call.id, call.name, call.arguments))
        return deltas

    def response(self) -> ChatResponse:
        """The whole answer. Raises `StreamBroken` where it never ended, `InvalidResponse` where it never began."""
        if self._whole is not None:
            return self._whole
        if self._reason is None and not self.done:
            words = f"{self.where} ended the stream before the answer"
            raise StreamBroken(words, partial=self.partial, spent=self.usage)
        if not self._begun:
            raise unreadable(self.where, "the stream holds no answer")
        message = b""
        with suppress(RecursionError):
            message = msgspec.json.encode({"role": "assistant", **dict(self._fields())})
        if not message:
            raise unreadable(self.where, "the answer is nested too deep")
        return response(message, self._reason, self.usage, self.where)

    def _choice(self, choice: dict[str, Any], data: str) -> Iterator[Delta]:
        if choice.get("error"):
            raise failed_within(told_by(choice), self.where, streaming=True)
        self._begun = True
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = reason
        delta = choice.get("delta") or {}
        if not isinstance(delta, dict):
            raise unreadable(self.where, "a delta is not an object", data)
        thought = next((name for name in _THOUGHTS if delta.get(name)), None)
        for name, value in delta.items():
            if value is None or name == "role":
                continue
            if name == "tool_calls":
                yield from self._calls.take(self._list(value, "tool_calls", data))
            elif name == "content":
                yield from self._say(value, data)
            elif isinstance(value, str):
                said = self._words.setdefault(name, Words()).add(value)
                if name == thought and said:
                    yield ReasoningDelta(said)
            else:
                self._rest.setdefault(name, []).append(value)

    def _say(self, value: Any, data: str) -> Iterator[Delta]:
        for part in [value] if isinstance(value, str) else self._list(value, "content", data):
            text = part if isinstance(part, str) else part.get("text") if part.get("type") == "text" else None
            if not isinstance(text, str):
                self._content.append(without_halves(part))
                continue
            if not self._content or not isinstance(self._content[-1], Words):
                self._content.append(Words())
            said = self._content[-1].add(text)
            if said:
                yield TextDelta(said)

    def _fields(self) -> Iterator[tuple[str, Any]]:
        parts = self._content
        if all([isinstance(part, Words) for part in parts]):
            yield "content", self.partial or None
        else:
            yield "content", [{"type": "text", "text": p.text} if isinstance(p, Words) else p for p in parts]
        for name, words in self._words.items():
            if words.text:
                yield whole(name), words.text
        if self._calls:
            yield "tool_calls", self._calls.whole()
        for name, pieces in self._rest.items():
            yield whole(name), without_halves(merged(pieces))

    def _list(self, value: Any, what: str, data: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list) or not all([isinstance(item, dict) for item in value]):
            raise unreadable(self.where, f"{what} is not a list of objects", data)
        return value
