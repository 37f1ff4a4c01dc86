"""What a filter did to a history: which messages it dropped, changed or added, and why."""

from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.filters.messages import Message, Messages


class Change(msgspec.Struct, frozen=True):
    """One message that a step dropped, changed or added. `place` counts from 0, in what the step was given (in what
    it returned, for an added message); `id` may be empty."""

    what: Literal["dropped", "changed", "added"]
    place: int
    id: str
    role: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} {self.role} {self.id or f'at {self.place}'}: {self.reason}"


class StepReport(msgspec.Struct, frozen=True):
    """What one step was given, what it returned, and each difference. Counts are messages."""

    step: str
    messages_in: int
    messages_out: int
    changes: tuple[Change, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.step}: {self.messages_in} -> {self.messages_out} messages"]
        return "\n  ".join([*lines, *map(str, self.changes)])


class Report(msgspec.Struct, frozen=True):
    """What a filter did, step by step."""

    steps: tuple[StepReport, ...]

    @property
    def messages_in(self) -> int:
        """How many messages the first step was given."""
        return self.steps[0].messages_in if self.steps else 0

    @property
    def messages_out(self) -> int:
        """How many messages the last step returned."""
        return self.steps[-1].messages_out if self.steps else 0

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of all steps, in order."""
        return tuple([change for step in self.steps for change in step.changes])

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def compare(step: str, before: Messages, after: Messages, reason: Callable[[Message], str]) -> StepReport:
    """The report of one step: messages are matched by id, those without one by being the same object."""
    old = {_key(message): message for message in before}
    new = {_key(message): message for message in after}
    changes = [
        Change("dropped", place, message.id, message.role, reason(message))
        if (kept := new.get(_key(message))) is None
        else Change("changed", place, message.id, message.role, reason(message))
        for place, message in enumerate(before)
        if (kept := new.get(_key(message))) is not message and (kept is None or kept != message)
    ]
    changes += [
        Change("added", place, message.id, message.role, f"made by {step}")
        for place, message in enumerate(after)
        if _key(message) not in old
    ]
    return StepReport(step, len(before), len(after), tuple(changes))


def _key(message: Message) -> str | int:
    return message.id or id(message)
