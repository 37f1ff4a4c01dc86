"""Several filters as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from handrail.filters.base import Filter
from handrail.filters.custom import as_filter
from handrail.filters.messages import Messages
from handrail.filters.reasoning import StripReasoning
from handrail.filters.registry import constructor, filter_kind


@filter_kind("compose")
class Compose(Filter, frozen=True):
    """Filters applied from left to right; always ends with `strip_reasoning`. A nested compose is flattened."""

    steps: tuple[Filter, ...] = ()

    def __post_init__(self) -> None:
        flat: list[Filter] = []
        for step in self.steps:
            flat.extend(step.steps[:-1] if isinstance(step, Compose) else (step,))
        if not flat or not isinstance(flat[-1], StripReasoning):
            flat.append(StripReasoning())
        msgspec.structs.force_setattr(self, "steps", tuple(flat))

    def __call__(self, history: Messages) -> Messages:
        for step in self.steps:
            history = step(history)
        return history

    @property
    def per_message(self) -> bool:
        """True where every step is."""
        return all(step.per_message for step in self.steps)

    @property
    def flat(self) -> tuple[Filter, ...]:
        """The steps, in order."""
        return self.steps

    def __repr__(self) -> str:
        return f"compose({', '.join(map(repr, self.steps))})"


@constructor
def compose(*filters: Filter | Callable[[Messages], Any]) -> Compose:
    """One filter that applies these from left to right and then leaves out all reasoning.

    A plain function counts as `custom(fn)`. Raises `InvalidFilter` for what can be neither.

    >>> from handrail.filters import last_user, strip_tool_calls
    >>> compose(last_user(), strip_tool_calls())
    compose(last_user(), strip_tool_calls(), strip_reasoning())
    """
    return Compose(tuple([as_filter(step) for step in filters]))
