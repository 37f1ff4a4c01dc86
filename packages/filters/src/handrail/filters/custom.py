"""Filters that the application writes as plain functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import FilterNotRunnable, InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, constructor_name, filter_kind

FilterFunction: TypeAlias = Callable[..., Messages]
_Function = TypeVar("_Function", bound=FilterFunction)
_functions: dict[tuple[str, int], FilterFunction] = {}


def custom_filter(name: str, *, version: int = 1) -> Callable[[_Function], _Function]:
    """Registers a function under a name, so that `custom(name)` finds it and a descriptor can be rebuilt.

    Raises `ValueError` where another function has the name and version.
    """

    def register(fn: _Function) -> _Function:
        other = _functions.get((name, version))
        if other is not None and _place(other) != _place(fn):
            raise ValueError(f"the custom filter {name!r} version {version} is already {_place(other)}")
        _functions[name, version] = fn
        return fn

    return register


def _place(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', type(fn).__name__)}"


@filter_kind("custom")
class Custom(Filter, frozen=True):
    """The caller's function. `name` is empty for an anonymous one, whose result can only be taken from a record."""

    name: str = ""
    revision: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    alone: bool = False
    fn: FilterFunction | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "params", _as_json(self.params))
        if self.fn is None and self.name:
            msgspec.structs.force_setattr(self, "fn", _functions.get((self.name, self.revision)))

    def __call__(self, history: Messages) -> Messages:
        if self.fn is None:
            what = f"the custom filter {self.name!r} version {self.revision}" if self.name else "an anonymous function"
            known = sorted(f"{name}@{version}" for name, version in _functions)
            raise FilterNotRunnable(self.descriptor, f"{what} is not registered", known)
        return self.fn(history, **(_as_json(self.params) if self.params else {}))

    @property
    def per_message(self) -> bool:
        """As the caller said."""
        return self.alone

    def reason(self, message: Message) -> str:
        """Names the function; what it had in mind is its own."""
        return f"the filter {self.name!r} says so" if self.name else "a filter without a name says so"

    @property
    def descriptor(self) -> dict[str, Any]:
        """Everything but the function itself."""
        params = {"name": self.name, "revision": self.revision, "params": _as_json(self.params), "alone": self.alone}
        return {"kind": self.kind, "version": self.version, "params": params}

    def __repr__(self) -> str:
        return f"custom({self.name!r})" if self.name else "custom(an anonymous function)"


def _as_json(params: Any) -> dict[str, Any]:
    import json

    try:
        copied: Any = json.loads(json.dumps(params))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFilter(f"the params of a custom filter are JSON: {error}") from error
    if not isinstance(copied, dict):
        raise InvalidFilter(f"the params of a custom filter are an object, not {params!r}")
    return dict(copied)


@constructor
def custom(
    fn: FilterFunction | str,
    *,
    name: str = "",
    version: int = 1,
    params: dict[str, Any] | None = None,
    per_message: bool = False,
) -> Custom:
    """The caller's function as a filter: it is called with the messages (and `params`) and returns messages.

    Give a registered name in its place to have that function; a registered function is known by its name. `version`
    is the function's own; `params` are JSON and stand in the descriptor; `per_message=True` says that each message is
    judged alone, so that a handoff's notes pass it too. A filter that is only code (a lambda) has no name, so its
    descriptor loads but does not run. Raises `InvalidFilter` for what cannot be a filter, also where `name` and
    `version` belong to another function.

    >>> from handrail.filters import user
    >>> [message.text for message in custom(lambda history: history[-1:])((user("a"), user("b")))]
    ['b']
    """
    if isinstance(fn, str):
        return Custom(fn, version, params or {}, per_message)
    if inspect.iscoroutinefunction(fn) or not callable(fn):
        hint = "; what has to be awaited is a resolver: dynamic(fn)" if callable(fn) else ""
        raise InvalidFilter(f"a custom filter is a plain function of messages, not {fn!r}{hint}")
    if maker := constructor_name(fn):
        raise InvalidFilter(f"{maker} makes a filter and is none itself; call it, as {maker}(…)")
    if not name:
        name, version = next((key for key, known in _functions.items() if known is fn), ("", version))
    if name and _functions.get((name, version), fn) is not fn:
        raise InvalidFilter(f"the name {name!r} version {version} belongs to {_place(_functions[name, version])}")
    return Custom(name, version, params or {}, per_message, fn)


def as_filter(value: Any) -> Filter:
    """A filter from what a caller passed: a filter as it is, a plain function as `custom`. Raises `InvalidFilter`."""
    if isinstance(value, Filter):
        return value
    if callable(value) and not isinstance(value, type):
        return custom(value)
    raise InvalidFilter(f"a filter is a value such as last_n(10), or a function of messages, not {value!r}")
