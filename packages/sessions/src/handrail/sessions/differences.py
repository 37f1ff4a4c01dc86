"""What differs between two sessions, as a value: aligned messages agent by agent, and everything else side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import msgspec

from handrail.filters.messages import Message

if TYPE_CHECKING:
    from handrail.sessions.places import Given
    from handrail.sessions.session import Session

What: TypeAlias = Literal["same", "changed", "removed", "added"]
"""Of two things that stand for each other whether they mean the same; `removed` is in the first alone, `added` in the
second alone."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """One field that differs: where it is (`content[0].arguments.invoice`), and its JSON value on either side; a side
    that has no such field has no value (`msgspec.UNSET`, left out of the JSON)."""

    field: str
    a: Any = msgspec.UNSET
    b: Any = msgspec.UNSET


class Side(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A message where it was said: its line in the file (from 1; of a foreign transcript the number of the message, of
    a seed 0), which model said it and why it ended. `answers` is the place of the call that a result answers, in the
    last response (from 0); `request` is what of its model call was not as the agent's record has it; `aside` and
    `rejects` are as in its record."""

    message: Message
    line: int = 0
    model: str = ""
    finish_reason: str = ""
    answers: int | None = None
    request: dict[str, Any] = {}
    aside: bool = False
    rejects: bool = False


class Row(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """One row of a lane: the message on either side, and the fields that differ where it is `changed`."""

    what: What
    a: Side | None = None
    b: Side | None = None
    changes: tuple[Change, ...] = ()


class Pair(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Two things that are no messages, as JSON objects, with the lines they begin at (from 1; 0 for none), and the
    fields that differ where they are `changed`."""

    what: What
    a: dict[str, Any] | None = None
    b: dict[str, Any] | None = None
    a_line: int = 0
    b_line: int = 0
    changes: tuple[Change, ...] = ()


class Crossing(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A handoff or a sub-agent's call on either side, and its seeds, aligned; no seeds where both are the same."""

    kind: Literal["handoff", "subagent"]
    pair: Pair
    seed: tuple[Row, ...] = ()


class Lane(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """All that one agent did at one place: its path on either side (the same agent in the same sub-agent call, whatever
    that call's id is; None where it is on one side alone), what was said (`rows`, in order, each message once), the
    calls it made, its turns, and edits of its view."""

    agent: str
    a: str | None = None
    b: str | None = None
    rows: tuple[Row, ...] = ()
    calls: tuple[Pair, ...] = ()
    turns: tuple[Pair, ...] = ()
    edits: tuple[Pair, ...] = ()

    @property
    def same(self) -> bool:
        """Whether nothing differs in it."""
        pairs = (*self.calls, *self.turns, *self.edits)
        return all([row.what == "same" for row in self.rows]) and all([pair.what == "same" for pair in pairs])


class Difference(msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What differs between two sessions by meaning. `a` and `b` name them; `text()` (as `str()`) is for a person.

    `lanes` and `crossings` hold everything of both sides, what is the same included, in the order of the first with
    what the second alone has between it. `agents` are those that took part, by name. `ends` says how both ended: the
    active agent, the shared state and the states of middleware that live on, which models answered how often, what was
    used, and records of kinds that are not known here.
    """

    a: str
    b: str
    lanes: tuple[Lane, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    agents: tuple[Pair, ...] = ()
    ends: Pair = Pair("same")

    @property
    def same(self) -> bool:
        """Whether both mean the same."""
        pairs = (*[each.pair for each in self.crossings], *self.agents, self.ends)
        return all([lane.same for lane in self.lanes]) and all([pair.what == "same" for pair in pairs])

    def only_differing(self) -> Difference:
        """The same difference without what is the same on both sides."""
        lanes = [
            msgspec.structs.replace(
                lane,
                rows=_differing(lane.rows),
                calls=_differing(lane.calls),
                turns=_differing(lane.turns),
                edits=_differing(lane.edits),
            )
            for lane in self.lanes
            if not lane.same
        ]
        crossings = [
            msgspec.structs.replace(each, seed=_differing(each.seed))
            for each in self.crossings
            if each.pair.what != "same"
        ]
        return msgspec.structs.replace(
            self,
            lanes=tuple(lanes),
            crossings=tuple(crossings),
            agents=_differing(self.agents),
            ends=self.ends if self.ends.what != "same" else Pair("same"),
        )

    def lines(self) -> Iterator[str]:
        """The difference as lines for a person: `-` the first alone, `+` the second alone, `~` what changed."""
        from handrail.sessions.difference_lines import lines

        return lines(self)

    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines())

    def __str__(self) -> str:
        return self.text()


def diff(a: Given | Session, b: Given | Session, *, agent: str = "assistant") -> Difference:
    """What differs between two sessions by meaning: ids, times, hashes and places in the file do not count.

    A file may also hold one foreign transcript, in which `agent` is the name of whoever answers. Raises what reading a
    session raises, or `FormatError` for a file that is neither, or that holds several transcripts.
    """
    from handrail.sessions.comparing import compared

    return compared(a, b, agent)


_Compared = TypeVar("_Compared", Row, Pair)


def _differing(rows: tuple[_Compared, ...]) -> tuple[_Compared, ...]:
    return tuple([row for row in rows if row.what != "same"])
