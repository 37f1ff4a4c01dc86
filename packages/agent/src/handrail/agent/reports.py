"""What crossed a boundary and what stayed, for whoever wants to look."""

from typing import Literal

import msgspec

from handrail.filters import Edge, Message, Note, Report, Seal
from handrail.filters.messages import Messages


class Crossing(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One boundary that was crossed: a handoff, or the start of a sub-agent.

    `seed` is what the target started from; `kept` of the source's messages crossed as they were, `changed` were
    altered or made by the filter, `stayed` did not cross; `call_id` is the call that asked for it;
    `edited` is the digest of what the seal gave, where a hook changed it.
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
        crossed = {message.id for message in self.seed}
        return tuple([message for message in self.edge.messages if message.id not in crossed])

    @property
    def report(self) -> Report:
        """What each step of the filter dropped, changed and added, and why; worked out when asked."""
        return self.filter.explain(self.edge.messages)

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}: {self.messages_after} messages of {self.messages_before}"
