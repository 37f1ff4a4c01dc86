"""Filters that ask a predicate about each message: what they have in common."""

from typing import Any, ClassVar

import msgspec

from handrail.filters.base import Filter
from handrail.filters.messages import Messages
from handrail.filters.predicates import answers, checked, question, shown
from handrail.filters.windows import as_history, whole_pairs


class Judged(Filter, frozen=True):
    """Each message is asked about alone, in every role; a call and its result go together. Those stay of which the
    predicate gives the answer that is `wanted`; one of which it cannot say (it raises, or answers neither True nor
    False) does not cross."""

    wanted: ClassVar[bool]
    predicate: str
    revision: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "params", checked(self.predicate, self.revision, self.params))

    def __call__(self, history: Messages) -> Messages:
        asked = question(self.descriptor, self.predicate, self.revision)
        said = answers(asked, self.params, history)
        places = [place for place, answer in enumerate(said) if answer is self.wanted]
        return history if len(places) == len(history) else whole_pairs(as_history(history), places)

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(shown(self.predicate, self.revision, self.params))})"
