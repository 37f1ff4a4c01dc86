"""The boundaries between two agents in a session, with their own filters or with another in its place."""

from collections.abc import Iterator

import msgspec

from handrail.cli.errors import UnfitInput
from handrail.cli.reporting import full_report, tokens_of
from handrail.cli.transcripts import is_session
from handrail.filters import (
    Filter,
    FilterError,
    FilterNotRunnable,
    NothingToHandOver,
    Report,
    Seal,
    from_descriptor,
    seal,
)
from handrail.filters.messages import Messages
from handrail.filters.reports import Change, StepReport, compare
from handrail.sessions import Boundary, Passphrase, crossings
from handrail.sessions.crossings import NOT_RUN
from handrail.sessions.places import Where
from handrail.sessions.records import asked_by


class Replayed(msgspec.Struct, frozen=True):
    """A recorded boundary: the filter that was looked at, what it was given, what crossed or would, and the report.
    `problem` says what keeps the filter from running; `recorded` that it is the boundary's own."""

    boundary: Boundary
    filter: Filter
    recorded: bool
    history: Messages
    crossing: Messages
    report: Report | None = None
    problem: str = ""

    @property
    def which(self) -> str:
        """The boundary in words."""
        found = self.boundary
        what = "handoff" if found.kind == "handoff" else "sub-agent"
        return f"{what} {found.number}, step {found.record.step}, {found.source} -> {found.target}"


def replayed(
    path: Where,
    name: str,
    source: str | None,
    target: str | None,
    chosen: Filter | None,
    *,
    explain: bool,
    counter: str | None = None,
    passphrase: Passphrase | None = None,
) -> Iterator[Replayed]:
    """Every handoff and sub-agent's call from `source` to `target` (anyone where None).

    Raises `UnfitInput` for a file that is no session, and where there is no such boundary, naming those there are.
    """
    if not is_session(path):
        raise UnfitInput(f"{name}: is no Handrail session, so it has no handoffs; leave --from and --to out")
    others: dict[str, None] = {}
    found = False
    for boundary in crossings(path, passphrase=passphrase):
        if boundary.kind == "return" or boundary.edge is None:
            continue
        if source in (None, boundary.source) and target in (None, boundary.target):
            found = True
            yield again(boundary, chosen, explain=explain, counter=counter)
        else:
            others[f"{boundary.source} -> {boundary.target}"] = None
    if not found:
        asked = f"{source or 'anyone'} -> {target or 'anyone'}"
        raise UnfitInput(f"{name}: holds no handoff {asked}; those there are: {', '.join(others) or 'none'}")


def again(
    boundary: Boundary, chosen: Filter | None = None, *, explain: bool = False, counter: str | None = None
) -> Replayed:
    """A boundary with the filter that was chosen, or without one with its own. Raises `FilterNotRunnable` where what
    was recorded is not sealed, or of a kind that is not known here."""
    record, edge = boundary.record, boundary.edge
    history: Messages = edge.messages if edge is not None else ()
    sealed = seal(chosen) if chosen is not None else _recorded(record.filter)
    crossing, report, problem = boundary.seed, None, ""
    try:
        given = sealed.hand_over(
            history, record.notes, edge.view if edge is not None else None, asked_by=asked_by(record)
        )
        if chosen is not None:
            crossing = given
        if explain:
            report = _report(sealed, history, given, counter)
            if chosen is None and record.edited is not None:
                before = history if record.edited == NOT_RUN else given
                hook = compare("a hook", before, crossing, lambda _: "a hook of the source's agent changed it", counter)
                report = Report((hook,) if record.edited == NOT_RUN else (*report.steps, hook))
    except FilterError as error:
        problem = str(error)
        crossing = () if chosen is not None else crossing
        if explain and isinstance(error, NothingToHandOver):
            report = full_report(sealed.filter, history, counter=counter)
        elif explain and chosen is None:
            unknown = "the filter that left it out cannot run here"
            report = Report((compare(repr(sealed), history, crossing, lambda _: unknown, counter),))
    return Replayed(boundary, sealed.filter, chosen is None, history, crossing, report, problem)


def _recorded(descriptor: dict[str, object]) -> Seal:
    filter = from_descriptor(descriptor)
    if not isinstance(filter, Seal):
        raise FilterNotRunnable(descriptor, "what was recorded is not sealed")
    return filter


def _report(sealed: Seal, history: Messages, crossing: Messages, counter: str | None) -> Report:
    report = full_report(sealed.filter, history, counter=counter)
    made = f"f{len(sealed.flat) + 1}-"
    added = [
        Change("added", place, message.id, message.role, "the handoff's reason, or what it was given to do")
        for place, message in enumerate(crossing)
        if message.id.startswith(made)
    ]
    if not added:
        return report
    tokens = report.tokens_out, tokens_of(crossing, counter)
    return Report((*report.steps, StepReport("notes", report.messages_out, len(crossing), tuple(added), *tokens)))
