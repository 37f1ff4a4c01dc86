"""What crossed in a session: every boundary with what its source held and what its target started from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from handrail.filters.edges import Edge
from handrail.filters.messages import Messages
from handrail.sessions.lines import Progress
from handrail.sessions.passphrases import Secret, hidden
from handrail.sessions.places import Given, located
from handrail.sessions.reader import Reading
from handrail.sessions.records import HandoffRecord, SubagentRecord

NOT_RUN = "not run"
"""What stands in `edited` where a hook kept the seal from running."""

BoundaryRecord: TypeAlias = HandoffRecord | SubagentRecord
Kind: TypeAlias = Literal["handoff", "subagent", "return"]


class Boundary(msgspec.Struct, frozen=True):
    """A boundary that a session holds: its number and line, both from 1, its record, what its source gave, and the
    seed. The answer of a sub-agent, or of a handoff that returns, is a crossing of kind `return`. It is given where its
    source gets it, as a result or as what one of several agents answered, under the number of its boundary, without an
    edge."""

    number: int
    line: int
    kind: Kind
    source: str
    target: str
    record: BoundaryRecord
    edge: Edge | None
    seed: Messages


def crossings(path: Given, *, progress: Progress | None = None, passphrase: Secret = None) -> Iterator[Boundary]:
    """Every boundary of a session file, in order; each line's link and each seed's digest are checked on the way.

    An edge is to be looked at before the next one is asked for. `progress` is called now and then with the bytes read.
    Raises what `read` does, or `DamagedSession` at a line that is no record, was changed, or names what its session
    does not hold; what was given until then crossed.
    """
    from handrail.sessions.boundaries import counted

    passphrase = hidden(passphrase)
    return counted(Reading(located(path), progress, passphrase), {})
