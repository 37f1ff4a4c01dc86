"""The filter that is one of two, as a predicate says."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.filters.base import Filter
from handrail.filters.custom import as_filter
from handrail.filters.messages import Message, Messages
from handrail.filters.predicates import Question, answers, checked, name_of, question, shown
from handrail.filters.registry import constructor, filter_kind


@filter_kind("when")
class When(Filter, frozen=True):
    """One filter where a predicate says yes of any message, another where it says yes of none.

    A message of which the predicate cannot say (it raises, or answers neither True nor False) does not cross, in
    either case. A handoff's note is asked about alone, where both filters judge each message alone.
    """

    predicate: str
    then: Filter
    otherwise: Filter
    revision: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "params", checked(self.predicate, self.revision, self.params))

    def __call__(self, history: Messages) -> Messages:
        asked = question(self.descriptor, self.predicate, self.revision)
        said = answers(asked, self.params, history)
        if None in said:
            history = tuple([message for message, answer in zip(history, said, strict=True) if answer is not None])
        return self.then(history) if True in said else self.otherwise(history)

    @property
    def per_message(self) -> bool:
        """True where both branches are."""
        return self.then.per_message and self.otherwise.per_message

    def reason(self, message: Message) -> str:
        """Names the predicate and both branches."""
        return f"{self.predicate!r} decides: {self.then.reason(message)}; or {self.otherwise.reason(message)}"

    def __repr__(self) -> str:
        name, *given = shown(self.predicate, self.revision, self.params)
        return f"when({', '.join([name, repr(self.then), repr(self.otherwise), *given])})"


@constructor
def when(predicate: str | Question, then: Any, otherwise: Any, /, *, version: int = 1, **params: Any) -> When:
    """`then` where a registered predicate says yes of any message, else `otherwise`: filters, or plain functions.

    Raises `InvalidFilter` for what can be neither, and for a predicate that is a function without a name.

    >>> from handrail.filters import full, last_n, user
    >>> short_for_refunds = when("mentions", last_n(1), full(), text="refund")
    >>> [message.text for message in short_for_refunds((user("Hello"), user("My refund?")))]
    ['My refund?']
    """
    name, version = name_of(predicate, version)
    return When(name, as_filter(then), as_filter(otherwise), version, params)
