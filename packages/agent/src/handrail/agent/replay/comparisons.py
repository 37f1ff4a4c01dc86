"""A boundary or a request as it was, beside what it would be."""

from typing import Literal

import msgspec

from handrail.agent.replay.differences import Difference, told
from handrail.filters import Message
from handrail.filters.messages import Messages


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One boundary, or one request, as it was `then` and as it would be `now`.

    `number` counts the boundaries, or the model calls, of the session from 1; `run` and `line` say where it is
    recorded. `then` is None where the record holds only the digest of what was sent. Tokens are counted by the best
    counter there is. `proven` is False where an answer was used that was given to something else.
    """

    what: Literal["boundary", "request"]
    number: int
    run: int
    path: str
    step: int
    line: int
    target: str = ""
    then: tuple[Message, ...] | None
    now: tuple[Message, ...]
    tokens_then: int | None = None
    tokens_now: int = 0
    differences: tuple[Difference, ...] = ()
    proven: bool = True

    def __str__(self) -> str:
        to = f" -> {self.target}" if self.target else ""
        then = "?" if self.then is None else str(len(self.then))
        size = f"{then} to {len(self.now)} messages"
        tokens = f", {'?' if self.tokens_then is None else self.tokens_then} to {self.tokens_now} tokens"
        mark = "" if self.proven else ", not proven"
        head = f"run {self.run}, {self.what} {self.number} (line {self.line}), {self.path}{to}: {size}{tokens}{mark}"
        return "\n".join([head, *[f"  {line}" for line in told(self.differences).splitlines()]])


def count(messages: Messages) -> int:
    """The tokens of messages, by the best counter there is."""
    from handrail.filters.tokens import best_counter, total

    return total(messages, best_counter())
