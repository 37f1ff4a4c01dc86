"""Past sessions held against a policy, one after the other."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from handrail.cli.errors import UnfitInput
from handrail.cli.keys import Keys
from handrail.cli.sources import size_of
from handrail.cli.stores import called, session_at
from handrail.filters import Policy, Violation
from handrail.sessions import Boundary, DamagedSession, NotASession, Reading, SessionError, read
from handrail.sessions.boundaries import counted
from handrail.sessions.lines import Progress
from handrail.sessions.opening import expanded, open_to_read
from handrail.sessions.places import Where

State: TypeAlias = Literal["clean", "crossed", "damaged", "unreadable"]
_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_LINK = re.compile(rb'"prev"\s*:\s*"[0-9a-f]{64}"')
_TORN = re.compile(rb'\{"prev":"[0-9a-f]*\Z')
_BLOCK = 1 << 20
_ACROSS = 128
"""How many bytes of a block are looked at with the next one, as a link may lie across both."""


class Place(msgspec.Struct, frozen=True):
    """A session that is to be audited: its name for people, where it is, and its size in bytes."""

    name: str
    path: Where
    size: int


class Places(msgspec.Struct):
    """The files to audit, their size together in bytes, and how many files of folders are no sessions."""

    sessions: Sequence[Place]
    size: int
    passed_over: int


class Breach(msgspec.Struct, frozen=True):
    """A violation and the crossing it was found in; `number` counts handoffs and sub-agents from 1."""

    session: str
    number: int
    line: int
    step: int
    kind: str
    source: str
    target: str
    violation: Violation


class Audit(msgspec.Struct):
    """What was found in one session."""

    session: str
    state: State = "clean"
    problem: str = ""
    messages: int = 0
    boundaries: int = 0
    breaches: list[Breach] = []

    @property
    def found(self) -> int:
        """How many violations there are."""
        return len(self.breaches)


@contextmanager
def sessions_in(places: Sequence[str]) -> Iterator[Places]:
    """The session files that these files and folders are or hold, folders in order of their names.

    Raises `OSError` for a place that is not there, and `UnfitInput` where there is no session at all.
    """
    with ExitStack() as stack:
        found: list[Place] = []
        passed_over = 0
        for name in places:
            if name == "-" or not os.path.isdir(name):
                where = stack.enter_context(session_at(name))
                found.append(Place(called(name), where, size_of(where)))
                continue
            for path in session_files(name):
                if foreign(path):
                    passed_over += 1
                else:
                    found.append(Place(str(path), path, path.stat().st_size))
        if not found:
            raise UnfitInput(f"{', '.join(places)}: holds no session; sessions are files that end in .jsonl")
        yield Places(found, sum([place.size for place in found]), passed_over)


def session_files(folder: str) -> Iterator[Path]:
    """What may be sessions in a folder and in its folders, in order of their names. Raises `OSError`."""

    def fail(error: OSError) -> None:
        raise error

    for inner, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        yield from [Path(inner, name) for name in sorted(names) if name.endswith(_SUFFIXES)]


def foreign(path: Path) -> bool:
    """Whether a file that was found in a folder is of another kind; one that was a session before it was damaged is
    not."""
    # In a folder other files are to be expected; one that was named is meant to be a session.
    try:
        read(path)
    except NotASession:
        return not _was_session(path)
    except (SessionError, OSError):
        return False
    return False


def _was_session(path: Path) -> bool:
    """Whether it is called a session, or has a line of one, though it has no header to be read by."""
    if ".session.jsonl" in path.name:
        return True
    try:
        with open_to_read(expanded(path)) as file:
            return _has_link(file)
    except (SessionError, OSError):
        return False


def _has_link(file: BinaryIO) -> bool:
    rest = b""
    while block := file.read(_BLOCK):
        if _LINK.search(found := rest + block):
            return True
        rest = found[-_ACROSS:]
    return _TORN.search(rest) is not None


def audit(place: Place, policy: Policy, keys: Keys, progress: Progress | None = None) -> Audit:
    """Everything that crossed in a session, held against the policy. What is wrong with the file itself is told in
    `problem`; what was found before that stands."""
    found = Audit(place.name)
    counts: dict[str, int] = {}
    try:
        for boundary in counted(Reading(place.path, progress, keys.of(place.path, mixed=True)), counts):
            found.boundaries += 1
            found.breaches += _breaches(place.name, policy, boundary)
    except DamagedSession as error:
        found.state, found.problem = "damaged", str(error)
    except (SessionError, OSError) as error:
        found.state, found.problem = "unreadable", str(error)
    found.messages = counts.get("messages", 0)
    if found.breaches and found.state == "clean":
        found.state = "crossed"
    return found


def _breaches(name: str, policy: Policy, boundary: Boundary) -> list[Breach]:
    record, edge = boundary.record, boundary.edge
    at = name, boundary.number, boundary.line, record.step, boundary.kind, boundary.source, boundary.target
    violations = policy.check(
        source=boundary.source,
        target=boundary.target,
        kind=boundary.kind,
        filter=record.filter if edge is not None else getattr(record, "returns", {}),
        seed=boundary.seed,
        before=edge if edge is not None else (),
        edited=edge is not None and record.edited is not None,
    )
    return [Breach(*at, violation) for violation in violations]
