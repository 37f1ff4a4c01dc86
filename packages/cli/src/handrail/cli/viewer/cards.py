"""A boundary as a card: what crossed, what stayed and why, by which filter, and what that saved."""

import msgspec

from handrail.cli.charts.charts import steps
from handrail.cli.recorded import again
from handrail.cli.viewer.shapes import BoundaryRow, Passed, Stayed, Step
from handrail.filters import FilterError, Message, Report, Seal, from_descriptor
from handrail.filters.messages import Messages, digest
from handrail.filters.tokens import total
from handrail.sessions import Boundary, HandoffRecord

SHOWN = 60
"""How many of the messages that crossed, or stayed for one reason, a card names; the rest it counts."""


def card(boundary: Boundary, counter: str, *, lane: int, to: int) -> BoundaryRow:
    """The card of a boundary that was rebuilt from its session. Where the messages named are not those whose digest
    the record holds, it says so and names none."""
    record, edge = boundary.record, boundary.edge
    before: Messages = edge.messages if edge is not None else ()
    row = bare_card(boundary, lane=lane, to=to)
    if (digest(boundary.seed), len(boundary.seed)) != (record.seed, record.seed_length):
        row.problem = "the messages that it names are not those whose digest it holds, so none is shown"
        return row
    row.before, row.after = len(before), len(boundary.seed)
    if row.tokens_before is None or row.tokens_after is None:
        row.tokens_before, row.tokens_after, row.counter = (
            total(before, counter),
            total(boundary.seed, counter),
            counter,
        )
    if row.back:
        _fill(row, before, boundary.seed, Report(()), "at a run's end only the answer goes back")
        return row
    report, row.problem = _explained(boundary)
    if report.steps and not row.problem:
        row.steps = [Step(step.step, step.messages_in, step.messages_out) for step in report.steps]
    _fill(row, before, boundary.seed, report, "not known, as the filter cannot run here")
    return row


def _explained(boundary: Boundary) -> tuple[Report, str]:
    try:
        found = again(boundary, explain=True)
    except FilterError as error:
        return Report(()), str(error)
    return found.report or Report(()), found.problem


def bare_card(boundary: Boundary, *, lane: int, to: int) -> BoundaryRow:
    """What the record of a boundary says by itself."""
    record = boundary.record
    handoff = record if isinstance(record, HandoffRecord) else None
    return BoundaryRow(
        line=boundary.line,
        lane=lane,
        to=to,
        number=boundary.number,
        what=boundary.kind,
        source=boundary.source,
        target=boundary.target,
        step=record.step,
        at=record.at,
        notes=record.notes,
        after=record.seed_length,
        tokens_before=record.tokens_before,
        tokens_after=record.tokens_after,
        steps=[Step(text) for text in _steps(record.filter)],
        descriptor=indented(record.filter),
        returns=" ".join(_steps(record.returns)) if record.returns else "",
        edited=record.edited is not None,
        back=handoff is not None and handoff.back,
    )


def indented(value: object) -> str:
    """JSON for a person to read."""
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def _steps(descriptor: dict[str, object]) -> list[str]:
    try:
        sealed = from_descriptor(descriptor)
    except FilterError:
        return [str(descriptor.get("kind"))]
    return steps(sealed.filter if isinstance(sealed, Seal) else sealed)


def _fill(row: BoundaryRow, before: Messages, seed: Messages, report: Report, otherwise: str) -> None:
    given = {message.id: message for message in before if message.id}
    over = {message.id for message in seed}
    changed = {change.id: change.reason for change in report.changes if change.what == "changed"}
    made = {change.id: change.reason for change in report.changes if change.what == "added"}
    row.passed = [_passed(message, given, changed, made) for message in seed[:SHOWN]]
    row.passed_more = len(seed) - len(row.passed)
    whys: dict[str, str] = {}
    for change in report.changes:
        if change.what == "dropped":
            whys.setdefault(change.id, change.reason)
    groups: dict[str, Stayed] = {}
    for message in before:
        if message.id not in over:
            why = whys.get(message.id, otherwise)
            group = groups.setdefault(why, Stayed(why, 0, []))
            group.count += 1
            if len(group.ids) < SHOWN:
                group.ids.append(message.id)
    row.stayed = list(groups.values())


def _passed(message: Message, given: dict[str, Message], changed: dict[str, str], made: dict[str, str]) -> Passed:
    if given.get(message.id) == message:
        return Passed(message.id)
    why = changed.get(message.id) or made.get(message.id) or ("changed" if message.id in given else "made here")
    return Passed(message.id, why, message)
