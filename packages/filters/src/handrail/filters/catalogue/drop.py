"""The filter that leaves out the messages of which a predicate says yes."""

from __future__ import annotations

from typing import Any

from handrail.filters.messages import Message
from handrail.filters.predicates import Judged, Question, name_of
from handrail.filters.registry import constructor, filter_kind


@filter_kind("drop")
class Drop(Judged, frozen=True):
    """Every message but those of which a predicate says yes.

    Each message is asked about alone, in every role; a call and its result go together. A message of which the
    predicate cannot say (it raises, or answers neither True nor False) does not cross.
    """

    wanted = False

    def reason(self, message: Message) -> str:
        """Names the predicate."""
        return f"the predicate {self.predicate!r} says yes, or cannot say, or the other half of the pair goes"


@constructor
def drop(predicate: str | Question, /, *, version: int = 1, **params: Any) -> Drop:
    """Leaves out the messages of which a registered predicate, or one of its name, says yes.

    Ready are `mentions(text=)`, `from_agent(agent=)`, `has_role(role=)`, `has_tool_calls`, `is_error`, `is_pinned` and
    `longer_than(characters=)`; `@predicate(name)` registers another. Raises `InvalidFilter` for a function that is not
    registered; a name that is not registered raises `FilterNotRunnable` when the filter runs.

    >>> from handrail.filters import user
    >>> [message.text for message in drop("mentions", text="refund")((user("Hello"), user("My refund?")))]
    ['Hello']
    """
    name, version = name_of(predicate, version)
    return Drop(name, version, params)
