"""The filter that keeps the messages of which a predicate says yes."""

from typing import Any

import msgspec

from handrail.filters.base import Filter
from handrail.filters.messages import Message, Messages
from handrail.filters.predicates import Question, answers, checked, name_of, question, shown
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, whole_pairs


@filter_kind("keep")
class Keep(Filter, frozen=True):
    """Only the messages of which a predicate says yes.

    Each message is asked about alone, in every role; a call and its result go together. A message of which the
    predicate cannot say (it raises, or answers neither True nor False) does not cross.
    """

    predicate: str
    revision: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "params", checked(self.predicate, self.revision, self.params))

    def __call__(self, history: Messages) -> Messages:
        asked = question(self.descriptor, self.predicate, self.revision)
        said = answers(asked, self.params, history)
        places = [place for place, answer in enumerate(said) if answer is True]
        return history if len(places) == len(history) else whole_pairs(as_history(history), places)

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def reason(self, message: Message) -> str:
        """Names the predicate."""
        return f"the predicate {self.predicate!r} does not say yes, or the other half of the pair goes"

    def __repr__(self) -> str:
        return f"keep({', '.join(shown(self.predicate, self.revision, self.params))})"


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
