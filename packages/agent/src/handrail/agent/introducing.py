"""What a record says of how a model is asked: an agent as it takes part, and what of a request is not like that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.limits import DEFAULT_LIMITS, Limits
from handrail.agent.models import OutputSchema, Settings, ToolSpec
from handrail.filters.canonical import canonical
from handrail.filters.hashes import sha256
from handrail.sessions import AgentRecord, ModelCallRecord

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.graphs import Graph
    from handrail.agent.kernel.requests import ChatRequest
    from handrail.agent.turns import TurnState
    from handrail.filters.policies import Policy

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def introduced(bound: Bound) -> AgentRecord:
    """The agent as a session's record has it."""
    output = bound.output.record() if bound.output is not None else {}
    if bound.output is not None and bound.output.schema is not None:
        output["schema"] = digest_of(bound.output.schema)
    blocks = tuple(bound.instructions)
    return AgentRecord(
        name=bound.name,
        instructions=tuple(bound.instructions.values()),
        model=bound.model.name,
        tools=tuple(bound.tools),
        handoffs={name: edge.filter.descriptor for name, edge in bound.handoffs.items()},
        output=output,
        blocks=() if blocks == ("agent",) else blocks,
        specs={spec.name: spec_digest(spec) for spec in bound.specs},
        settings=told_settings(bound.settings),
    )


def unlike(record: ModelCallRecord, turn: TurnState, request: ChatRequest) -> ModelCallRecord:
    """The record of a call with what of its request is not as its agent's record and its run have it."""
    bound = turn.bound
    settings = told_settings(request.settings)
    return msgspec.structs.replace(
        record,
        instructions=differing(turn.instructions, request.instructions),
        tools=_offered(turn, request),
        output=_asked_for(turn, request),
        settings=settings if settings != told_settings(bound.settings) else None,
    )


def differing(own: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str | None]:
    """The blocks of instructions that differ from an agent's own, or all where they stand in another order than its own
    with the new ones after them; None for one that was left out."""
    changed: dict[str, str | None] = {name: text for name, text in asked.items() if own.get(name) != text}
    if [*[name for name in own if name in asked], *[name for name in asked if name not in own]] != list(asked):
        changed = {**asked}  # all of them, as they are joined in this order
    return changed | {name: None for name in own if name not in asked}


def _offered(turn: TurnState, request: ChatRequest) -> dict[str, str] | None:
    own = {spec.name: spec for spec in turn.bound.specs}
    if request.tools is turn.bound.specs or list(request.tools) == list(own.values()):
        return None
    return {spec.name: "" if own.get(spec.name) == spec else spec_digest(spec) for spec in request.tools}


def output_digest(output: OutputSchema | None) -> str:
    """What tells what an answer's text must be from anything else that it must be; empty for nothing."""
    return digest_of([output.name, output.schema, output.strict]) if output is not None else ""


def _asked_for(turn: TurnState, request: ChatRequest) -> str | None:
    own = turn.bound.output.schema if turn.bound.output is not None else None
    return output_digest(request.output) if request.output is not own and request.output != own else None


def spec_digest(spec: ToolSpec) -> str:
    """What tells a tool from another of its name; worked out once."""
    known: str | None = spec.__dict__.get("digest")
    if known is None:
        known = spec.__dict__["digest"] = digest_of([spec.name, spec.description, spec.parameters])
    return known


def told_settings(settings: Settings) -> dict[str, Any]:
    """The settings that are not left to the model; of what only a service knows, which may be anything, a digest."""
    told: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(settings, extra={}))
    return told | {"extra": digest_of(settings.extra)} if settings.extra else told


def digest_of(value: Any) -> str:
    """Half of the SHA-256, in hex, over a value as JSON with sorted keys."""
    try:
        text = _encode(value)
    except UnicodeEncodeError:
        text = canonical(value)  # half a surrogate pair has a form there
    return sha256(text).hexdigest()[:32]


def given_to(
    graph: Graph,
    first: Bound,
    limits: Limits | None,
    instructions: str,
    counter: str | None,
    policy: Policy | None,
    middleware: Sequence[Middleware],
) -> dict[str, Any]:
    """What a record is to say of what the run was given."""
    given: dict[str, Any] = {}
    if limits is not None:
        given["limits"] = {
            name: value
            for name, value in msgspec.structs.asdict(limits).items()
            if value != getattr(DEFAULT_LIMITS, name)
        }
    if first.name != graph.root:
        given["root"] = graph.root
    if middleware:
        given["layers"] = [layer_name(layer) for layer in middleware]
    if policy is not None:
        given["policy"] = str(policy.file)
    words = {"instructions": instructions, "counter": counter}
    return given | {name: value for name, value in words.items() if value}
