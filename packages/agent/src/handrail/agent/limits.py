"""How far a run may go, and how far it has gone."""

from collections.abc import Sequence

import msgspec

from handrail.agent.errors import BuildError, LimitExceeded


class Limits(msgspec.Struct, frozen=True):
    """Bounds on model calls (`max_steps`), tool calls and handoffs; None is no limit.

    `max_parallel_tools` is how many tools of one response run at once. Raises `BuildError` for a negative bound.
    """

    max_steps: int | None = 50
    max_tool_calls: int | None = None
    max_handoffs: int | None = 10
    max_parallel_tools: int = 16

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < (name == "max_parallel_tools")):
                raise BuildError(f"{name} is a whole number from {int(name == 'max_parallel_tools')}, not {value!r}")


DEFAULT_LIMITS = Limits()


class Budget:
    """What was used under some limits. A budget within another counts in both, and either may refuse."""

    __slots__ = ("handoffs", "limits", "outer", "steps", "tool_calls")

    def __init__(self, limits: Limits, outer: "Budget | None" = None) -> None:
        self.limits = limits
        self.outer = outer
        self.steps = 0
        self.tool_calls = 0
        self.handoffs = 0

    def holds(self, found: object) -> bool:
        """Whether `found` is this budget or one around it."""
        budget: Budget | None = self
        while budget is not None:
            if budget is found:
                return True
            budget = budget.outer
        return False

    def take_step(self) -> None:
        """Counts a model call, or raises `LimitExceeded` before it is made."""
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.max_steps
            if limit is not None and budget.steps >= limit:
                raise LimitExceeded("max_steps", limit, budget=budget)
            budget = budget.outer
        budget = self
        while budget is not None:
            budget.steps += 1
            budget = budget.outer

    def take_tool_calls(self, wanted: int) -> "tuple[int, LimitExceeded | None]":
        """Counts as many of the wanted tool calls as may run, and says what refuses the others."""
        granted, refusal = wanted, None
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.max_tool_calls
            if limit is not None and limit - budget.tool_calls < granted:
                granted, refusal = (
                    max(limit - budget.tool_calls, 0),
                    LimitExceeded("max_tool_calls", limit, budget=budget),
                )
            budget = budget.outer
        budget = self
        while budget is not None:
            budget.tool_calls += granted
            budget = budget.outer
        return granted, refusal

    def take_handoff(self, path: Sequence[str]) -> None:
        """Counts a handoff, or raises `LimitExceeded` before it is made."""
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.max_handoffs
            if limit is not None and budget.handoffs >= limit:
                raise LimitExceeded("max_handoffs", limit, tuple(path), budget=budget)
            budget = budget.outer
        budget = self
        while budget is not None:
            budget.handoffs += 1
            budget = budget.outer
