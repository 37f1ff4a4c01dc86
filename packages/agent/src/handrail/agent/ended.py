"""A turn that has ended, as whoever kept its context may still look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from handrail.agent.errors import RunError
from handrail.agent.kernel.states import State
from handrail.filters import History

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.scopes import Scope


class EndedTurn:
    """What is left of a turn: its view and the shared state. A turn and its context know each other; without this the
    two would wait for the collector, and with them all that a run holds.

    Whatever would go on with the turn raises `RunError`.
    """

    __slots__ = ("bound", "emit", "history", "scope")

    def __init__(self, history: History, bound: Bound, scope: Scope) -> None:
        self.history = history
        self.bound = bound
        self.scope = scope
        self.emit = None

    def note(self, name: str, data: Any, call_id: str) -> None:
        """Nothing is written any more."""

    def look(self, place: int) -> State:
        """The state as it stood at the end."""
        return State(self, place)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RunError(f"the turn of {self.bound.name} has ended; its context can be read, and does nothing any more")


def let_go(turn: Any) -> None:
    """Has the context of a turn that has ended, and what was made of it, hold no more than can be read."""
    ended = EndedTurn(turn.history, turn.bound, turn.scope)
    turn.context.turn = ended
    for context in turn.contexts.values():
        context.turn = ended
    turn.looks = {}
    turn.acceptance = None
