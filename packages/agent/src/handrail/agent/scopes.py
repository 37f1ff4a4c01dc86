"""Where views live: in the session, or within one call of a sub-agent."""

from handrail.agent.names import in_path
from handrail.filters import IdSource, View
from handrail.sessions import Usage


class Scope:
    """The views of the agents of one level, by agent path, and where their ids come from.

    The outermost scope's views belong to the session; those of a sub-agent's call end with it.
    """

    __slots__ = ("after", "before", "depth", "ids", "outer", "usage", "views")

    def __init__(
        self, ids: IdSource, views: dict[str, View], before: str = "", after: str = "", outer: "Scope | None" = None
    ) -> None:
        self.ids = ids
        self.views = views
        self.before = before
        self.after = after
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.usage = Usage()

    def spend(self, usage: Usage) -> None:
        """Adds what a model call cost to this scope and those around it."""
        scope: Scope | None = self
        while scope is not None and scope.outer is not None:
            scope.usage += usage
            scope = scope.outer

    def path(self, agent: str) -> str:
        """An agent's path in this scope."""
        return f"{self.before}{in_path(agent)}{self.after}"

    def within(self, path: str, call_id: str) -> "Scope":
        """The scope of a sub-agent's call that the agent at `path` makes."""
        return Scope(self.ids.branch(call_id), {}, f"{path}/", f"@{in_path(call_id)}", self)
