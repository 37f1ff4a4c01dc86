"""How far a run may go, and how far it has gone."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import msgspec

from handrail.agent.deadlines import Span, bounded
from handrail.agent.errors import NOTHING_SPENT, BuildError, LimitExceeded, UnknownPrice
from handrail.filters.fields import Once
from handrail.sessions import Spent, Usage

_T = TypeVar("_T")
AtLimit: TypeAlias = Literal["raise", "tell", "end"]
Unpriced: TypeAlias = Literal["raise", "ignore"]

_LEAST = {"max_parallel_tools": 1, "max_repeats": 1}
_MEASURES = ("max_cost", "max_seconds")
_METERED = (*_MEASURES, "max_tokens", "max_input_tokens", "max_output_tokens")
_CHOICES: Mapping[str, tuple[str, ...]] = {"on_max_tool_calls": get_args(AtLimit), "on_unpriced": get_args(Unpriced)}


class Limits(msgspec.Struct, frozen=True, dict=True):
    """Bounds on what a run, an agent's turn, or a sub-agent's call may use; None is no limit.

    `max_steps` counts model calls, `max_tokens` their input and output together, `max_cost` US dollars, `max_seconds`
    the time that passes; `max_parallel_tools` is how many tools of one response run at once. `max_repeats` is how many
    steps in a row may bring nothing new before the turn is stopped (`LoopDetected`); at half of that it is warned of.

    A tool call over `max_tool_calls` is not run. The run then ends with the error (`raise`), or goes on (`tell`: the
    model sees why), or its turn ends as failed (`end`). `on_unpriced` says what a model without a known price means
    for `max_cost`: its calls are refused, or count as free of charge.

    Raises `BuildError` for a bound that is none.
    """

    max_steps: int | None = 50
    max_tool_calls: int | None = None
    max_handoffs: int | None = 10
    max_parallel_tools: int = 16
    max_tokens: int | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    max_repeats: int | None = None
    on_max_tool_calls: AtLimit = "raise"
    on_unpriced: Unpriced = "raise"

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name in _CHOICES:
                if value not in _CHOICES[name]:
                    raise BuildError(f"{name} is one of {', '.join(_CHOICES[name])}, not {value!r}")
            elif name in _MEASURES:
                if value is not None and not (type(value) in (int, float) and math.isfinite(value) and value >= 0):
                    raise BuildError(f"{name} is a finite number from 0, not {value!r}")
            elif (value is not None or name == "max_parallel_tools") and (
                type(value) is not int or value < _LEAST.get(name, 0)
            ):
                raise BuildError(f"{name} is a whole number from {_LEAST.get(name, 0)}, not {value!r}")
        if self.max_cost is not None:
            from handrail.agent.prices import load_prices

            load_prices()

    @Once
    def metered(self) -> bool:
        """Whether tokens, money or time bound the calls made under these: where nothing does, nothing is worked out."""
        return any([getattr(self, name) is not None for name in _METERED])

    @classmethod
    def only(cls, **limits: Any) -> Limits:
        """These limits and no others: what is not named has no bound."""
        return cls(**{"max_steps": None, "max_handoffs": None, **limits})


DEFAULT_LIMITS = Limits()
NOTHING = Spent()
NO_COST = Decimal()
ONE_REQUEST = Usage(requests=1)


IDLE = 1000
"""How often a turn may go round without a model call where no `max_steps` bounds it."""


class Budget:
    """What was used under some limits. A budget within another counts in both, and either may refuse.

    `calls` holds the usage of each model call, by model. What an earlier run left behind is in `before`. `timed` says
    that `max_seconds` bounds what is done under it, whatever is around it; `metered` that tokens, money or time bound
    the calls made here.
    """

    __slots__ = (
        "_cost",
        "_input",
        "_output",
        "_span",
        "_summed",
        "before",
        "calls",
        "handoffs",
        "limits",
        "metered",
        "outer",
        "owner",
        "priced",
        "steps",
        "timed",
        "tool_calls",
    )

    def __init__(self, limits: Limits, outer: Budget | None = None) -> None:
        if not isinstance(limits, Limits):
            raise BuildError(f"limits are Limits(…), not {limits!r}")
        self.limits = limits
        self.outer = outer
        self.owner = "the run"
        self.steps = 0
        self.tool_calls = 0
        self.handoffs = 0
        self.calls: dict[str, list[Usage]] = {}
        self._summed: dict[str, tuple[int, Usage]] | None = None
        self.before = NOTHING
        self._input = self._output = 0
        self._cost = NO_COST
        self._span = None if limits.max_seconds is None else Span(limits.max_seconds, self)
        self.priced = limits.max_cost is not None
        self.metered = limits.metered
        self.timed = self._span is not None
        if outer is not None:
            self.priced, self.metered = self.priced or outer.priced, self.metered or outer.metered

    @classmethod
    def resumed(cls, limits: Limits, spent: Spent) -> Budget:
        """A budget of which this much is used already.

        Raises `BuildError` where that is no amount, and `UnknownPrice` where `max_cost` holds, what was paid is not
        known, and `on_unpriced` does not say to ignore it.
        """
        usage, cost = spent.usage, spent.cost
        counts = (spent.steps, spent.tool_calls, spent.handoffs, usage.input_tokens, usage.output_tokens)
        if min(counts) < 0 or (cost is not None and not (cost.is_finite() and cost >= 0)):
            raise BuildError(f"what was used of a budget is counted from 0, not {spent!r}")
        if limits.max_cost is not None and limits.on_unpriced == "raise" and cost is None and usage.requests:
            raise UnknownPrice("", "what was spent before is not known in dollars")
        budget = cls(limits)
        budget.before = spent
        budget.steps, budget.tool_calls, budget.handoffs = spent.steps, spent.tool_calls, spent.handoffs
        budget._input, budget._output, budget._cost = usage.input_tokens, usage.output_tokens, cost or NO_COST
        return budget

    def _chain(self) -> Iterator[Budget]:
        budget: Budget | None = self
        while budget is not None:
            yield budget
            budget = budget.outer

    def holds(self, found: object) -> bool:
        """Whether `found` is this budget or one around it."""
        return any(budget is found for budget in self._chain())

    def take_step(self) -> None:
        """Counts a model call, or raises `LimitExceeded` before it is made."""
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.max_steps
            if limit is not None and budget.steps >= limit:
                raise LimitExceeded("max_steps", limit, budget=budget)
            budget = budget.outer
        self.steps += 1
        if self.outer is not None:
            for budget in self.outer._chain():
                budget.steps += 1

    def check_idle(self, passes: int) -> None:
        """Whether a turn may go round once more without a model call. Raises `LimitExceeded`."""
        for budget in self._chain():
            limit = budget.limits.max_steps
            if passes > (IDLE if limit is None else limit):
                raise LimitExceeded("max_steps", IDLE if limit is None else limit, budget=budget)

    def take_tool_calls(self, wanted: int) -> tuple[int, LimitExceeded | None]:
        """Counts as many of the wanted tool calls as may run, and says what refuses the others."""
        if self.outer is None and self.limits.max_tool_calls is None:
            self.tool_calls += wanted
            return wanted, None
        granted, refusal = wanted, None
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.max_tool_calls
            if limit is not None and limit - budget.tool_calls < granted:
                granted = max(limit - budget.tool_calls, 0)
                refusal = LimitExceeded("max_tool_calls", limit, budget=budget)
            budget = budget.outer
        self.tool_calls += granted
        if self.outer is not None:
            for budget in self.outer._chain():
                budget.tool_calls += granted
        return granted, refusal

    def take_handoff(self, path: Sequence[str]) -> None:
        """Counts a handoff, or raises `LimitExceeded` before it is made."""
        for budget in self._chain():
            limit = budget.limits.max_handoffs
            if limit is not None and budget.handoffs >= limit:
                raise LimitExceeded("max_handoffs", limit, tuple(path), budget=budget)
        for budget in self._chain():
            budget.handoffs += 1

    def check_call(self, model: str) -> None:
        """Whether one more call of this model may be made. Raises `LimitExceeded` where tokens, money or time are used
        up, and `UnknownPrice` where money is counted and the model's price is not known."""
        for budget in self._chain():
            limits = budget.limits
            for name, used, limit in budget._measured():
                if limit is not None and used >= limit:
                    raise LimitExceeded(name, getattr(limits, name), budget=budget)
            if budget._span is not None and not budget._span.left:
                raise budget._span.reached()
            if limits.max_cost is not None and limits.on_unpriced == "raise" and model not in self.calls:
                from handrail.agent.prices import is_priced

                if not is_priced(model):
                    raise UnknownPrice(model)

    def _measured(self) -> Iterator[tuple[str, int | Decimal, int | Decimal | None]]:
        limits = self.limits
        yield "max_tokens", self._input + self._output, limits.max_tokens
        yield "max_input_tokens", self._input, limits.max_input_tokens
        yield "max_output_tokens", self._output, limits.max_output_tokens
        yield "max_cost", self._cost, Decimal(str(limits.max_cost)) if limits.max_cost is not None else None

    def spend(self, model: str, usage: Usage) -> Usage:
        """Counts what one request to a model cost, here and around it, and gives it with the request counted."""
        spent = usage if usage.requests else ONE_REQUEST if usage == NOTHING_SPENT else _counted(usage)
        known = self.calls.get(model)
        if known is None:
            self.calls[model] = [spent]
        else:
            known.append(spent)
        if self.metered or self.outer is not None:
            self._spend_around(model, spent)
        return spent

    def _spend_around(self, model: str, usage: Usage) -> None:
        cost = NO_COST
        if self.priced:
            from handrail.agent.prices import price

            cost = price(model, usage) or cost
        for budget in self._chain():
            if budget is not self:
                budget.calls.setdefault(model, []).append(usage)
            budget._input += usage.input_tokens
            budget._output += usage.output_tokens
            budget._cost += cost

    @property
    def by_model(self) -> dict[str, Usage]:
        """What the model calls made here cost, by model."""
        found: dict[str, Usage] = {}
        for model, usages in self.calls.items():
            if len(usages) == 1:
                found[model] = usages[0]
                continue
            if self._summed is None:
                self._summed = {}
            count, usage = self._summed.get(model) or (0, NOTHING.usage)
            if count < len(usages):
                usage = Usage.total([usage, *usages[count:]])
                self._summed[model] = len(usages), usage
            found[model] = usage
        return found

    @property
    def used(self) -> Spent:
        """What was used; the cost only where a limit asks for it."""
        usage = sum(self.by_model.values(), self.before.usage)
        cost = self._cost if self.priced else None
        return Spent(self.steps, self.tool_calls, self.handoffs, usage, cost)

    def left(self) -> dict[str, int | float | Decimal]:
        """What is left of each limit that is set, by the limit's name, here and around: the least of several."""
        least: dict[str, int | float | Decimal] = {}
        for budget in self._chain():
            for name, used, limit in budget._counted():
                if limit is not None:
                    rest = max(limit - used, 0)
                    least[name] = min(least.get(name, rest), rest)
        return least

    def _counted(self) -> Iterator[tuple[str, Any, Any]]:
        limits = self.limits
        yield "max_steps", self.steps, limits.max_steps
        yield "max_tool_calls", self.tool_calls, limits.max_tool_calls
        yield "max_handoffs", self.handoffs, limits.max_handoffs
        yield from self._measured()
        if self._span is not None:
            yield "max_seconds", self._span.seconds - self._span.left, self._span.seconds

    def __str__(self) -> str:
        shown = []
        for name, used, limit in self._counted():
            if limit is not None or name in ("max_steps", "max_tool_calls", "max_handoffs"):
                what = name.removeprefix("max_").replace("_", " ")
                shown.append(f"{what} {used} of {limit}" if limit is not None else f"{what} {used}")
        return ", ".join(shown)

    def in_time(self, work: Awaitable[_T]) -> Awaitable[_T]:
        """The work, bounded by `max_seconds` since the first work that was: when they have passed it is cancelled, and
        `LimitExceeded` is raised. A cancel from outside stays one."""
        return work if self._span is None else bounded(self._span, work)


def total(by_model: Mapping[str, Usage]) -> Usage:
    """What all models cost together."""
    return Usage.total(list(by_model.values()))


def _counted(usage: Usage) -> Usage:
    return msgspec.structs.replace(usage, requests=1)
