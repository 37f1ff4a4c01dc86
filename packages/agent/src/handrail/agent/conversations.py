"""Conversations that are remembered from run to run: where they are kept, and how one meets an agent's view."""

from collections.abc import Container
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from handrail.agent.errors import InvalidInput
from handrail.agent.kernel.requests import TurnResult
from handrail.filters import Message
from handrail.filters.messages import Messages, is_empty
from handrail.sessions.owning import own

if TYPE_CHECKING:
    from handrail.agent.contexts import RunContext

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[Message])


class Store(Protocol):
    """Where conversations are kept, each by its id. Every message has an id, unlike any other of its conversation.

    Runs may commit to one conversation at once, so `commit` is one step: it appends, in their order, the messages whose
    ids the conversation does not hold, or raises and appends none.
    """

    async def load(self, id: str) -> Messages:
        """All messages of a conversation, in order; none of one that is not known."""

    async def commit(self, id: str, delta: Messages) -> None:
        """Appends what a turn adds."""


class Conversations:
    """A store in this process: it lasts as long as the object, and runs in several threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Message]] = {}
        self.disown()
        own(self)

    def disown(self) -> None:
        """A forked child does not wait for a thread of its parent."""
        self._lock = Lock()

    async def load(self, id: str) -> Messages:
        """All messages of a conversation."""
        with self._lock:
            return tuple(self._kept.get(id, {}).values())

    async def commit(self, id: str, delta: Messages) -> None:
        """Appends the messages that the conversation does not hold."""
        with self._lock:
            kept = self._kept.setdefault(id, {})
            for message in delta:
                kept.setdefault(message.id, message)

    async def forget(self, id: str) -> None:
        """Deletes a conversation."""
        with self._lock:
            self._kept.pop(id, None)


def joined(stored: Messages, given: Messages, before: Container[str]) -> list[Message]:
    """What a turn begins with after what its view held `before` (ids): what the view lacks of the conversation, then
    what the turn is given and the conversation lacks. Of one that the view holds a part of, only what came after that
    part is lacking: what has left the view stays out of it.

    Raises `InvalidInput` where another message is stored under the id of one that is given.
    """
    places = {message.id: place for place, message in enumerate(stored)}
    again = [(places[message.id], message) for message in given if message.id in places]
    for place, message in again:
        if stored[place].digest != message.digest:
            raise InvalidInput(f"the conversation holds another message with the id {message.id!r}; leave the id empty")
    held = [place for id, place in places.items() if id in before]
    if held:
        own = {message.id for message in given}
        return [*[message for message in stored[max(held) + 1 :] if message.id not in own], *given]
    if again and len(again) == len(given):
        # A turn that is taken once more begins where it began.
        return [*stored[: min([place for place, _ in again])], *given]
    return [*stored, *[message for message in given if message.id not in places]]


def added(result: TurnResult, given: Messages) -> list[Message]:
    """What a turn adds to what it was given: its calls with their results, and its answer. What else was said in it,
    such as rejected answers and the feedback on them, was not to stay."""
    ids = {message.id for message in given}
    said: list[Message] = []
    for message in reversed(result.new_messages):
        if message.id in ids:
            break
        if message.role == "tool" or (message.role == "assistant" and message.tool_calls):
            said.append(message)
    said.reverse()
    answer = result.message
    if answer is not None and not answer.tool_calls and not is_empty(answer):
        said.append(answer)
    return said


def named(result: TurnResult, run: "RunContext[Any]") -> TurnResult:
    """The result with an id for an answer that a layer gave, so that it has the same one in the view and in a store."""
    if result.message is None or result.message.id:
        return result
    last = result.messages[-1].id if result.messages else run.run_id
    return result.replace(message=result.message.replace(id=f"{last}-answer", agent=run.agent))


def as_text(messages: Messages) -> str:
    """Messages as JSON, for a layer's private state."""
    return _ENCODER.encode(messages).decode()


def as_messages(text: str) -> list[Message]:
    """The messages of such a text."""
    return _DECODER.decode(text)
