"""What runs cost: tokens, calls and US dollars, as values that add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import msgspec


class Usage(
    msgspec.Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True
):
    """What model calls cost, in tokens; `requests` counts the calls."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @classmethod
    def total(cls, usages: Sequence[Usage]) -> Usage:
        """What several cost together; cheaper for many than adding one by one."""
        if len(usages) == 1:
            return usages[0]
        given = answered = cached = thought = requests = 0
        for each in usages:
            given += each.input_tokens
            answered += each.output_tokens
            cached += each.cached_tokens
            thought += each.reasoning_tokens
            requests += each.requests
        return cls(given, answered, cached, thought, requests)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.requests + other.requests,
        )


class Spent(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """What was used of a budget: model calls (`steps`), tool calls, handoffs, tokens, and US dollars. `cost` is None
    where it was not counted: no limit asked for it."""

    steps: int = 0
    tool_calls: int = 0
    handoffs: int = 0
    usage: Usage = Usage()
    cost: Decimal | None = None

    def __add__(self, other: Spent) -> Spent:
        known = [each.cost for each in (self, other) if each.cost is not None]
        # A part that asked no model cost nothing, whether that was counted or not.
        counted = all([each.cost is not None or not each.usage.requests for each in (self, other)])
        return Spent(
            self.steps + other.steps,
            self.tool_calls + other.tool_calls,
            self.handoffs + other.handoffs,
            self.usage + other.usage,
            sum(known, Decimal()) if known and counted else None,
        )
