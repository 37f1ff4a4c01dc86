"""What a filter did to a history: which messages it dropped, changed or added, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.filters.messages import Message, Messages
from handrail.filters.tokens import total


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


class StepReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one step was given, what it returned, and each difference. Counts are messages, and tokens where the
    report was made with a counter."""

    step: str
    messages_in: int
    messages_out: int
    changes: tuple[Change, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None

    def __str__(self) -> str:
        line = f"{self.step}: {self.messages_in} -> {self.messages_out} messages"
        if self.tokens_in is not None:
            line += f", {self.tokens_in} -> {self.tokens_out} tokens"
        return "\n  ".join([line, *map(str, self.changes)])


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
    def tokens_in(self) -> int | None:
        """How many tokens the first step was given; None without a counter."""
        return self.steps[0].tokens_in if self.steps else None

    @property
    def tokens_out(self) -> int | None:
        """How many tokens the last step returned; None without a counter."""
        return self.steps[-1].tokens_out if self.steps else None

    @property
    def saving(self) -> int | None:
        """How many tokens less the next agent is given (below 0 where it is more); None without a counter."""
        given, left = self.tokens_in, self.tokens_out
        return None if given is None or left is None else given - left

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of all steps, in order."""
        return tuple([change for step in self.steps for change in step.changes])

    def __str__(self) -> str:
        lines = list(map(str, self.steps))
        if self.saving is not None and self.tokens_in:
            lines.append(f"saves {self.saving} of {self.tokens_in} tokens ({self.saving / self.tokens_in:.0%})")
        return "\n".join(lines)


def crossed(before: Messages, after: Messages, verb: str = "crossed") -> str:
    """A boundary in numbers: how many of the messages before it crossed, and how many were made there.

    >>> from handrail.filters import user
    >>> crossed([user("Hi", id="m1")], [user("Hi", id="m1"), user("A summary", id="f1-0")])
    '1 of 1 message crossed, 1 made'
    """
    given = {message.id for message in before}
    kept = sum([message.id in given for message in after])
    noun = "message" if len(before) == 1 else "messages"
    return f"{kept} of {len(before)} {noun} {verb}, {len(after) - kept} made"


def compare(
    step: str, before: Messages, after: Messages, reason: Callable[[Message], str], counter: str | None = None
) -> StepReport:
    """The report of one step: messages are matched by id, those without one by being the same object. With a counter
    it has the tokens before and after; raises `CounterMissing`."""
    tokens = (total(before, counter), total(after, counter)) if counter is not None else (None, None)
    if after is before:
        return StepReport(step, len(before), len(after), (), *tokens)
    old = {message.id or id(message): message for message in before}
    new = {message.id or id(message): message for message in after}
    changes: list[Change] = []
    for place, message in enumerate(before):
        kept = new.get(message.id or id(message))
        if kept is not message and (kept is None or kept != message):
            what: Literal["dropped", "changed"] = "dropped" if kept is None else "changed"
            changes.append(Change(what, place, message.id, message.role, reason(message)))
    for place, message in enumerate(after):
        if (message.id or id(message)) not in old:
            changes.append(Change("added", place, message.id, message.role, f"made by {step}"))
    return StepReport(step, len(before), len(after), tuple(changes), *tokens)
