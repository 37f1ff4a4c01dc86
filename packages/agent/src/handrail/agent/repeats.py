"""Loop detection: steps in a row that bring nothing new."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from handrail.agent.errors import LoopDetected
from handrail.agent.limits import Budget
from handrail.filters import Message, ToolCall
from handrail.filters.canonical import canonical_text
from handrail.filters.hashes import sha256


class Repeats:
    """The steps of one turn, as far as they repeat: a step does where each of its calls was made before in the turn,
    with the same arguments and the same result."""

    __slots__ = ("_budget", "_in_a_row", "_limit", "_recent", "_seen")

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit = limit
        self._budget = budget
        self._seen: set[bytes] = set()
        self._recent: deque[tuple[bytes, ...]] = deque(maxlen=2 * limit)
        self._in_a_row = 0

    @classmethod
    def of(cls, budget: Budget) -> Repeats | None:
        """What watches the turns of this budget: the least `max_repeats` here and around; None where none is set."""
        least: Repeats | None = None
        each: Budget | None = budget
        while each is not None:
            limit = each.limits.max_repeats
            if limit is not None and (least is None or limit < least._limit):
                least = cls(limit, each)
            each = each.outer
        return least

    def begin_anew(self) -> None:
        """The turn was entered again: what was tried before does not count as a circle."""
        self._seen.clear()
        self._recent.clear()
        self._in_a_row = 0

    def take(self, calls: Sequence[ToolCall], results: Sequence[Message]) -> tuple[str, int, int] | None:
        """Takes in a step. At half of the limit it gives what is to be warned of: the reason, how many steps, and the
        limit. Raises `LoopDetected` at the limit."""
        step = tuple([_digest(call, result) for call, result in zip(calls, results, strict=True)])
        self._recent.append(step)
        if not self._seen.issuperset(step):
            self._seen.update(step)
            self._in_a_row = 0
            return None
        self._in_a_row += 1
        if self._in_a_row >= self._limit:
            raise LoopDetected(self._limit, self._reason(), budget=self._budget)
        return (self._reason(), self._in_a_row, self._limit) if self._in_a_row == (self._limit + 1) // 2 else None

    def _reason(self) -> str:
        steps = list(self._recent)
        for apart in range(1, len(steps) - self._in_a_row + 1):
            places = range(len(steps) - self._in_a_row, len(steps))
            if all([steps[place] == steps[place - apart] for place in places]):
                return "the same calls with the same results" if apart == 1 else f"the same {apart} steps in turn"
        return "nothing that was not seen before"


def _digest(call: ToolCall, result: Message) -> bytes:
    pair = (call.name, canonical_text(call.arguments), result.is_error, result.content)
    return sha256(msgspec.json.encode(pair)).digest()
