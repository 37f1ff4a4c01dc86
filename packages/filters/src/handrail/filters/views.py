"""What one agent sees of a conversation: a seed, and everything it saw or said after."""

from __future__ import annotations

import msgspec

from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages
from handrail.filters.repairs import restore


class View(msgspec.Struct, frozen=True):
    """One agent's messages. `removed` are the ids of messages that it held once and holds no more, `rejected` those of
    rejected answers, and of what was said to them, in a turn that was cut off before they left."""

    history: History
    removed: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    def held(self, message_id: str) -> bool:
        """Whether a message with this id stands in the view, or ever did."""
        return message_id in self.removed or self.history.position(message_id) is not None

    def enter(self, seed: Messages) -> View:
        """The view after a boundary has brought this seed: the messages that it never held are appended, lawfully."""
        if not self.history and not self.removed:
            return View(History(seed))
        return View(self.history.extend(self.new(seed)), self.removed)

    def new(self, seed: Messages) -> Messages:
        """Which of the seed would be appended: what was never held, but no result whose call's message was."""
        appended: list[Message] = []
        callers: dict[str, bool] = {}
        for message in seed:
            held = bool(message.id) and self.held(message.id)
            for call in message.tool_calls if message.role == "assistant" else ():
                callers[call.id] = held
            if not held and not (message.role == "tool" and callers.get(message.call_id or "", False)):
                appended.append(message)
        return restore(tuple(appended), "drop").messages
