"""A session file as a sheet: read once, record by record, into the rows of its page."""

from pathlib import Path

from handrail.cli.viewer.rows import Rows
from handrail.cli.viewer.shapes import NoteRow, Sheet, Totals, Verified
from handrail.filters.tokens import best_counter
from handrail.sessions import DamagedSession, Passphrase, Tally, Verdict, read, verify
from handrail.sessions.lines import Progress
from handrail.sessions.places import Where


def sheet(path: Where, name: str, progress: Progress | None = None, passphrase: Passphrase | None = None) -> Sheet:
    """All that the page of a session shows; `name` is what people call the file.

    Where a line is broken, the rows end with a note that says so. Raises `OSError`, `NotASession`,
    `UnsupportedVersion`, or for an encrypted one `PassphraseMissing` or `WrongPassphrase`.
    """
    verdict = verify(path, passphrase=passphrase)
    reading = read(path, progress=progress, passphrase=passphrase)
    rows, tally = Rows(best_counter()), Tally()
    try:
        for number, _, record in reading:
            tally.take(record)
            rows.take(number, record)
    except DamagedSession as error:
        rows.add(NoteRow(line=verdict.line or 0, what="damaged", head=f"{error}; nothing after it is shown", bad=True))
    shown = rows.done()
    lanes = rows.lanes.done(len(shown))
    about, header = rows.about, reading.header
    remarks = [f"not kept as it was: {loss}" for loss in about.losses] if about is not None else []
    remarks += [f"kept as it was, though unlawful: {breach}" for breach in about.breaches] if about is not None else []
    if verdict.encrypted:
        remarks.append("the session is encrypted, and this page is not: whoever has it can read everything")
    if header.continues:
        remarks.append(f"goes on from the sealed copy whose head is {header.continues}")
    return Sheet(
        title=(about.title if about is not None else None) or _title(name),
        file=name,
        format=f"{header.format} {reading.version}{' (draft)' if header.draft else ''}",
        source=(about.source or "") if about is not None else "",
        verified=_verified(verdict),
        totals=_totals(rows, tally),
        lanes=lanes,
        columns=max([lane.column for lane in lanes], default=0) + 1,
        rows=shown,
        written=header.created_at,
        begun=rows.begun,
        ended=rows.ended,
        remarks=remarks,
    )


def _title(name: str) -> str:
    return Path(name).name.partition(".jsonl")[0].removesuffix(".session")


def _verified(verdict: Verdict) -> Verified:
    details = [str(each) for each in (*verdict.drifts, *verdict.not_runnable)]
    details += [f"records of a kind that is not known here: {kind} {many}" for kind, many in verdict.unknown.items()]
    details += [str(verdict.torn)] if verdict.torn is not None else []
    details += [verdict.problem] if verdict.problem else []
    words = [verdict.state + (f" at line {verdict.line}" if verdict.line is not None else "")]
    words += [
        "sealed" if verdict.sealed else "not sealed",
        "encrypted" if verdict.encrypted else "",
        verdict.boundaries,
    ]
    return Verified(verdict.state, verdict.ok, ", ".join([word for word in words if word]), verdict.sealed, details)


def _totals(rows: Rows, tally: Tally) -> Totals:
    return Totals(
        messages=tally.messages,
        calls=tally.usage.requests,
        input=tally.usage.input_tokens,
        output=tally.usage.output_tokens,
        cost=float(rows.prices.total),
        priced=rows.prices.known,
        tools=sum(tally.tools.values()),
        handoffs=sum(tally.handoffs.values()),
        subagents=rows.subagents,
        errors=tally.errors,
    )
