"""Checking a session: that no line was touched, and that every handoff would hand over the same again."""

from __future__ import annotations

from typing import BinaryIO, Literal

from handrail.filters.hashes import sha256
from handrail.sessions.again import Again
from handrail.sessions.codec import Forged
from handrail.sessions.errors import DamagedSession, TamperedRecord
from handrail.sessions.lines import ZEROS, Progress, each_line, follows, link, prev_of
from handrail.sessions.opening import open_to_read
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.places import Given, located
from handrail.sessions.reader import CHANGED, SECOND_HEADER, Reading
from handrail.sessions.records import AnyRecord, Footer, MessageRecord, Unknown
from handrail.sessions.tails import Batches, batch_of, footer_begins, was_footer
from handrail.sessions.tally import KIND_OF, KINDS, lines_by_kind
from handrail.sessions.vaults import locked_in_order
from handrail.sessions.verdicts import State, Verdict

_ONCE = frozenset({"header", "footer"})


def verified(path: Given, progress: Progress | None, passphrase: Passphrase | None, *, integrity_only: bool) -> Verdict:
    """See `handrail.sessions.verify`."""
    try:
        reading = Reading(located(path), None, passphrase, locked=True)
    except DamagedSession as error:
        state: State = "tampered" if isinstance(error, TamperedRecord) else "damaged"
        return Verdict(path=error.path, state=state, sealed=False, counts={}, line=error.line, problem=error.problem)
    locked = reading.encrypted and reading.vault is None
    with open_to_read(reading.place, 1 << 16) as file, open_to_read(reading.place, 1 << 13) as again:
        check = _Check(reading, None if integrity_only or locked else Again(again, reading.decode))
        check.run(file, progress)
    return check.verdict("not decrypted" if locked and not integrity_only else "intact")


class _Check:
    """One pass over the lines."""

    def __init__(self, reading: Reading, boundaries: Again | None) -> None:
        self.reading = reading
        self.boundaries = boundaries
        self.counts: dict[str, int] = {}
        self.broken: tuple[Literal["damaged", "tampered"], int, str] | None = None
        self.sealed = reading.sealed
        self.locked = reading.encrypted and reading.vault is None
        self.batches = Batches()

    def run(self, file: BinaryIO, progress: Progress | None) -> None:
        """Reads every line, up to the first that is broken."""
        boundaries, counts, out_of_place = self.boundaries, self.counts, self.batches.problem
        lines = each_line(file, self.reading.end, progress)
        decode = locked_in_order() if self.locked else self.reading.in_order()
        head, kind, number, line, footer = ZEROS, "", 0, b"", False
        for number, offset, line in lines:
            try:
                record = decode(line)
                if isinstance(record, Unknown):
                    kind, prev, batch = record.kind, None, _batch(record)
                else:
                    kind, prev, batch = KIND_OF[type(record)], record.prev, record.batch
                if not follows(line, head, prev):
                    return self._unlinked(number, line, next(lines, None))
                if problem := out_of_place(batch):
                    return self._tampered(number, problem)
                if footer:
                    return self._tampered(number, "there is a record after the footer")
                if kind in _ONCE:
                    footer = kind == "footer"
                    if footer:
                        self._footer(number, record, head)
                        continue
                    if number > 1:
                        raise ValueError(SECOND_HEADER)
                if boundaries is None:
                    pass
                elif type(record) is MessageRecord:
                    boundaries.say(offset, record)
                else:
                    boundaries.take(number, offset, record)
            except Forged as error:
                return self._tampered(number, str(error))
            except ValueError as error:
                self.broken = "damaged", number, str(error)
                return None
            counts[kind] = counts.get(kind, 0) + 1
            head = sha256(line).hexdigest()
        return self._look_at_end(number, line, kind)

    def _look_at_end(self, number: int, line: bytes, kind: str) -> None:
        # A sealed copy is there whole or not at all: no crash leaves one with a torn end.
        self.sealed = self.sealed or kind == "footer"
        torn = self.reading.torn
        if self.broken is not None:
            return
        if line != self.reading.last:
            self.broken = "damaged", number, CHANGED
        elif self.batches.left:
            self._tampered(number, f"{self.batches.left} records of its batch are missing after it")
        elif kind not in KINDS and was_footer(line):
            self._tampered(number, "it was a footer before it was changed")
        elif torn is not None and (self.sealed or self._footer_begins(torn.offset)):
            at = number if self.sealed else number + 1
            self.broken = "damaged", at, f"a sealed copy does not end like that: {torn}"

    def _footer_begins(self, offset: int) -> bool:
        with open_to_read(self.reading.place) as file:
            return footer_begins(file, offset)

    def _tampered(self, number: int, problem: str) -> None:
        self.broken = "tampered", number, problem

    def _unlinked(self, number: int, line: bytes, following: tuple[int, int, bytes] | None) -> None:
        # The line after this one tells which of the two was changed.
        if not prev_of(line):
            self._tampered(number, "it names no line before it, or several")
        elif number == 1 or (following is not None and prev_of(following[2]) != link(line)):
            self._tampered(number, "it was changed after it was written")
        else:
            self._tampered(
                number - 1, f"it was changed after it was written, or lines before line {number} are missing"
            )

    def _footer(self, number: int, footer: AnyRecord, head: str) -> None:
        footer = (footer.record or footer) if isinstance(footer, Unknown) else footer
        if not isinstance(footer, Footer):
            raise ValueError("its footer has no counts or no head")
        if footer.head != head:
            self._tampered(number, "the footer names another head than the last line's")
        elif footer.counts != (held := lines_by_kind(self.counts, encrypted=self.reading.encrypted)):
            self._tampered(number, f"the footer counts {footer.counts}, the file holds {held}")

    def verdict(self, sound: State) -> Verdict:
        """The worst of what was found; `sound` is the state of a session that nothing speaks against."""
        found = self.boundaries
        drifts = tuple(found.drifts) if found is not None else ()
        not_runnable = tuple(found.not_runnable) if found is not None else ()
        torn = self.reading.torn
        state = sound
        if self.broken is not None:
            state = self.broken[0]
        elif drifts:
            state = "drifted"
        elif not_runnable:
            state = "not runnable"
        elif torn is not None and sound == "intact":
            state = "torn"
        return Verdict(
            path=self.reading.path,
            state=state,
            sealed=self.sealed,
            counts=self.counts,
            head=self.reading.head if self.broken is None else "",
            handoffs=found.number if found is not None else 0,
            run_again=found.run_again if found is not None else 0,
            edited=found.edited if found is not None else 0,
            line=self.broken[1] if self.broken is not None else None,
            problem=self.broken[2] if self.broken is not None else "",
            torn=torn,
            encrypted=self.reading.encrypted,
            decrypted=self.reading.vault is not None,
            drifts=drifts,
            not_runnable=not_runnable,
        )


def _batch(record: Unknown) -> int:
    return record.record.batch if record.record is not None else batch_of(record.line)
