"""Checking a session: that no line was touched, and that every handoff would hand over the same again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from operator import add
from typing import BinaryIO, Literal

from handrail.sessions.again import Again
from handrail.sessions.codec import Forged, decode_known
from handrail.sessions.errors import DamagedSession, TamperedRecord
from handrail.sessions.lines import ZEROS, Progress, all_follow, each_block, follows, link, links, prev_of
from handrail.sessions.opening import open_to_read
from handrail.sessions.passphrases import Passphrase
from handrail.sessions.places import Given, located
from handrail.sessions.reader import CHANGED, SECOND_HEADER, Reading
from handrail.sessions.records import VERSION, AnyRecord, Footer, Header, Unknown
from handrail.sessions.tails import Batches, batch_of, footer_begins, was_footer
from handrail.sessions.tally import KIND_OF, KINDS, kind_of, lines_by_kind
from handrail.sessions.vaults import locked_in_order
from handrail.sessions.verdicts import State, Verdict


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
    """One pass over the lines: some together where nothing is odd about any of them, else one by one."""

    def __init__(self, reading: Reading, boundaries: Again | None) -> None:
        self.reading = reading
        self.boundaries = boundaries
        self.counts: dict[str, int] = {}
        self.broken: tuple[Literal["damaged", "tampered"], int, str] | None = None
        self.stopped = self.footer = False
        self.sealed = reading.sealed
        self.batches = Batches()
        self.plain = reading.version == VERSION and not reading.encrypted
        self.decode = locked_in_order() if reading.encrypted and reading.vault is None else reading.in_order()
        self.number, self.line, self.kind, self.head = 0, b"", "", ZEROS
        """The last line that was looked at, and the hash of the last one that stands."""

    def run(self, file: BinaryIO, progress: Progress | None) -> None:
        """Reads every line, up to the first that is broken."""
        blocks = each_block(file, self.reading.end, progress)
        for number, offset, lines in blocks:
            before = self.counts.copy()
            records = self._together(lines) or self._one_by_one(lines, blocks)
            if self.boundaries is not None:
                # Each line is one byte longer than what is here of it.
                offsets = list(map(add, accumulate(map(len, lines), initial=offset), range(len(records))))
                self._take(self.boundaries, number, offsets, records, before)
            if self.stopped:
                return
        self._look_at_end()

    def _together(self, lines: list[bytes]) -> Sequence[AnyRecord] | None:
        """The records of these lines, none a footer; None, and nothing else, where one has to be looked at by itself.
        What is asked here of all of them is what is asked of each there."""
        records = decode_known(lines) if self.plain and not self.footer else None
        if records is None:
            return None
        kinds = list(map(type, records))
        if Footer in kinds or Header in kinds[0 if self.number else 1 :]:
            return None
        heads = links(lines)
        prevs = [self.head, *heads[:-1]]
        if not all_follow(lines, prevs, [record.prev for record in records]):
            return None
        if not self.batches.take([record.batch for record in records]):
            return None
        for kind, count in Counter(kinds).items():
            self.counts[KIND_OF[kind]] = self.counts.get(KIND_OF[kind], 0) + count
        self.number, self.line = self.number + len(lines), lines[-1]
        self.kind, self.head = KIND_OF[kinds[-1]], heads[-1]
        return records

    def _one_by_one(self, lines: list[bytes], blocks: Iterator[tuple[int, int, list[bytes]]]) -> list[AnyRecord]:
        """The records of these lines up to the first that is broken, without the footer."""
        records: list[AnyRecord] = []
        rest = iter(lines)
        following = chain(rest, (line for _, _, more in blocks for line in more))
        for self.line in rest:
            self.number += 1
            try:
                record = self.decode(self.line)
                if self._stands(record, following):
                    records.append(record)
            except Forged as error:
                self._stop("tampered", self.number, str(error))
            except ValueError as error:
                self._stop("damaged", self.number, str(error))
            if self.stopped:
                break
        return records

    def _stands(self, record: AnyRecord, following: Iterator[bytes]) -> bool:
        """Whether the record stands in its place; a footer is only looked at. Raises `ValueError` for a damaged one."""
        if isinstance(record, Unknown):
            self.kind, prev, batch = record.kind, None, _batch(record)
        else:
            self.kind, prev, batch = KIND_OF[type(record)], record.prev, record.batch
        if not follows(self.line, self.head, prev):
            self._unlinked(self.number, self.line, next(following, None))
            return False
        if problem := self.batches.problem(batch) or ("there is a record after the footer" if self.footer else ""):
            self._stop("tampered", self.number, problem)
            return False
        if self.kind == "footer":
            self.footer = True
            self._footer(self.number, record, self.head)
            return False
        if self.kind == "header" and self.number > 1:
            raise ValueError(SECOND_HEADER)
        self.counts[self.kind] = self.counts.get(self.kind, 0) + 1
        self.head = link(self.line)
        return True

    def _take(
        self,
        boundaries: Again,
        number: int,
        offsets: Sequence[int],
        records: Sequence[AnyRecord],
        before: dict[str, int],
    ) -> None:
        # What stands before a broken line was taken in before that was looked at, and comes first here too.
        try:
            boundaries.take_all(number, offsets, records)
        except ValueError as error:
            self._stop("tampered" if isinstance(error, Forged) else "damaged", boundaries.line, str(error))
            self.counts = before
            for record in records[: boundaries.line - number]:
                self.counts[kind_of(record)] = self.counts.get(kind_of(record), 0) + 1

    def _stop(self, state: Literal["damaged", "tampered"], number: int, problem: str) -> None:
        self.broken, self.stopped = (state, number, problem), True

    def _look_at_end(self) -> None:
        number, line, kind = self.number, self.line, self.kind
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

    def _unlinked(self, number: int, line: bytes, following: bytes | None) -> None:
        # The line after this one tells which of the two was changed.
        if not prev_of(line):
            self._stop("tampered", number, "it names no line before it, or several")
        elif number == 1 or (following is not None and prev_of(following) != link(line)):
            self._stop("tampered", number, "it was changed after it was written")
        else:
            problem = f"it was changed after it was written, or lines before line {number} are missing"
            self._stop("tampered", number - 1, problem)

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
