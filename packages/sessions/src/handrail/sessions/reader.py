"""Reading a session file record by record, in constant memory, without a lock and without changing it."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.sessions.codec import decode_sound
from handrail.sessions.errors import DamagedSession, NotASession
from handrail.sessions.headers import read_header, refuse_endless, refuse_foreign
from handrail.sessions.lines import Progress, each_line, link
from handrail.sessions.opening import open_to_read
from handrail.sessions.places import Given, Where, located
from handrail.sessions.records import AnyRecord, Footer, Header, Unknown
from handrail.sessions.tails import TornTail, find_tail

SECOND_HEADER = "a second header"


class Reading:
    """A session file as it stood when it was opened to be read; iterating gives the line number (from 1), the offset
    in bytes and the record of each line, and raises `DamagedSession` at one that is no record.

    `last` is the last line, `head` its hash, `end` the byte after it; `torn` says what a crash left after that (it is
    not read), `sealed` whether the file has its footer.
    """

    def __init__(self, path: Where, progress: Progress | None = None) -> None:
        self.path = path
        self.progress = progress
        with open_to_read(path) as file:
            refuse_endless(path, file)
            tail = find_tail(file)
            if not tail.end:
                refuse_foreign(path, file)
                raise NotASession(path, "nothing" if tail.torn is None else "a header that was not written to its end")
            self.header: Header = read_header(path, file)
        self.end = tail.end
        self.last = tail.last
        self.head = link(tail.last)
        self.torn: TornTail | None = tail.torn
        self.sealed = tail.last.startswith(b'{"prev":"') and tail.last[74:91] == b',"kind":"footer",'

    def __iter__(self) -> Iterator[tuple[int, int, AnyRecord]]:
        return ((number, offset, record) for number, offset, _, record in self.lines())

    def lines(self) -> Iterator[tuple[int, int, bytes, AnyRecord]]:
        """Line number, offset, the line itself without its newline, and its record."""
        footer = False
        with open_to_read(self.path, 1 << 16) as file:
            for number, offset, line in each_line(file, self.end, self.progress):
                try:
                    record = decode_sound(line)
                except ValueError as error:
                    raise DamagedSession(self.path, number, str(error)) from None
                if footer:
                    raise DamagedSession(self.path, number, "a record after the footer")
                kind = type(record if type(record) is not Unknown else record.record)
                if kind is Header and number > 1:
                    raise DamagedSession(self.path, number, SECOND_HEADER)
                footer = kind is Footer
                yield number, offset, line, record

    def records(self) -> Iterator[AnyRecord]:
        """The records alone."""
        return (record for _, _, _, record in self.lines())


def read(path: Given, *, progress: Progress | None = None) -> Reading:
    """A session file, or the session at a place, to be read record by record.

    `progress` is called now and then with the bytes read so far. Raises `OSError` for a file that cannot be opened,
    `NotASession`, `UnsupportedVersion`, or `DamagedSession` for a header that is broken; what is torn at the end is
    left out and told in `torn`.

    >>> for number, offset, record in read("run.jsonl"):  # doctest: +SKIP
    ...     print(number, record)
    """
    return Reading(located(path), progress)
