"""The resolver that has a model write the summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Messages, user
from handrail.filters.reasoning import spoken, without_reasoning
from handrail.filters.registry import from_descriptor
from handrail.filters.repairs import restore
from handrail.filters.resolvers import EdgeInfo, Resolver, check_timeout, in_time, name_of, unresolved
from handrail.filters.sensitivity import Tier, highest, label, part_token

Ask = Callable[[Messages], Awaitable[str]]

INSTRUCTIONS = (
    "Summarise this conversation for the agent that takes it over: what was asked, what was found and done, and what "
    "is still open. Keep names, numbers and identifiers as they are. Reply with the summary alone."
)
HEAD = "What was said before, summarised by a model"


class Summarize(Resolver, frozen=True):
    """Becomes `summary` with what `ask` wrote of the messages that it replaces."""

    kind: ClassVar[str] = "resolver/summarize"

    ask: Ask
    instructions: str = INSTRUCTIONS
    keep_last: int = 0
    on_error: Filter | Literal["raise"] = "raise"
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.ask) or isinstance(self.ask, type):
            raise InvalidFilter(f"ask is an async function of messages to text, not {self.ask!r}")
        if type(self.instructions) is not str:
            raise InvalidFilter(f"instructions are a text, not {self.instructions!r}")
        if self.on_error != "raise" and (not isinstance(self.on_error, Filter) or unresolved(self.on_error)):
            raise InvalidFilter(f"on_error is 'raise' or a filter that is known beforehand, not {self.on_error!r}")
        if type(self.keep_last) is not int or self.keep_last < 0:
            raise InvalidFilter(f"keep_last is a whole number of messages, at least 0, not {self.keep_last!r}")
        check_timeout(self.timeout)

    async def resolve(self, history: Messages, edge: EdgeInfo) -> Filter:
        """The summary, or `full()` where it would replace nothing."""
        kept = {id(message) for message in self._summary(HEAD, None)(history)}
        replaced = [message for message in history if id(message) not in kept]
        if not replaced:
            return from_descriptor({"kind": "full"})
        try:
            text = await self._asked(replaced)
        except Exception:
            if isinstance(self.on_error, Filter):
                return self.on_error
            raise
        from handrail.filters.quotes import quoted

        return self._summary(quoted(text, HEAD), _tier(replaced))

    async def _asked(self, replaced: Messages) -> str:
        heard = tuple([left for message in replaced if (left := without_reasoning(message)) is not None])
        asked = restore(heard, "drop").messages
        if self.instructions:
            asked = (*asked, user(self.instructions))
        given: Any = self.ask(asked)
        text: Any = await in_time(given, self.timeout) if isinstance(given, Awaitable) else given
        if not isinstance(text, str):
            raise TypeError(f"the summary is not a text but {type(text).__name__}")
        said = spoken(text)  # in the user role nothing else takes out what the model that wrote it thought
        if not said.strip():
            raise ValueError("the summary is empty")
        return said

    def _summary(self, text: str, tier: Tier | None) -> Filter:
        params = {"text": text, "role": "user", "keep_last": self.keep_last}
        return from_descriptor({"kind": "summary", "params": params | ({"sensitivity": tier} if tier else {})})

    def __repr__(self) -> str:
        tail = f", keep_last={self.keep_last}" if self.keep_last else ""
        return f"summarize({name_of(self.ask)}{tail})"


def summarize(
    ask: Ask,
    *,
    instructions: str = INSTRUCTIONS,
    keep_last: int = 0,
    on_error: Filter | Literal["raise"] = "raise",
    timeout: float | None = None,
) -> Summarize:
    """Has a model write the summary that crosses in place of what was said, in the user role and marked as data.

    `ask` is any async function of messages to text. It is given what the summary replaces and nothing else: no system
    or pinned message, none of the last `keep_last`, no reasoning; an earlier summary as it stands, which the new one
    replaces, so that along a chain of handoffs each utterance reaches the last agent once. `instructions`, where they
    are not empty, follow as a user message. The summary has the highest label of what it stands for.

    A summary that fails, takes longer than `timeout` seconds, or is empty stops the handoff with `FilterFailed`;
    with a filter as `on_error` that one is used in its place. Raises `InvalidFilter` for what cannot be.

    >>> import asyncio
    >>> from handrail.filters import EdgeInfo, resolve, user
    >>> async def ask(messages):
    ...     return f"They said {len(messages)} things."
    >>> history = (user("Hello", id="m1"), user("Anyone there?", id="m2"))
    >>> edge = EdgeInfo(source="Triage", target="Billing")
    >>> found = asyncio.run(resolve(summarize(ask, instructions=""), history, edge))
    >>> [message.role for message in found(history)], "They said 2 things." in found(history)[0].text
    (['user'], True)
    """
    return Summarize(ask, instructions, keep_last, on_error, timeout)


def _tier(replaced: Messages) -> Tier | None:
    # What has no label counts by a setting, so that the summary has one only where it is above what that may be.
    labels = [label(message, part) or part_token(part) for message in replaced for part in message.content]
    found = highest(*labels)
    return None if found == "public" and None in labels else found
