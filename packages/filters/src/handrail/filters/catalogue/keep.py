"""The filter that keeps the messages of which a predicate says yes."""

from __future__ import annotations

from typing import Any

from handrail.filters.messages import Message
from handrail.filters.predicates import Judged, Question, name_of
from handrail.filters.registry import constructor, filter_kind


@filter_kind("keep")
class Keep(Judged, frozen=True):
    """Only the messages of which a predicate says yes.

    Each message is asked about alone, in every role; a call and its result go together. A message of which the
    predicate cannot say (it raises, or answers neither True nor False) does not cross.
    """

    wanted = True

    def reason(self, message: Message) -> str:
        """Names the predicate."""
        return f"the predicate {self.predicate!r} does not say yes, or the other half of the pair goes"


@constructor
def keep(predicate: str | Question, /, *, version: int = 1, **params: Any) -> Keep:
    """Keeps the messages of which a registered predicate, or one of its name, says yes.

    Ready are `mentions(text=)`, `from_agent(agent=)`, `has_role(role=)`, `has_tool_calls`, `is_error`, `is_pinned` and
    `longer_than(characters=)`; `@predicate(name)` registers another. Raises `InvalidFilter` for a function that is not
    registered; a name that is not registered raises `FilterNotRunnable` when the filter runs.

    >>> from handrail.filters import user
    >>> [message.text for message in keep("mentions", text="refund")((user("Hello"), user("My refund?")))]
    ['My refund?']
    """
    name, version = name_of(predicate, version)
    return Keep(name, version, params)
