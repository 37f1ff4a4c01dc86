"""The filter that keeps as much as a number of tokens holds."""

from __future__ import annotations

from typing import Literal, get_args

from handrail.filters.base import Filter
from handrail.filters.errors import CounterMissing, FilterNotRunnable, InvalidFilter
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import owners
from handrail.filters.tokens import count, text_counter
from handrail.filters.windows import as_history, beside, whole_pairs

Keep = Literal["tail", "head"]


@filter_kind("token-budget")
class TokenBudget(Filter, frozen=True):
    """System and pinned messages, and of the others as much from the end (or the beginning) as the budget holds.

    System and pinned messages, with the other half of their pair, come first and always stay; the others have what is
    left of the budget. A call goes with all its results or not at all, and what was reached first that does not fit
    ends the window. The counter is part of the descriptor: where it is missing, `FilterNotRunnable` is raised.
    """

    max_tokens: int
    keep: Keep = "tail"
    counter: str = "o200k_base"

    def __post_init__(self) -> None:
        if type(self.max_tokens) is not int or self.max_tokens < 1:
            raise InvalidFilter(f"max_tokens is a whole number, at least 1, not {self.max_tokens!r}")
        if self.keep not in get_args(Keep):
            raise InvalidFilter(f"keep is 'tail' or 'head', not {self.keep!r}")
        if not isinstance(self.counter, str) or not self.counter:
            raise InvalidFilter(f"counter is the name of a counter, not {self.counter!r}")

    def __call__(self, history: Messages) -> Messages:
        try:
            text_counter(self.counter)
        except CounterMissing as error:
            raise FilterNotRunnable(self.descriptor, str(error), error.known) from error
        history = as_history(history)
        chosen = beside(history)
        left = self.max_tokens - sum([count(message, self.counter) for message in history.pick(sorted(chosen))])
        for block in _blocks(history, chosen, from_end=self.keep == "tail"):
            left -= sum([count(message, self.counter) for message in history.pick(block)])
            if left < 0:
                break
            chosen.update(block)
        return whole_pairs(history, chosen)

    def reason(self, message: Message) -> str:
        """Says how large the budget is."""
        return f"more than {self.max_tokens} tokens from the {'end' if self.keep == 'tail' else 'beginning'}"


@constructor
def token_budget(max_tokens: int, keep: Keep = "tail", counter: str = "o200k_base") -> TokenBudget:
    """Keeps system and pinned messages and as many others as `max_tokens` tokens hold, counted by `counter`.

    Raises `InvalidFilter` for a budget below 1.

    >>> from handrail.filters import user
    >>> history = (user("A long story about a parcel."), user("Bye"))
    >>> [message.text for message in token_budget(6, counter="estimate@1")(history)]
    ['Bye']
    """
    return TokenBudget(max_tokens, keep, counter)


def _blocks(history: History, beside: set[int], *, from_end: bool) -> list[list[int]]:
    # Each message that stands for itself, and each call message with its results, without those that stay anyway.
    owned = owners(history)
    blocks: dict[int, list[int]] = {}
    for place, message in enumerate(history):
        if place not in beside and (message.role != "tool" or place in owned):
            blocks.setdefault(owned.get(place, place), []).append(place)
    return sorted(blocks.values(), key=lambda block: block[-1], reverse=True) if from_end else list(blocks.values())
