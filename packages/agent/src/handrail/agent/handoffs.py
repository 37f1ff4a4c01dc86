"""Handoffs: an agent passes control, and a filter says what goes with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from handrail.agent.contexts import RunContext
from handrail.agent.errors import BuildError
from handrail.agent.models import ToolSpec
from handrail.agent.names import check_tool_name, tool_name
from handrail.agent.tools import InvalidArguments, explained
from handrail.filters import Filter, InvalidFilter, Seal, default_handoff_filter, seal, unresolved
from handrail.filters.messages import Messages, whole

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.filters.policies import Policy

Target: TypeAlias = "Agent | str | Callable[[], Agent]"
AnyFilter: TypeAlias = Filter | Callable[[Messages], Any]
NextTurn: TypeAlias = Literal["target", "root", "caller"]
Gate: TypeAlias = Callable[[RunContext[Any]], bool | Awaitable[bool]]

REASON: dict[str, Any] = {"type": "string", "description": "Why the conversation is handed over."}


class Given(msgspec.Struct, frozen=True):
    """What a transfer brings along: a reason, and a typed input as text and as the checked value."""

    reason: str = ""
    input: str = ""
    value: Any = None


class Handoff(msgspec.Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """A way from one agent to another: its target, the sealed filter that decides what crosses, and how it is taken.

    See `handoff` for the fields.
    """

    target: Any
    filter: Seal
    name: str = ""
    description: str = ""
    input_type: Any = None
    on_handoff: Callable[..., Any] | None = None
    policy: Policy | None = None
    returns: Seal | None = None
    next_turn: NextTurn = "target"
    back: Seal | None = None
    enabled: bool | Gate = True
    deps: Callable[[Any], Any] | None = None

    def tool_name(self, target_name: str) -> str:
        """What the transfer tool is called. Raises `UnfitName`."""
        return self.name or tool_name(target_name, "transfer_to_")

    def spec(self, target_name: str, target_description: str) -> ToolSpec:
        """The transfer tool that the source's model is offered. Raises `UnfitName`."""
        about = self.description or f"Hand the conversation over to {target_name}. {target_description}".strip()
        properties: dict[str, Any] = {"reason": REASON}
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.input_type is not None:
            properties["input"], definitions = self.input_schema()
            schema["required"] = ["input"]
            schema |= {"$defs": definitions} if definitions else {}
        return ToolSpec(self.tool_name(target_name), about, schema)

    def adapter(self) -> Any:
        """What checks the typed input; built once."""
        known = self.__dict__.get("adapter_")
        if known is None:
            from pydantic import TypeAdapter

            known = self.__dict__["adapter_"] = TypeAdapter(self.input_type)
        return known

    def input_schema(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The JSON Schema of the typed input, and the definitions that it refers to."""
        schema: dict[str, Any] = self.adapter().json_schema()
        return schema, schema.pop("$defs", {})

    def read(self, text: str) -> Given:
        """What a call's arguments bring along. Raises `InvalidArguments`."""
        import json

        try:
            arguments = json.loads(text) if text.strip() else {}
        except (ValueError, RecursionError) as error:
            raise InvalidArguments(f"they are not JSON: {error}") from error
        known = {"reason"} if self.input_type is None else {"reason", "input"}
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, dict) or not set(arguments) <= known:
            raise InvalidArguments(f"they are an object with {' and '.join(sorted(known))}; found {text[:200]}")
        reason = arguments.get("reason") or ""
        if not isinstance(reason, str):
            raise InvalidArguments("reason is a text")
        return self.given(whole(reason), arguments.get("input"), "input" in arguments)

    def given(self, reason: str, input: Any, has_input: bool) -> Given:
        """A reason and an input, checked. Raises `InvalidArguments`."""
        if not isinstance(reason, str):
            raise InvalidArguments(f"the reason is a text, not {type(reason).__name__}")
        if self.input_type is None:
            if has_input:
                raise InvalidArguments("this handoff takes no input")
            return Given(reason)
        if not has_input:
            raise InvalidArguments("the input is missing")
        from pydantic import ValidationError

        try:
            value = self.adapter().validate_python(input)
        except ValidationError as error:
            raise InvalidArguments(f"input: {explained(error)}") from error
        text = value if isinstance(value, str) else self.adapter().dump_json(value).decode()
        return Given(reason, whole(text), value)


def handoff(
    target: Target,
    *,
    filter: AnyFilter | None = None,
    name: str = "",
    description: str = "",
    input_type: Any = None,
    on_handoff: Callable[..., Any] | None = None,
    policy: Policy | None = None,
    returns: AnyFilter | None = None,
    next_turn: NextTurn = "target",
    next_filter: AnyFilter | None = None,
    enabled: bool | Gate = True,
    deps: Callable[[Any], Any] | None = None,
) -> Handoff:
    """A handoff to an agent; it adds a `transfer_to_<name>` tool with an optional `reason`.

    `target` is an agent, a callable that returns one, or the name of an agent that is reachable; so two agents can
    hand to each other. `filter` (default `default_handoff_filter()`) decides what crosses, and is always sealed.

    - `input_type`: a type that pydantic knows; the call then has an `input`, which crosses as a note.
    - `on_handoff(context, input)`: called (and awaited) when the seal and the policies let the handoff pass.
    - `policy`: a `Policy` for this edge, beside those of the run and of the agent.
    - `returns`: the source waits for the answer, which comes back through this filter as the call's result.
    - `next_turn`: whose the conversation's next turn is: the `target`'s, its source's (`caller`), or the agent's that
      `run` was called on (`root`). The answer crosses to that agent through `next_filter` (default `full()`).
    - `enabled`: whether it is offered, or a function of the context that says so; one that raises says no.
    - `deps`: makes the target's deps of the source's; without it the target has the same, or keeps what it had.

    Raises `InvalidFilter`, and `BuildError` for a target that can be none or for parts that exclude each other.
    """
    if not isinstance(target, str) and not callable(target) and not hasattr(target, "handoffs"):
        raise BuildError(f"a handoff goes to an agent, a callable that returns one, or an agent's name, not {target!r}")
    if next_turn not in get_args(NextTurn):
        raise BuildError(f"next_turn is one of {', '.join(get_args(NextTurn))}, not {next_turn!r}")
    if returns is not None and next_turn != "target":
        raise BuildError("with returns the source goes on, so there is no next turn to give away")
    if next_filter is not None and next_turn == "target":
        raise BuildError("next_filter is for what goes back, and with next_turn='target' nothing does")
    if name:
        check_tool_name(name, "the handoff")
    check_policy(policy, "a handoff")
    for what, value in (("on_handoff", on_handoff), ("deps", deps)):
        if value is not None and not callable(value):
            raise BuildError(f"{what} of a handoff is a function, not {value!r}")
    if not isinstance(enabled, bool) and not callable(enabled):
        raise BuildError(f"enabled is True, False, or a function of the context, not {enabled!r}")
    return Handoff(
        target=target,
        filter=sealed(filter),
        name=name,
        description=description,
        input_type=input_type,
        on_handoff=on_handoff,
        policy=policy,
        returns=None if returns is None else sealed_back(returns),
        next_turn=next_turn,
        back=None if next_filter is None else sealed(next_filter),
        enabled=enabled,
        deps=deps,
    )


def check_policy(policy: Any, what: str) -> None:
    """Raises `BuildError` for what is no policy."""
    if policy is not None and not hasattr(policy, "enforce"):
        raise BuildError(f"the policy of {what} is a Policy, such as Policy.load(path), not {policy!r}")


def sealed(filter: AnyFilter | None) -> Seal:
    """The filter of an edge, sealed; the default one where none is given."""
    return seal(default_handoff_filter() if filter is None else filter)


def sealed_back(filter: AnyFilter) -> Seal:
    """The filter of an answer that comes back as a result, sealed. Raises `InvalidFilter` for a resolver: an answer is
    the result of a call, and crosses no edge that a resolver could be told of."""
    back = seal(filter)
    if unresolved(back):
        raise InvalidFilter(f"returns is a filter that is known beforehand, and {back.filter!r} is a resolver")
    return back
