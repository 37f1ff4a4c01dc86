"""The shared and the private state of a run: what is written when, and what goes into the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from handrail.agent.contexts import RunContext
from handrail.agent.errors import MissingDeps, StateError, UnknownChannel
from handrail.agent.kernel.middlewares import layer_name
from handrail.agent.kernel.privates import CallState, PrivateState, fold
from handrail.agent.kernel.states import Channels, Declared, as_json, checked_value, folded
from handrail.agent.subagents import AgentTool
from handrail.filters import ToolCall
from handrail.sessions import StateRecord

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.graphs import Graph
    from handrail.agent.runs import Run
    from handrail.agent.scopes import Scope
    from handrail.agent.turns import TurnState


def write(turn: TurnState, values: Mapping[str, Any], owner: str) -> None:
    """Writes channels. Raises `UnknownChannel`, or `StateError` for a value that a channel cannot take."""
    channels = turn.bound.channels
    for name in values:
        if name not in channels:
            raise UnknownChannel(owner, name, sorted(channels))
    _write(turn, [(channels[name], value, owner) for name, value in values.items()])


def _write(turn: TurnState, writes: Sequence[tuple[Declared, Any, str]]) -> None:
    changed: dict[str, bytes] = {}
    channels = turn.scope.channels.copied()
    for channel, value, owner in writes:
        now = channels.write(channel, value, owner)
        if not channel.how.private and turn.run.log.on:
            changed[channel.name] = as_json(now, owner, channel.name)
    # All of them are made, or where one cannot be, none is.
    turn.scope.channels = channels
    if changed:
        turn.run.log.stage(StateRecord(path=turn.path, values=_object(changed)))


def _object(values: Mapping[str, bytes]) -> msgspec.Raw:
    inner = b",".join([msgspec.json.encode(name) + b":" + text for name, text in values.items()])
    return msgspec.Raw(b"{" + inner + b"}")


Contexts: TypeAlias = "Mapping[str, RunContext[Any]]"
"""By call id, the context of a call that does not see the run's own."""
NO_CONTEXTS: Contexts = {}


def contexts_of(turn: TurnState, calls: Sequence[ToolCall]) -> Contexts:
    """Where several calls of one response meet layers with private state: each sees it as it stood before the first."""
    places = turn.bound.tool_states
    if not places or len(calls) < 2:
        return NO_CONTEXTS
    base = {place: turn.context.private_state(place) for place in places}
    return {
        call.id: turn.context.for_call(
            call.id, {**turn.context.states, **{place: CallState(state) for place, state in base.items()}}
        )
        for call in calls
    }


def fold_calls(turn: TurnState, calls: Sequence[ToolCall], contexts: Contexts) -> None:
    """Writes what the calls of one response made of the state, in call order; a call that failed wrote nothing into
    the shared one. Raises `StateConflict`, `UnknownChannel` or `StateError`."""
    fold_private(turn, calls, contexts)
    writes, turn.writes = turn.writes, None
    if writes:
        around = ", or a layer around it" if turn.bound.around_tool else ""
        names = {call.id: f"{call.name}{around}" for call in calls}
        ordered = {call.id: writes[call.id] for call in calls if call.id in writes}
        _write(turn, folded(ordered, turn.bound.channels, names))


def fold_private(turn: TurnState, calls: Sequence[ToolCall], contexts: Contexts) -> None:
    """Folds what these calls made of the private states of layers. Raises `StateConflict`."""
    for place in turn.bound.tool_states if contexts else ():
        owns = {call.id: contexts[call.id].states[place] for call in calls}
        mine = {call_id: state for call_id, state in owns.items() if isinstance(state, CallState)}
        fold(turn.context.private_state(place), mine)


def keep_lasting(turn: TurnState) -> None:
    """After a step, and however the turn ends: private states that live on are kept and recorded where they changed.

    Raises `StateError` for one that JSON cannot carry.
    """
    changed, wrong = False, None
    for place in turn.bound.lasting:
        state = turn.context.states.get(place)
        if state is None:
            continue
        layer = turn.bound.layers[place]
        name = layer_name(layer)
        privates = turn.scope.privates
        if privates is None:
            privates = turn.scope.privates = {}
        if privates.get((turn.path, name)) == _as_lists(state):
            continue
        try:
            text = _carried(name, state)
        except StateError as error:
            # What others remember is kept all the same.
            wrong = wrong or error
            continue
        privates[turn.path, name] = msgspec.json.decode(text)
        if turn.run.log.on:
            record = StateRecord(path=turn.path, layer=name, scope="session", values=msgspec.Raw(text))
            turn.run.log.stage(record)
            changed = True
    if changed:
        turn.run.log.write()
    if wrong is not None:
        raise wrong


def first_state(turn: TurnState, place: int) -> PrivateState:
    """A layer's private state at the start of a turn, or as the session left it.

    Raises `TypeError` for a layer that declares none, and `StateError` for one that JSON cannot carry.
    """
    if place < 0:
        raise TypeError("this middleware has no private state; it declares one by defining init_state()")
    layer = turn.bound.layers[place]
    name = layer_name(layer)
    privates = turn.scope.privates if layer.scope == "session" else None
    kept = privates.get((turn.path, name)) if privates is not None else None
    values = layer.init_state() if kept is None else kept
    if not isinstance(values, dict):
        raise StateError(name, "init_state", f"gives {type(values).__name__}, not a dict")
    if not _is_plain(values):
        if kept is None:
            _carried(name, values)
        # What is changed within it is this turn's own, whoever else begins from the same values.
        from copy import deepcopy

        values = deepcopy(values)
    return PrivateState(values, name, layer.reducers)


_PLAIN = frozenset({str, int, bool, type(None)})


def _is_plain(values: Mapping[str, Any]) -> bool:
    # What needs no trial: JSON carries it. A generator would cost more than what it looks at.
    for name, value in values.items():  # noqa: SIM110
        if type(name) is not str or type(value) not in _PLAIN:
            return False
    return True


def _carried(name: str, values: Mapping[str, Any]) -> bytes:
    """A private state as JSON, which must come back as it was. Raises `StateError`."""
    import json

    try:
        text = json.dumps(dict(values), ensure_ascii=False, allow_nan=False)
        if json.loads(text) == _as_lists(values):
            return text.encode()
        problem = "it would come back as something else, since the keys of its objects are not all text"
    except (TypeError, ValueError, RecursionError, UnicodeEncodeError) as error:
        problem = str(error)
    wrong = next((key for key, value in values.items() if not _fits(key, value)), "state")
    raise StateError(name, str(wrong), f"is private state that JSON cannot carry: {problem}")


def _as_lists(value: Any) -> Any:
    # A sequence comes back as a list, which is as good.
    if isinstance(value, list | tuple):
        return [_as_lists(each) for each in value]
    return {key: _as_lists(each) for key, each in value.items()} if isinstance(value, dict) else value


def _fits(key: Any, value: Any) -> bool:
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
        same = bool(json.loads(text) == _as_lists(value))
    except (TypeError, ValueError, RecursionError):
        return False
    return type(key) is str and same


def keep_private(turn: TurnState) -> None:
    """At the turn's end: the private states that end with it are recorded.

    Raises `StateError` for one that JSON cannot carry.
    """
    layers, is_kept = turn.bound.layers, turn.run.log.on
    for place, state in turn.context.states.items():
        layer = layers[place]
        if layer.scope == "session" or (not is_kept and _is_plain(state)):
            continue
        name = layer_name(layer)
        text = _carried(name, state)
        if turn.run.log.on:
            turn.run.log.stage(StateRecord(path=turn.path, layer=name, scope="turn", values=msgspec.Raw(text)))


def begin_with(run: Run, scope: Scope, path: str, values: Mapping[str, Any]) -> None:
    """Writes the state that a run is given. Raises `UnknownChannel` or `StateError`."""
    channels, owner = run.graph.channels, "the state given to the run"
    begun = scope.channels = scope.channels.copied()
    for name, value in values.items():
        if name not in channels:
            raise UnknownChannel(owner, name, sorted(channels))
        known = channels[name]
        now = begun.put(known, value, owner)
        if run.log.on and not known.how.private:
            run.log.stage(StateRecord(path=path, values=_object({name: as_json(now, owner, name)})))


def kept_channels(channels: Mapping[str, Declared], values: Mapping[str, Any]) -> Channels:
    """What a session kept of its channels, each as its type has it. Raises `StateError` for what does not fit any more;
    channels that nobody declares now are left as they are."""
    owner = "the state that the session kept"
    return Channels(
        {
            name: checked_value(channels[name], each, owner) if name in channels else each
            for name, each in values.items()
        }
    )


def check_reachable(graph: Graph, first: Bound, deps: Any) -> None:
    """Checks the deps of a run for every agent that gets them: those reached without a `deps` function of their own.

    Raises `MissingDeps`.
    """
    seen, waiting = {first.name}, [first]
    while waiting:
        bound = waiting.pop()
        check_deps(bound, deps)
        given = [bound.targets[name] for name, edge in bound.handoffs.items() if edge.deps is None]
        given += [tool.child.name for tool in bound.tools.values() if isinstance(tool, AgentTool) and tool.deps is None]
        for name in given:
            if name not in seen:
                seen.add(name)
                waiting.append(graph.agents[name])


def check_deps(bound: Bound, deps: Any) -> None:
    """Raises `MissingDeps` where an agent or one of its layers requires what the deps do not hold."""
    for owner, required in bound.requires:
        for name, kind in required.items():
            held = name in deps if isinstance(deps, Mapping) else hasattr(deps, name)
            if not held:
                raise MissingDeps(owner, name, "is not there")
            value = deps[name] if isinstance(deps, Mapping) else getattr(deps, name)
            if not _is(value, kind):
                raise MissingDeps(owner, name, f"is {type(value).__name__}, not {getattr(kind, '__name__', kind)}")


def _is(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if isinstance(kind, type) and not hasattr(kind, "__args__"):
        return isinstance(value, kind)
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    try:
        TypeAdapter(kind, config=ConfigDict(arbitrary_types_allowed=True)).validate_python(value, strict=True)
    except ValidationError:
        return False
    return True
