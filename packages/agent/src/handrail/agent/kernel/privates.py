"""The private state of a middleware: its own memory, invisible to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from handrail.agent.errors import StateConflict

Reducer: TypeAlias = Callable[[Any, Any], Any]
"""What folds a write into what stands: `reducer(standing, written)`."""


class PrivateState(dict[str, Any]):
    """One middleware's own memory, a dict that JSON can carry. `add` writes a key that has a declared reducer."""

    __slots__ = ("layer", "reducers")

    def __init__(
        self, values: Mapping[str, Any] = {}, layer: str = "", reducers: Mapping[str, Reducer] = {}
    ) -> None:  # it is only read
        dict.__init__(self, values)  # without `super`, which costs as much again
        self.layer = layer
        self.reducers = reducers

    def add(self, key: str, value: Any) -> None:
        """Folds a value into a key by the key's reducer: calls that run side by side may all do so.

        Raises `KeyError` for a key without one.
        """
        self[key] = self._reducer(key)(self[key], value) if key in self else value

    def _reducer(self, key: str) -> Reducer:
        if key not in self.reducers:
            known = ", ".join(self.reducers) or "none"
            raise KeyError(f"{self.layer} declares no reducer for {key!r}; those it declares: {known}")
        return self.reducers[key]


class CallState(PrivateState):
    """The private state as one call of several sees it: as it stood before the first, with this call's own changes."""

    __slots__ = ("_added", "_assigned", "_before")

    def __init__(self, base: PrivateState) -> None:
        import copy

        super().__init__(copy.deepcopy(dict(base)), base.layer, base.reducers)
        self._before = copy.deepcopy(dict(base))
        self._added: list[tuple[str, Any]] = []
        self._assigned: set[str] = set()

    def __setitem__(self, key: str, value: Any) -> None:
        self._assigned.add(key)
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._assigned.add(key)
        super().__delitem__(key)

    def add(self, key: str, value: Any) -> None:
        """Folds a value into a key by the key's reducer, here and, when all calls have ended, in call order there."""
        reducer = self._reducer(key)
        self._added.append((key, value))
        super().__setitem__(key, reducer(self[key], value) if key in self else value)

    def changed(self) -> set[str]:
        """The keys that this call assigned, or changed within, other than by `add`."""
        added = {key for key, _ in self._added}
        within = {key for key in {*self, *self._before} if self.get(key) != self._before.get(key)}
        return (self._assigned | within) - (added - self._assigned)

    @property
    def added(self) -> list[tuple[str, Any]]:
        """What was added, in order."""
        return self._added


def fold(state: PrivateState, calls: Mapping[str, CallState]) -> None:
    """Writes what the calls made of their states into the state, in call order.

    Raises `StateConflict` where two calls assigned one key.
    """
    by: dict[str, str] = {}
    for call_id, own in calls.items():
        for key in own.changed():
            if key in by:
                raise StateConflict(state.layer, key, (by[key], call_id))
            by[key] = call_id
            if key in own:
                state[key] = own[key]
            else:
                state.pop(key, None)
    for own in calls.values():
        taken = own.changed()
        for key, value in own.added:
            if key not in taken:
                state.add(key, value)


class _NoState(PrivateState):
    """What a middleware finds in the place of a private state when it declares none."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("this middleware has no private state; it declares one by defining init_state()")

    __getitem__ = __setitem__ = __delitem__ = __contains__ = __iter__ = __len__ = _refuse
    get = setdefault = pop = update = items = keys = values = add = _refuse


NO_STATE = _NoState()
