"""What a filter is: a frozen value that is called with messages and returns messages."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from handrail.filters.messages import Message, Messages
from handrail.filters.reports import Report, StepReport, compare


class Filter(msgspec.Struct, frozen=True):
    """A handoff filter. Its fields are its descriptor, so what runs and what is written down cannot drift.

    A subclass is declared with `@filter_kind(kind, version=…)`, has fields of JSON types (or filters, which become
    nested steps), and implements `__call__`; it never mutates what it is given.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1

    def __call__(self, history: Messages) -> Messages:
        """The messages that may cross. Raises `FilterError` where that cannot be said."""
        raise TypeError(f"{type(self).__name__} does not say what crosses: it has no __call__")

    @property
    def per_message(self) -> bool:
        """Whether each message is judged alone, so that the filter is applied to a handoff's notes as well."""
        return False

    @property
    def flat(self) -> tuple[Filter, ...]:
        """The steps that run one after the other: this filter alone, unless it is a composition."""
        return (self,)

    @property
    def descriptor(self) -> dict[str, Any]:
        """The filter as JSON: `kind`, `version`, and where there are any, `params` and nested `steps`."""
        params: dict[str, Any] = {}
        steps: list[dict[str, Any]] = []
        for field in self.__struct_fields__:
            value = getattr(self, field)
            if isinstance(value, Filter):
                steps.append(value.descriptor)
            elif isinstance(value, tuple) and value and isinstance(value[0], Filter):
                steps.extend([step.descriptor for step in value])
            else:
                written = msgspec.to_builtins(value)
                params[field] = list(written) if isinstance(written, tuple) else written
        described: dict[str, Any] = {"kind": self.kind, "version": self.version}
        if params:
            described["params"] = params
        if steps:
            described["steps"] = steps
        return described

    def reason(self, message: Message) -> str:
        """Why this filter would leave the message out or change it, for a person to read."""
        return repr(self)

    def explain(self, history: Messages, counter: str | None = None) -> Report:
        """What each step keeps, drops, changes and adds, and why; with a counter (`"o200k_base"`, `"estimate@1"`) also
        how many tokens go in and come out. Raises `CounterMissing` where that is not here."""
        reports: list[StepReport] = []
        for step in self.flat:
            after = step(history)
            reports.append(compare(repr(step), history, after, step.reason, counter))
            history = after
        return Report(tuple(reports))

    def __repr__(self) -> str:
        given = [f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__]
        # What comes with the package reads as the function that makes it; of another's only the kind is known.
        ours = type(self).__module__.startswith("handrail.filters.")
        return f"{self.kind.replace('-', '_') if ours else self.kind}({', '.join(given)})"
