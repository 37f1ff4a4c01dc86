"""The shared state: channels that agents and middleware declare, read as a snapshot and written at a barrier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from handrail.agent.errors import BuildError, StateConflict, StateError, UnknownChannel
from handrail.agent.kernel.privates import PrivateState, Reducer
from handrail.filters import History

if TYPE_CHECKING:
    from handrail.agent.ended import EndedTurn
    from handrail.agent.turns import TurnState

Conflict: TypeAlias = Literal["error", "last", "first"]
MESSAGES = "messages"


class Channel(msgspec.Struct, frozen=True):
    """How a channel is written. Give it in an annotation: `Annotated[list[str], channel(operator.add)]`.

    `reducer` folds a write into what stands; without one the write takes its place, and `conflict` says what two calls
    of one response that both write it mean: an error, or that the last or first in call order counts. A `private`
    channel never leaves the run: it is neither in its result nor in the session.
    """

    reducer: Reducer | None = None
    conflict: Conflict = "error"
    private: bool = False


def channel(reducer: Reducer | None = None, *, conflict: Conflict = "error", private: bool = False) -> Channel:
    """How a channel is written; see `Channel`. Raises `BuildError`."""
    if reducer is not None and not callable(reducer):
        raise BuildError(f"the reducer of a channel is a function, not {reducer!r}")
    if conflict not in get_args(Conflict):
        raise BuildError(f"conflict is one of {', '.join(get_args(Conflict))}, not {conflict!r}")
    return Channel(reducer, conflict, private)


class Declared(msgspec.Struct, frozen=True):
    """A channel as somebody (`owner`) declared it. `schema` and `annotation` say whether two declarations are one."""

    name: str
    owner: str
    schema: Any
    how: Channel
    check: Callable[[Any], Any]
    """The value as its type has it. Raises pydantic's `ValidationError`."""
    default: Callable[[], Any] | None = None


def declared(schema: Any, owner: str) -> dict[str, Declared]:
    """The channels that a TypedDict or a pydantic model declares. Raises `BuildError`."""
    from pydantic import BaseModel, TypeAdapter
    from pydantic.errors import PydanticUserError
    from typing_extensions import get_type_hints, is_typeddict

    if schema is None:
        return {}
    is_model = isinstance(schema, type) and issubclass(schema, BaseModel)
    if not is_model and not is_typeddict(schema):
        raise BuildError(f"the channels of {owner} are a TypedDict or a pydantic model, not {schema!r}")
    channels: dict[str, Declared] = {}
    try:
        hints = get_type_hints(schema, include_extras=True)
        for name, hint in hints.items():
            if is_model and name not in schema.model_fields:
                continue
            if name == MESSAGES:
                raise BuildError(f"{owner} declares a channel 'messages', which every agent has: its view")
            default = None
            if is_model and not schema.model_fields[name].is_required():
                default = _default_of(schema.model_fields[name])
            check = TypeAdapter(_bare(hint)).validate_python
            channels[name] = Declared(name, owner, schema, _how(hint, f"{owner}: {name!r}"), check, default)
    except (NameError, PydanticUserError) as error:
        raise BuildError(f"the channels of {owner} cannot be read: {error}") from error
    return channels


def _default_of(field: Any) -> Callable[[], Any]:
    return lambda: field.get_default(call_default_factory=True)


def _bare(hint: Any) -> Any:
    # Required[…] and NotRequired[…] say something of the dict, not of the value.
    from typing import NotRequired, Required

    return _bare(get_args(hint)[0]) if get_origin(hint) in (NotRequired, Required) else hint


def _how(hint: Any, where: str) -> Channel:
    bare = _bare(hint)
    marks = getattr(bare, "__metadata__", ())
    found = [mark for mark in marks if isinstance(mark, Channel)]
    plain = [mark for mark in marks if callable(mark) and not isinstance(mark, type | Channel)]
    if len(found) + len(plain) > 1:
        raise BuildError(f"{where} has two reducers; a channel has one")
    return found[0] if found else Channel(plain[0]) if plain else Channel()


def together(channels: Sequence[Mapping[str, Declared]]) -> dict[str, Declared]:
    """All channels by name. Raises `BuildError` where two declare one name and mean different channels."""
    found: dict[str, Declared] = {}
    for declarations in channels:
        for name, each in declarations.items():
            known = found.setdefault(name, each)
            if known.schema is not each.schema:
                raise BuildError(
                    f"the channel {name!r} is declared by both {known.owner} and {each.owner}; "
                    "let them share one schema, or give one of them another name"
                )
    return found


class State(Mapping[str, Any]):
    """The state as a hook or a tool may read it: `messages`, the agent's view, and the shared channels by name.

    It is read-only, and what it gives of a channel is a copy: hooks return what they write, tools give it as `writes`.
    In a state hook `private` is the middleware's own memory.
    """

    __slots__ = ("_layer", "_turn")

    def __init__(self, turn: TurnState | EndedTurn, layer: int = -1) -> None:
        self._turn = turn
        self._layer = layer

    @property
    def messages(self) -> History:
        """The agent's view as it stands."""
        return self._turn.history

    @property
    def private(self) -> PrivateState:
        """The middleware's own memory; a `TypeError` for one that declares none by defining `init_state()`."""
        context = self._turn.context
        return context.states.get(self._layer) or context.private_state(self._layer)

    def __getitem__(self, name: str) -> Any:
        if name == MESSAGES:
            return self._turn.history
        known = self._turn.bound.channels
        if name not in known:
            raise UnknownChannel(self._turn.bound.name, name, sorted(known))
        value = self._turn.scope.channels.value(known[name])
        if value is _ABSENT:
            raise KeyError(name)
        return value if type(value) in _IMMUTABLE else _copied(value)

    def __contains__(self, name: object) -> bool:
        known = self._turn.bound.channels.get(name) if isinstance(name, str) else None
        return name == MESSAGES or (known is not None and self._turn.scope.channels.value(known) is not _ABSENT)

    def get(self, name: str, default: Any = None) -> Any:
        """The channel's value, or the default where nothing was written yet. Raises `UnknownChannel`."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        yield MESSAGES
        yield from [name for name in self._turn.bound.channels if name in self]

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"State({', '.join(self)})"


_IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None)})


def _copied(value: Any) -> Any:
    from copy import deepcopy

    return deepcopy(value)


class _Absent:
    pass


_ABSENT: Any = _Absent()


class Channels:
    """The values of one scope's shared state, by channel."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] = {}) -> None:  # it is only read
        self._values: dict[str, Any] = dict(values)

    def value(self, channel: Declared) -> Any:
        """What stands, or the channel's default; a mark of its own where there is neither."""
        if channel.name in self._values:
            return self._values[channel.name]
        return channel.default() if channel.default is not None else _ABSENT

    def write(self, channel: Declared, value: Any, owner: str) -> Any:
        """Folds a write into what stands, and gives the new value.

        Raises `StateError` for a value that cannot be folded in, does not fit the channel's type, or that JSON cannot
        carry.
        """
        standing = self.value(channel)
        if channel.how.reducer is not None and standing is not _ABSENT:
            try:
                value = channel.how.reducer(_copied(standing), value)
            except Exception as error:
                problem = f"cannot take this value: its reducer raised {type(error).__name__}: {error}"
                raise StateError(owner, channel.name, problem) from error
        return self.put(channel, value, owner)

    def put(self, channel: Declared, value: Any, owner: str) -> Any:
        """Puts a value in the place of what stands, and gives it as the channel's type has it. Raises `StateError`."""
        # A copy, so that whoever wrote it cannot change it afterwards.
        checked = self._values[channel.name] = _copied(checked_value(channel, value, owner))
        return checked

    def copied(self) -> Channels:
        """The same values; what is written into the one does not reach the other."""
        return Channels(self._values)

    def public(self, channels: Mapping[str, Declared]) -> dict[str, Any]:
        """The values that leave the run."""
        known = {name: self.value(each) for name, each in channels.items() if not each.how.private}
        return {name: _copied(value) for name, value in known.items() if value is not _ABSENT}


def checked_value(channel: Declared, value: Any, owner: str) -> Any:
    """The value as the channel's type has it. Raises `StateError`."""
    from pydantic import ValidationError

    from handrail.agent.tools import explained

    try:
        checked = channel.check(value)
    except ValidationError as error:
        raise StateError(owner, channel.name, f"cannot take this value: {explained(error)}") from error
    as_json(checked, owner, channel.name)
    return checked


def as_json(value: Any, owner: str, key: str) -> bytes:
    """A state's value as JSON. Raises `StateError` for what JSON cannot carry."""
    import json

    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return json.dumps(to_jsonable_python(value), ensure_ascii=False, allow_nan=False).encode()
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        problem = f"holds what JSON cannot carry ({type(value).__name__}): {error}"
        raise StateError(owner, key, problem) from error


def folded(
    writes: Mapping[str, Mapping[str, Any]], channels: Mapping[str, Declared], owners: Mapping[str, str]
) -> list[tuple[Declared, Any, str]]:
    """The writes of the calls of one response, in call order, as (channel, value, who wrote it).

    Raises `UnknownChannel`, `StateConflict` where two calls write a channel without a reducer or another policy, and
    `StateError` for writes that are none.
    """
    by: dict[str, list[tuple[str, Any]]] = {}
    ordered: list[tuple[Declared, Any, str]] = []
    for call_id, written in writes.items():
        if not isinstance(written, Mapping):
            raise StateError(owners[call_id], "writes", f"are values by channel, not {type(written).__name__}")
        for name, value in written.items():
            if name not in channels:
                raise UnknownChannel(owners[call_id], name, sorted(channels))
            by.setdefault(name, []).append((call_id, value))
            if channels[name].how.reducer is not None:
                ordered.append((channels[name], value, owners[call_id]))
    for name, several in by.items():
        how = channels[name].how
        if how.reducer is not None:
            continue
        if len(several) > 1 and how.conflict == "error":
            raise StateConflict(channels[name].owner, name, [call_id for call_id, _ in several])
        call_id, value = several[0] if how.conflict == "first" else several[-1]
        ordered.append((channels[name], value, owners[call_id]))
    return ordered
