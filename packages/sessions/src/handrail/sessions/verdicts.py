"""The check of a session, and what it can find."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from handrail.sessions.lines import Progress
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.places import Given, Where
from handrail.sessions.tails import TornTail
from handrail.sessions.tally import KINDS

State: TypeAlias = Literal["intact", "torn", "damaged", "tampered", "drifted", "not runnable", "not decrypted"]


class Drift(msgspec.Struct, frozen=True):
    """One difference between a recorded boundary and the same boundary run again.

    `handoff` counts the boundaries of the session from 1, `line` is that of its record, `step` the step of the run.
    `what` says what differs: the source's `view`, the `seed`, or the `record` itself, whose parts do not fit each
    other or those around them. For a seed, `message` is the id of the first message that differs, and `field` which
    field of it. `handoff` is 0 where a boundary is missing.
    """

    handoff: int
    line: int
    source: str
    target: str
    step: int
    what: Literal["view", "seed", "record"]
    message: str = ""
    field: str = ""
    problem: str = ""

    def __str__(self) -> str:
        which = f"handoff {self.handoff} ({self.source} -> {self.target}), step {self.step}"
        where = f"{which if self.handoff else f'a missing handoff of {self.source}'}, line {self.line}"
        what = f", message {self.message}" + (f", {self.field}" if self.field else "") if self.message else ""
        return f"{where}: the {self.what}{what}: {self.problem}"


class NotRunnable(msgspec.Struct, frozen=True):
    """A boundary whose filter cannot run here; that its record fits itself was checked."""

    handoff: int
    line: int
    source: str
    target: str
    missing: str

    def __str__(self) -> str:
        return f"handoff {self.handoff} ({self.source} -> {self.target}), line {self.line}: {self.missing}"


_LOCKED = "its lines are intact; what is in them was not checked, as no passphrase was given"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of a session found.

    `state` is the worst of it: `damaged` (`line` is no record), `tampered` (`line` was changed, or lines around it are
    missing), `drifted` (see `drifts`), `not runnable` (see `not_runnable`), `not decrypted` (its lines are intact, and
    what is in them was not looked at for want of the passphrase), `torn` (a crash left a torn end; the rest is whole),
    or `intact`. `sealed` says whether the file has its footer, `handoffs` how many boundaries were checked, `run_again`
    how many of their filters ran again, `edited` how many seeds a hook had changed, `counts` the records by kind (up to
    a broken line), those of kinds that are not known here (`unknown`) too. `encrypted` says that the file is encrypted,
    `decrypted` that its records were looked into. `head` is the hash of the last line, and empty where the chain of
    lines is broken: kept elsewhere, it tells later whether the file still ends where it ended.
    """

    path: Where
    state: State
    sealed: bool
    counts: dict[str, int]
    head: str = ""
    handoffs: int = 0
    run_again: int = 0
    edited: int = 0
    line: int | None = None
    problem: str = ""
    torn: TornTail | None = None
    drifts: tuple[Drift, ...] = ()
    not_runnable: tuple[NotRunnable, ...] = ()
    encrypted: bool = False
    decrypted: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the session: intact, or torn by a crash at its end."""
        return self.state in ("intact", "torn")

    @property
    def unknown(self) -> dict[str, int]:
        """How many records there are of each kind that is not known here: nothing is known of what they do."""
        return {kind: count for kind, count in self.counts.items() if kind not in KINDS}

    @property
    def boundaries(self) -> str:
        """How many boundaries were run again, in words; empty where there was none to run."""
        if not self.handoffs:
            return ""
        of = "" if self.run_again == self.handoffs else f" of {self.handoffs}"
        many = "boundary" if self.handoffs == 1 else "boundaries"
        missing = f", {len(self.not_runnable)} not runnable" if self.not_runnable else ""
        edited = f", {self.edited} changed by a hook" if self.edited else ""
        return f"{self.run_again}{of} {many} run again{missing}{edited}"

    def __str__(self) -> str:
        seal = "sealed" if self.sealed else "not sealed"
        if self.encrypted:
            seal += ", encrypted" if self.decrypted else ", encrypted (nothing was decrypted)"
        where = f" at line {self.line}" if self.line is not None else ""
        why = self.problem or (str(self.torn) if self.state == "torn" else "")
        why = why or (_LOCKED if self.state == "not decrypted" else "")
        lines = [f"{self.state}{where}, {seal}" + (f": {why}" if why else "")]
        end = [f"torn at its end: {self.torn}"] if self.torn is not None and self.state != "torn" else []
        kinds = ", ".join([f"{kind} {count}" for kind, count in self.unknown.items()])
        unknown = [f"records of kinds that are not known here: {kinds}"] if kinds else []
        return "\n  ".join([*lines, *map(str, self.drifts), *map(str, self.not_runnable), *unknown, *end])


def verify(
    path: Given,
    *,
    progress: Progress | None = None,
    integrity_only: bool = False,
    passphrase: Secret = None,
) -> Verdict:
    """Checks every line's link to the one before, the footer, and every handoff and sub-agent by running its filter
    again on the view that its source had.

    Integrity takes constant memory; the views, which `integrity_only=True` leaves out, some tens of bytes a message.
    `progress` is called now and then with the bytes read so far. Of an encrypted session without its passphrase only
    the lines are checked, and the verdict says so. Raises `OSError` for a file that cannot be opened or read,
    `NotASession`, `UnsupportedVersion`, or `EncryptionError` for a passphrase that is another or not needed; what is
    wrong with a session is told in the verdict.
    """
    from handrail.sessions.replay import verified

    passphrase = hidden(passphrase)
    return verified(path, progress, passphrase, integrity_only=integrity_only)
