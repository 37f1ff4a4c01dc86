"""What crossed a boundary and what stayed, for whoever wants to look."""

from __future__ import annotations

from typing import Literal

import msgspec

from handrail.filters import Edge, Message, Note, Report, Seal
from handrail.filters.messages import Messages
from handrail.filters.reports import crossed


class Crossing(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One boundary that was crossed: a handoff, or the start of a sub-agent.

    `seed` is what the target started from, `edge` the source's side; `stayed` did not cross; `call_id` is the call that
    asked for it; `edited` is the digest of what the seal gave, where a hook changed it; `back` marks an answer on its
    way back at the run's end.
    """

    kind: Literal["handoff", "subagent"]
    source: str
    target: str
    path: str
    call_id: str
    filter: Seal
    notes: tuple[Note, ...]
    edge: Edge
    seed: Messages
    edited: str | None = None
    back: bool = False
    counter: str | None = None

    @property
    def messages_before(self) -> int:
        """How many messages the source's side of the boundary held."""
        return len(self.edge.messages)

    @property
    def messages_after(self) -> int:
        """How many messages the target started from."""
        return len(self.seed)

    @property
    def stayed(self) -> tuple[Message, ...]:
        """The messages of the source's side that did not cross."""
        over = {message.id for message in self.seed}
        return tuple([message for message in self.edge.messages if message.id not in over])

    @property
    def tokens_before(self) -> int:
        """The tokens of the source's side, counted by the run's counter, else by the best there is."""
        return self._count(self.edge.messages)

    @property
    def tokens_after(self) -> int:
        """The tokens of what the target started from."""
        return self._count(self.seed)

    def _count(self, messages: Messages) -> int:
        from handrail.filters.tokens import best_counter, total

        return total(messages, self.counter or best_counter())

    @property
    def saving(self) -> int:
        """How many tokens did not cross."""
        return self.tokens_before - self.tokens_after

    @property
    def report(self) -> Report:
        """What each step of the filter dropped, changed and added, and why; worked out when asked."""
        return self.filter.explain(self.edge.messages)

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}: {crossed(self.edge.messages, self.seed)}"
