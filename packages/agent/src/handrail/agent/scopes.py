"""Where views live: in the session, or within one call of a sub-agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handrail.agent.kernel.states import Channels
from handrail.agent.telling import Emit, Forward, forwarded
from handrail.filters import IdSource, View
from handrail.sessions import Usage
from handrail.sessions.paths import scope_mark, top_path

NO_CHANNELS = Channels()
"""What a scope begins with. Whoever writes a channel puts a copy into its place, so one serves all."""
NO_USAGE = Usage()


class Scope:
    """The views of the agents of one level, by agent path, with what holds for all of them: where their ids come from,
    who hears them, what they cost, each one's deps, whether they may only read, their shared state (`channels`) and the
    private states that live on (`privates`, by agent path and layer).

    The outermost scope's views belong to the session; those of a sub-agent's call end with it.
    """

    __slots__ = (
        "_given",
        "after",
        "before",
        "channels",
        "deps",
        "depth",
        "emit",
        "first",
        "ids",
        "outer",
        "privates",
        "read_only",
        "run_id",
        "usage",
        "views",
        "waiting",
        "waiting_names",
    )

    def __init__(self, ids: IdSource, run_id: str, views: dict[str, View], emit: Emit | None, deps: Any) -> None:
        self.ids = ids
        self.run_id = run_id
        self.views = views
        self.emit = emit
        self.before = self.after = ""
        self.outer: Scope | None = None
        self.channels = NO_CHANNELS
        self.privates: dict[tuple[str, str], dict[str, Any]] | None = None
        self.depth = 0
        self.usage = NO_USAGE
        self.read_only = False
        self.deps = deps
        self.first = ""
        self._given: dict[str, Any] | None = None
        # Tuples where a list would mostly stay empty: a thousand runs at once are that much lighter.
        self.waiting: tuple[str, ...] = ()
        self.waiting_names: tuple[str, ...] = ()

    def path(self, agent: str) -> str:
        """An agent's path in this scope."""
        path = top_path(agent)
        return path if self.outer is None else f"{self.before}{path}{self.after}"

    def within(self, path: str, call_id: str, deps: Any, *, forward: Forward, read_only: bool, part: int = 0) -> Scope:
        """The scope of a sub-agent's call that the agent at `path` makes, or of that part of it."""
        ids = self.ids.branch(f"{call_id}\0{part}" if part else call_id)
        scope = Scope(ids, ids.next(), {}, forwarded(self.emit, forward), deps)
        scope.before, scope.after = f"{path}/", scope_mark(call_id, part)
        scope.outer, scope.depth = self, self.depth + 1
        scope.read_only = self.read_only or read_only
        return scope

    def deps_of(self, path: str) -> Any:
        """The deps of the agent at this path: its own, or those the scope began with."""
        return self.deps if self._given is None else self._given.get(path, self.deps)

    @property
    def given(self) -> dict[str, Any]:
        """Deps by agent path, where somebody gave an agent its own; the scope's `first` agent has those of the scope.
        Made when a boundary is crossed: most runs cross none."""
        if self._given is None:
            self._given = {self.first: self.deps} if self.first else {}
        return self._given

    def spend(self, usage: Usage) -> None:
        """Adds what a model call cost to this scope and those around it."""
        scope: Scope | None = self
        while scope is not None and scope.outer is not None:
            scope.usage += usage
            scope = scope.outer


class UnheldIds(IdSource):
    """An application's ids, without those that a conversation holds already."""

    __slots__ = ("_source", "_views")

    def __init__(self, source: IdSource, views: Sequence[View]) -> None:
        super().__init__(source.prefix)
        self._source = source
        self._views = views

    def next(self) -> str:
        """The source's next id that no view holds."""
        made = self._source.next()
        while any([view.held(made) for view in self._views]):
            made = self._source.next()
        return made

    def branch(self, name: str) -> IdSource:
        """The source's own branch, as careful: a source that is given again branches as it did before."""
        return UnheldIds(self._source.branch(name), self._views)
