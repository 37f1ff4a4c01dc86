"""The filter that keeps what some agents said."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import owners
from handrail.filters.windows import as_history, whole_pairs


@filter_kind("by-agent")
class ByAgent(Filter, frozen=True):
    """System and user messages, and of what agents said only what these agents did, with the results of their calls.

    A message that names no agent is nobody's and goes; a result follows its call, whoever ran the tool.
    """

    agents: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.agents, tuple) or not self.agents:
            raise InvalidFilter(f"by_agent is told the names of agents, not {self.agents!r}")
        if not all([isinstance(name, str) and name for name in self.agents]):
            raise InvalidFilter(f"the names of agents are texts that are not empty, not {self.agents!r}")

    def __call__(self, history: Messages) -> Messages:
        history, names = as_history(history), frozenset(self.agents)
        spoken = {
            place
            for place, message in enumerate(history)
            if message.role in ("system", "user") or (message.role == "assistant" and message.agent in names)
        }
        results = [place for place, owner in owners(history).items() if owner in spoken]
        return whole_pairs(history, spoken.union(results))

    def reason(self, message: Message) -> str:
        """Says who may be heard."""
        return f"not said by {' or '.join(self.agents)}"

    def __repr__(self) -> str:
        return f"by_agent({', '.join(map(repr, self.agents))})"


@constructor
def by_agent(*agents: str) -> ByAgent:
    """Keeps what the user and the application said, and these agents. Raises `InvalidFilter` without a name.

    >>> from handrail.filters import assistant, user
    >>> history = (user("Hello"), assistant("Hi.", agent="Triage"), assistant("I can refund it.", agent="Billing"))
    >>> [message.text for message in by_agent("Billing")(history)]
    ['Hello', 'I can refund it.']
    """
    return ByAgent(agents)
