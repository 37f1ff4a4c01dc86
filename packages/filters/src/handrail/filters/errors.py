"""What can go wrong with messages and filters.

HandrailError
├── InvalidMessage              a message or part that was given a value of another type
└── FilterError                 a filter, or what it made, is not fit to use
    ├── InvalidFilter           a parameter out of its range, or what is no filter at all
    ├── InvalidDescriptor       a descriptor whose shape or parameters do not fit its kind
    ├── InvalidExpression       a filter expression with a mistake, and its column
    ├── FilterNotRunnable       a descriptor loaded, but what would run it is missing here
    ├── CounterMissing          what counts tokens under a name is not here
    ├── UnresolvedFilter        a resolver was run as a filter, away from the boundary that it needs
    ├── FilterFailed            a step raised, or returned what may not cross
    ├── NothingToHandOver       nothing is left that the next agent could answer
    ├── PolicyInvalid           a policy file with a mistake, and its line
    └── PolicyViolation         what a policy does not let across was about to cross
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class HandrailError(Exception):
    """The root of every error that Handrail raises.

    One that ended a run says what there was: `messages` is the view of the agent that had control, lawful and ready to
    be continued; `new_messages` all that was said in the run; `agent` that agent's name; `usage` what the run cost.
    """

    messages: Sequence[Any] = ()
    new_messages: Sequence[Any] = ()
    agent: str = ""
    usage: Any = None
    others: Sequence[BaseException] = ()
    """What else was raised beside it, by calls of the same response."""


class InvalidMessage(HandrailError, ValueError):
    """A message or a part that was given a value of another type; `field` says where."""

    def __init__(self, kind: str, field: str, found: object, possible: str) -> None:
        self.field = field
        self.found = found
        self.possible = possible
        super().__init__(f"{kind}.{field} is {possible}, not {found!r:.200}")


class FilterError(HandrailError):
    """A filter, or what it made, is not fit to use."""


class InvalidFilter(FilterError, ValueError):
    """A parameter out of its range, or a value that is no filter at all."""


class InvalidDescriptor(FilterError):
    """A descriptor whose shape or parameters do not fit its kind."""

    def __init__(self, descriptor: object, problem: str) -> None:
        self.descriptor = descriptor
        self.problem = problem
        kind = descriptor.get("kind") if isinstance(descriptor, Mapping) else None
        which = f" of kind {kind!r}" if kind else ""
        super().__init__(f"the filter descriptor{which} is not valid: {problem}")


class InvalidExpression(FilterError, ValueError):
    """A filter expression with a mistake; `column` counts from 1, `possible` is what could have stood there."""

    def __init__(self, expression: str, column: int, problem: str, possible: Sequence[str] = ()) -> None:
        self.expression = expression
        self.column = column
        self.problem = problem
        self.possible = possible
        start = max(0, column - 30)
        shown = repr(expression[start : column + 30])
        hint = f"; possible: {', '.join(possible)}" if possible else ""
        super().__init__(f"column {column}: {problem}, at {shown}{hint}")


class FilterNotRunnable(FilterError):
    """A descriptor that loaded and round-trips, but whose code is missing here."""

    def __init__(self, descriptor: Mapping[str, object], missing: str, known: Sequence[str] = ()) -> None:
        self.descriptor = descriptor
        self.missing = missing
        self.known = known
        hint = f"; known: {', '.join(known)}" if known else ""
        super().__init__(f"this filter cannot run here: {missing}{hint}")


class CounterMissing(FilterError):
    """Nothing here counts tokens under this name; it is never counted by another."""

    def __init__(self, counter: str, problem: str, known: Sequence[str]) -> None:
        self.counter = counter
        self.problem = problem
        self.known = known
        super().__init__(f"tokens cannot be counted by {counter!r} here: {problem}; known: {', '.join(known)}")


class UnresolvedFilter(FilterError):
    """A resolver was run as if it were a filter: what crosses is known only at a boundary. `resolver` is its text."""

    def __init__(self, resolver: str) -> None:
        self.resolver = resolver
        super().__init__(
            f"{resolver} says what crosses only at a boundary: give it to handoff() or to_tool(), alone or as a step "
            "of compose(), or await resolve(filter, history, edge) and run the filter that it gives"
        )


class FilterFailed(FilterError):
    """A step of a filter raised, or returned what may not cross a boundary."""

    def __init__(self, step: str, problem: str) -> None:
        self.step = step
        self.problem = problem
        super().__init__(f"the filter step {step} {problem}")


class NothingToHandOver(FilterError):
    """The filter left nothing that the next agent could answer."""

    def __init__(self, descriptor: Mapping[str, object]) -> None:
        self.descriptor = descriptor
        super().__init__(
            "nothing is left to hand over: the filter kept no user message, and the handoff has no reason or input, or "
            "the filter kept none of them"
        )


class PolicyInvalid(FilterError, ValueError):
    """A policy with a mistake. `file` is what it was read from, `line` counts from 1, `possible` is what could have
    stood there."""

    def __init__(self, file: str, line: int, problem: str, possible: Sequence[str] = ()) -> None:
        self.file = file
        self.line = line
        self.problem = problem
        self.possible = tuple(possible)
        hint = f"; possible: {', '.join(possible)}" if possible else ""
        super().__init__(f"{file}, line {line}: {problem}{hint}")


class PolicyViolation(FilterError):
    """What a policy does not let across was about to cross. `violations` are all of them, each with its rule."""

    def __init__(self, policy: str, source: str, target: str, kind: str, violations: Sequence[Any]) -> None:
        self.policy = policy
        self.source = source
        self.target = target
        self.kind = kind
        self.violations = tuple(violations)
        more = f", and {len(violations) - 1} more" if len(violations) > 1 else ""
        super().__init__(f"{policy} stops the {kind} {source} -> {target}: {violations[0]}{more}")
