"""What a run writes down as it goes; nothing at all where there is no session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from handrail.filters import History, Message, Seal
from handrail.sessions import Session, ViewRecord
from handrail.sessions.records import AnyRecord


class Log:
    """A session as a run writes it. Records that need not stand on their own are staged, and go with the next write."""

    __slots__ = ("_descriptors", "_known", "_met", "_staged", "on", "session", "stage")

    def __init__(
        self, session: Session | None, descriptors: Mapping[int, tuple[Seal, dict[str, Any]]] | None = None
    ) -> None:
        self.session = session
        self.on = session is not None
        self._staged: list[AnyRecord] = []
        self.stage: Callable[[AnyRecord], None] = self._staged.append if self.on else _nothing
        """Keeps a record for the next write."""
        self._met: set[str] = set()
        self._known = descriptors or {}
        self._descriptors: dict[int, tuple[Seal, dict[str, Any]]] = {}

    def first_met(self, agent: str) -> bool:
        """Whether this is the first time that the run meets the agent."""
        met = agent in self._met
        self._met.add(agent)
        return not met

    def descriptor(self, filter: Seal) -> dict[str, Any]:
        """The filter's descriptor: that of an agent's edge is known, another is worked out once a run."""
        known = self._known.get(id(filter)) or self._descriptors.get(id(filter))
        if known is None:
            known = self._descriptors[id(filter)] = filter, filter.descriptor
        return known[1]

    def sync(self) -> None:
        """Syncs what was written, as the session's policy says for the end of a turn; what is staged waits."""
        if self.session is not None:
            self.session.turn_end()

    def write(self, *records: AnyRecord) -> None:
        """Writes what was staged and these, as one batch: a killed process loses nothing of it."""
        session, staged = self.session, self._staged
        if session is None:
            return
        if staged:
            staged.extend(records)
            try:
                session.append(*staged)
            finally:
                staged.clear()
        elif records:
            session.append(*records)

    def before_effect(self) -> None:
        """Syncs what was written, as the session's policy says, before something happens in the world."""
        if self.session is not None:
            self.session.before_effect()

    def end_turn(self) -> None:
        """Writes what is staged and syncs it, as the session's policy says."""
        if self.session is not None:
            self.write()
            self.session.turn_end()

    def edit(self, path: str, before: History, after: History, reason: str) -> None:
        """Writes what became of a view other than by messages and seeds."""
        if self.session is not None:
            self.write(view_edit(path, before, after, reason))


def _nothing(record: AnyRecord) -> None:
    pass


NO_LOG = Log(None)
"""What a run without a session writes to: nothing is kept of it, so one serves all."""


def view_edit(path: str, before: Sequence[Message], after: Sequence[Message], reason: str) -> ViewRecord:
    """The record that leads from one state of a view to another. A message that changed its place is removed there and
    inserted here."""
    places = {message.id: place for place, message in enumerate(before)}
    inserted: list[tuple[str, Message]] = []
    replaced: list[Message] = []
    stayed: set[str] = set()
    reached, previous = -1, ""
    for message in after:
        place = places.get(message.id, -1)
        if place <= reached:
            inserted.append((previous, message))
        else:
            reached = place
            stayed.add(message.id)
            if before[place] is not message and before[place] != message:
                replaced.append(message)
        previous = message.id
    return ViewRecord(
        path=path,
        removed=tuple([message.id for message in before if message.id not in stayed]),
        replaced=tuple(replaced),
        inserted=tuple(inserted),
        reason=reason,
    )
