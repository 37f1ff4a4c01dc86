"""What tests of filters use; pytest finds it by itself (entry point `pytest11`).

    def test_drafts_do_not_cross(snapshot):
        assert assert_filter(without_drafts, history) == snapshot

`pytest --snapshot-update` writes what crosses to a readable `.hand` file; from then on it must be the same.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import pytest

from handrail.filters import full
from handrail.filters.awkward import awkward_histories
from handrail.filters.base import Filter
from handrail.filters.custom import Custom, as_filter
from handrail.filters.errors import FilterError, NothingToHandOver
from handrail.filters.hand import hand, name
from handrail.filters.histories import History
from handrail.filters.messages import Message, Messages, digest
from handrail.filters.reasoning import without_reasoning
from handrail.filters.registry import from_descriptor
from handrail.filters.repairs import breaches
from handrail.filters.seals import Note, Seal, seal
from handrail.filters.searches import texts
from handrail.filters.sources import FixedClock, FixedIds

AnyFilter: TypeAlias = Filter | Callable[[Messages], Any]
_AROUND = 30


class Transcript(str):
    """Messages as readable text. It equals the same text, and a syrupy snapshot that holds it."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        syrupy = sys.modules.get("syrupy.assertion")
        if syrupy is None or not isinstance(other, syrupy.SnapshotAssertion):
            return str.__eq__(self, other) is True
        from handrail.filters.snapshots import matches

        return matches(str(self), other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def transcript(messages: Iterable[Message]) -> Transcript:
    """Any messages as a transcript, to compare with a snapshot: a seed, a view, a preview."""
    return Transcript(hand(messages))


def assert_filter(filter: AnyFilter, history: Messages, *, sealed: bool = True) -> Transcript:
    """What of the history crosses a boundary with this filter, to compare with a snapshot.

    With `sealed=False` it is what the filter alone returns. Raises `AssertionError` where the filter gives something
    else the second time, changes its input, or is not what its descriptor brings back; `FilterError` where it fails.
    """
    __tracebackhide__ = True
    chosen = as_filter(filter)
    run: Filter = seal(chosen) if sealed else chosen
    before = digest(history)
    shown = _crossing(run, history)
    if problem := _inconstant(chosen, run, history, before, shown):
        raise AssertionError(f"{chosen!r} {problem}")
    return Transcript(shown)


def _crossing(run: Filter, history: Messages) -> str:
    try:
        return hand(run(history))
    except NothingToHandOver:
        return "(nothing that could be answered: this handoff needs a reason or an input)\n"


def _inconstant(chosen: Filter, run: Filter, history: Messages, before: str, shown: str) -> str:
    if digest(history) != before:
        return "changed the history that it was given"
    if (again := _crossing(run, history)) != shown:
        return f"gave something else the second time:\n{_difference(shown, again)}"
    if isinstance(chosen, Custom):
        return ""  # a plain function has no more than its name to come back by
    if (back := from_descriptor(chosen.descriptor)) != chosen:
        return f"is not what its descriptor brings back, which is {back!r}"
    return ""


def _difference(before: str, after: str) -> str:
    from difflib import ndiff

    return "\n".join([line for line in ndiff(before.splitlines(), after.splitlines()) if not line.startswith("?")])


def assert_seals(filter: AnyFilter) -> None:
    """Runs the filter, sealed, over a set of awkward histories, and checks what every boundary promises.

    Each time it must end with lawful messages (P1 to P3) that hold no reasoning and can be answered, or say that
    nothing is left; be the same when asked again and when sealed again; and leave its input alone. Raises
    `AssertionError` with each history that shows otherwise, and why.
    """
    __tracebackhide__ = True
    sealed = seal(filter)
    failures = [
        f"{title}: {problem}" for title, history in awkward_histories() for problem in _unsealed(sealed, history)
    ]
    if failures:
        raise AssertionError("\n  ".join([f"{sealed!r} does not hold:", *failures]))


def _unsealed(sealed: Seal, history: Messages) -> list[str]:
    before = digest(history)
    try:
        made = tuple(sealed(history))
        again = tuple(sealed(History(history)))
    except NothingToHandOver:
        return []
    except FilterError as error:
        return [str(error)]
    problems = [f"{each.law} at {each.place} ({each.id}): {each.problem}" for each in breaches(made)]
    problems += [f"reasoning in {each.id}" for each in made if without_reasoning(each) is not each]
    if not any([message.role == "user" for message in made]):
        problems.append("no user message to answer")
    if again != made:
        problems.append(f"gave something else the second time:\n{_difference(hand(made), hand(again))}")
    if not problems and (twice := tuple(seal(full())(made))) != made:
        problems.append(f"sealed again, it changes:\n{_difference(hand(made), hand(twice))}")
    if digest(history) != before:
        problems.append("the history that it was given changed")
    return problems


def assert_never_crosses(
    filter: AnyFilter, history: Messages, pattern: str | re.Pattern[str], *, notes: Sequence[Note] = ()
) -> None:
    """No text of what crosses holds the pattern: a text as it stands, or a compiled regular expression.

    Looked at are words, names, ids, labels, addresses, tool arguments and provider extras with all that is nested in
    them (JSON within JSON, escapes undone), inline bytes, and what is left of the `notes` (a handoff's reason, an
    input). Raises `AssertionError` with each place; nothing crossing at all is no failure.
    """
    __tracebackhide__ = True
    sought = pattern if isinstance(pattern, str) else pattern.pattern
    searched = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
    try:
        crossing = seal(filter).hand_over(history, notes)
    except NothingToHandOver:
        return
    found = [
        f"{message.role} {name(message.id or f'at {place}')}, {where}: {_around(text, hit)}"
        for place, message in enumerate(crossing)
        for where, text in texts(message)
        if (hit := searched.search(text)) is not None
    ]
    if found:
        raise AssertionError("\n  ".join([f"{sought!r} crosses {as_filter(filter)!r}:", *found]))


def _around(text: str, hit: "re.Match[str]") -> str:
    start, end = max(0, hit.start() - _AROUND), min(len(text), hit.end() + _AROUND)
    return f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}".replace("\n", " ")


@pytest.fixture
def fixed_clock() -> FixedClock:
    """A clock that starts at 0 and goes on by one millisecond at each look: `agent.run(…, clock=fixed_clock)`."""
    return FixedClock()


@pytest.fixture
def fixed_ids() -> FixedIds:
    """Message ids that are the same in every run, `m-1`, `m-2`, …: `agent.run(…, ids=fixed_ids)`."""
    return FixedIds("m")
