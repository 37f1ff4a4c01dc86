"""What each step of a filter did, as a table: what it kept, dropped, changed and added, why, and what that saves."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from handrail.cli.reporting import counted
from handrail.cli.screens import say, say_table, shortened
from handrail.cli.telling import summed_up
from handrail.filters import Message, Report
from handrail.filters.messages import Messages
from handrail.filters.reports import Change, StepReport

_LISTED = 3
"""How many messages that a step treats alike, one after the other, are shown one by one."""
_COLUMNS = ("step", "tokens", "what", "message", "why")


def say_report(report: Report, messages: Messages, counter: str | None = None) -> None:
    """The report as a table on standard output, and what the whole filter saves; `messages` are those that the first
    step was given, `counter` is what counted their tokens."""
    known = {message.id: message for message in messages if message.id}
    say_table(_COLUMNS, _rows(report, known))
    if (saved := _saving(report)) is not None:
        say(f"{saved} tokens by {counter}" if counter else f"{saved} tokens")


def _saving(report: Report) -> str | None:
    counted_steps = [step for step in report.steps if step.tokens_in is not None]
    said = _tokens(counted_steps[0].tokens_in, counted_steps[-1].tokens_out) if counted_steps else ""
    return said or None


def _rows(report: Report, known: dict[str, Message]) -> Iterator[Sequence[str] | None]:
    for number, step in enumerate(report.steps):
        if number:
            yield None
        kept = step.messages_out - len([change for change in step.changes if change.what != "dropped"])
        head = f"{shortened(step.step)}: {step.messages_in} -> {step.messages_out} messages"
        yield head, _tokens(step.tokens_in, step.tokens_out), "kept", counted(kept, "message"), ""
        yield from _changes(step, known)


def _changes(step: StepReport, known: dict[str, Message]) -> Iterator[Sequence[str]]:
    for (what, why), group in groupby(step.changes, lambda change: (change.what, change.reason)):
        about = [_about(change, known) for change in group]
        shown = about if len(about) <= _LISTED else [f"{len(about)} messages, from {about[0]} on"]
        yield from [("", "", what, each, shortened(why, 200)) for each in shown]


def _about(change: Change, known: dict[str, Message]) -> str:
    name = change.id or f"at {change.place}"
    return f"{name} “{summed_up(known[change.id], 50)}”" if change.id in known else f"{name} ({change.role})"


def _tokens(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return ""
    change = f" ({(after - before) / before:+.0%})" if before else ""
    return f"{before:,} -> {after:,}{change}"
