"""Filter kinds by name and version, and filters rebuilt from their descriptors.

Other packages register kinds through the entry point group `handrail.filters`; it is read when a kind is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, TypeVar, get_type_hints

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import FilterNotRunnable, InvalidDescriptor
from handrail.filters.messages import Messages

_Kind = TypeVar("_Kind", bound=type[Filter])
_Constructor = TypeVar("_Constructor", bound=Callable[..., Filter])
_kinds: dict[tuple[str, int], type[Filter]] = {}
_constructors: dict[str, Callable[..., Filter]] = {}


def filter_kind(kind: str, *, version: int = 1) -> Callable[[_Kind], _Kind]:
    """Registers a `Filter` class as this kind and version. The pair is a promise: a change of behaviour is a new
    version, and old versions stay runnable. Raises `ValueError` where another class has the pair."""

    def register(cls: _Kind) -> _Kind:
        other = _kinds.get((kind, version))
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"{kind!r} version {version} is already {other.__module__}.{other.__qualname__}")
        cls.kind, cls.version = kind, version
        _kinds[kind, version] = cls
        return cls

    return register


def constructor(make: _Constructor, name: str = "") -> _Constructor:
    """Registers what makes a filter, so that expressions may call it: by its own name, or the one given.

    Raises `ValueError` where something else has the name.
    """
    name = name or make.__name__
    other = _constructors.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (make.__module__, make.__qualname__):
        raise ValueError(f"{name!r} is already {other.__module__}.{other.__qualname__}")
    _constructors[name] = make
    return make


def constructors() -> dict[str, Callable[..., Filter]]:
    """What expressions may call, by name."""
    return dict(_constructors)


def constructor_name(make: object) -> str:
    """The name under which something makes filters; empty where it makes none."""
    return next((name for name, known in _constructors.items() if known is make), "")


def registered() -> dict[tuple[str, int], type[Filter]]:
    """Every registered kind, by name and version."""
    return dict(_kinds)


def known_kinds() -> Sequence[str]:
    """The registered kinds as `kind@version`, sorted."""
    return sorted(f"{kind}@{version}" for kind, version in _kinds)


class UnknownKind(Filter, frozen=True):
    """A filter whose kind or version is not registered here. It prints and round-trips; running it raises."""

    kind: ClassVar[str] = "unknown"
    written: str
    """The descriptor as JSON text."""

    def __call__(self, history: Messages) -> Messages:
        descriptor = self.descriptor
        missing = f"{descriptor.get('kind')!r} version {descriptor.get('version')!r} is not registered"
        raise FilterNotRunnable(descriptor, missing, known_kinds())

    @property
    def descriptor(self) -> dict[str, Any]:
        """The descriptor as it was read."""
        import json

        read: dict[str, Any] = json.loads(self.written)
        return read

    def __repr__(self) -> str:
        return f"unknown({self.written})"


def from_descriptor(descriptor: Mapping[str, Any] | str | bytes) -> Filter:
    """The filter that a descriptor (a mapping, or its JSON) describes, equal to the one that was described.

    An unknown kind or version gives a filter that prints and round-trips, and raises `FilterNotRunnable` when run.
    Raises `InvalidDescriptor` where the shape is wrong, a parameter has no field, or a value does not fit its type.

    >>> from_descriptor('{"kind": "last-n", "params": {"n": 3}}')
    last_n(n=3, keep_user=False)
    """
    try:
        return _rebuilt(_read(descriptor) if isinstance(descriptor, str | bytes) else descriptor)
    except RecursionError as error:
        raise InvalidDescriptor(descriptor, "it is nested too deep") from error


def _rebuilt(descriptor: Mapping[str, Any]) -> Filter:
    kind, version = _checked(descriptor)
    cls = _kinds.get((kind, version)) or _from_entry_points(kind, version)
    if cls is None:
        return _unknown(descriptor)
    return _build(cls, descriptor, [_rebuilt(step) for step in descriptor.get("steps", ())])


def _unknown(descriptor: Mapping[str, Any]) -> UnknownKind:
    import json

    try:
        return UnknownKind(json.dumps(descriptor, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError) as error:
        raise InvalidDescriptor(descriptor, f"it is not JSON ({error})") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return read


def _read(text: str | bytes) -> Mapping[str, Any]:
    import json

    try:
        read: Mapping[str, Any] = json.loads(text, object_pairs_hook=_once)
    except ValueError as error:
        raise InvalidDescriptor(text, f"it is not JSON ({error}); parse reads expressions, as last_n(3)") from error
    return read


def _checked(descriptor: Mapping[str, Any]) -> tuple[str, int]:
    if not isinstance(descriptor, Mapping):
        raise InvalidDescriptor(descriptor, f"it is not an object but {type(descriptor).__name__}")
    kind, version = descriptor.get("kind"), descriptor.get("version", 1)
    if not isinstance(kind, str) or not kind:
        raise InvalidDescriptor(descriptor, f"its kind is not a name but {kind!r}")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidDescriptor(descriptor, f"its version is not a whole number but {version!r}")
    params, steps = descriptor.get("params", {}), descriptor.get("steps", [])
    if not isinstance(params, Mapping) or not isinstance(steps, Sequence) or isinstance(steps, str):
        raise InvalidDescriptor(descriptor, "its params are an object and its steps a list, or left out")
    return kind, version


def _build(cls: type[Filter], descriptor: Mapping[str, Any], steps: list[Filter]) -> Filter:
    types = _types(cls)
    fields: dict[str, Any] = {}
    params = dict(descriptor.get("params", {}))
    for name in cls.__struct_fields__:
        if types[name] == tuple[Filter, ...]:
            fields[name], steps = tuple(steps), []
        elif types[name] is Filter:
            if not steps:
                raise InvalidDescriptor(descriptor, f"the step for {name!r} is missing")
            fields[name] = steps.pop(0)
        elif name in params:
            fields[name] = _convert(descriptor, name, params.pop(name), types[name])
    if params or steps:
        extra = ", ".join(params) or f"{len(steps)} steps more than it has fields"
        possible = ", ".join(cls.__struct_fields__) or "none"
        raise InvalidDescriptor(descriptor, f"it has no field for {extra}; possible: {possible}")
    try:
        return cls(**fields)
    except (TypeError, ValueError) as error:
        raise InvalidDescriptor(descriptor, str(error)) from error


@cache
def _types(cls: type[Filter]) -> dict[str, Any]:
    return get_type_hints(cls)


def _convert(descriptor: Mapping[str, Any], name: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidDescriptor(descriptor, f"{name}: {error}") from error


def parse(expression: str) -> Filter:
    """The filter that an expression describes: one step alone, several as a `compose`.

    Names are those of the functions that make filters, and nothing else can be called. Raises `InvalidExpression`
    with the column of the mistake.

    >>> parse("last_n(3)")
    last_n(n=3, keep_user=False)
    >>> parse("last_user | strip_tool_calls")
    compose(last_user(), strip_tool_calls(), strip_reasoning())
    """
    from handrail.filters.expressions import read_expression

    return read_expression(expression)


def load_entry_points() -> None:
    """Loads what other packages register through the entry point group `handrail.filters`."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="handrail.filters"):
        entry.load()


def _from_entry_points(kind: str, version: int) -> type[Filter] | None:
    load_entry_points()
    return _kinds.get((kind, version))
