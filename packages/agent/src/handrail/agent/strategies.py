"""How an agent asks its model for an output type: held to a schema by its service, or by tools to answer with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from handrail.agent.errors import BuildError
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.models import OutputSchema, Profile, ToolSpec
from handrail.agent.names import fit_name
from handrail.agent.outputs import Output, Prepared, Shape

BASE_NAME = "final_answer"


class Plan(msgspec.Struct, frozen=True):
    """How an agent asks its model for an output type.

    In `tool` mode by `tools`, by name; in `native` mode by the `schema` that each request carries. `reason` says why:
    `supported` or `asked_for`, or what kept the model from being held to a schema (`provider_not_supported`,
    `tools_not_supported`, `schema_too_large`, `schema_too_many_properties`).
    """

    prepared: Prepared
    mode: Literal["native", "tool"]
    reason: str
    tools: Mapping[str, Shape] = {}
    specs: Sequence[ToolSpec] = ()
    schema: OutputSchema | None = None

    def record(self) -> dict[str, Any]:
        """The plan as a session's record of the agent has it."""
        record = {"type": self.prepared.label, "mode": self.mode, "reason": self.reason}
        return {**record, "tools": list(self.tools)} if self.tools else record

    def __str__(self) -> str:
        output = self.prepared.output
        names = f" {', '.join(self.tools)}" if self.tools else ""
        then = f"{output.retries} retries, then {output.on_exhausted}"
        return f"{self.prepared.label} ({self.mode}{names}: {self.reason}), {then}"


def plan(prepared: Prepared, profile: Profile, *, tools: bool, agent: str) -> Plan:
    """How a model with this profile is asked; `tools` says whether it is offered any beside.

    Raises `BuildError` where a native answer is asked for and cannot be had.
    """
    output, whole = prepared.output, prepared.whole
    assert whole is not None, "plain words need no plan"
    against = _against(whole, profile, tools)
    if output.mode == "native" and against:
        raise BuildError(f"{agent} asks for a native answer, which its model cannot give: {against}; use mode='auto'")
    reason = against or "supported" if output.mode == "auto" else "asked_for"
    if output.mode == "native" or (output.mode == "auto" and not against):
        schema = {**whole.schema, "description": output.description} if output.description else whole.schema
        return Plan(prepared, "native", reason, schema=OutputSchema(output.name or BASE_NAME, schema))
    named = dict(_named(prepared))
    specs = [ToolSpec(name, _about(output, shape), shape.schema) for name, shape in named.items()]
    return Plan(prepared, "tool", reason, tools=named, specs=specs)


def _against(whole: Shape, profile: Profile, tools: bool) -> str:
    if not profile.json_schema:
        return "provider_not_supported"
    if tools and not profile.json_schema_with_tools:
        return "tools_not_supported"
    if profile.max_schema_bytes is not None and len(msgspec.json.encode(whole.schema)) > profile.max_schema_bytes:
        return "schema_too_large"
    if profile.max_schema_properties is not None and _properties(whole.schema) > profile.max_schema_properties:
        return "schema_too_many_properties"
    return ""


def _properties(schema: Any) -> int:
    if isinstance(schema, list):
        return sum(map(_properties, schema))
    if not isinstance(schema, dict):
        return 0
    own = schema.get("properties")
    return (len(own) if isinstance(own, dict) else 0) + sum(map(_properties, schema.values()))


def _named(prepared: Prepared) -> Iterator[tuple[str, Shape]]:
    base = prepared.output.name or BASE_NAME
    if len(prepared.variants) == 1:
        yield base, prepared.variants[0]
        return
    taken: set[str] = set()
    for shape in prepared.variants:
        wanted = name = fit_name(f"{base}_{shape.label}")
        number = 1
        while name in taken:
            number += 1
            name = f"{wanted[:60]}_{number}"
        taken.add(name)
        yield name, shape


def _about(output: Output, shape: Shape) -> str:
    told = output.description or str(shape.schema.get("description", ""))
    return f"Gives the final answer, as {shape.label}, and ends the work. {told}".strip()


def suited(request: ChatRequest) -> ChatRequest:
    """A request with an output schema as its model can take it: words in the instructions for one that cannot be held
    to a schema, and nothing at all for a call that is not for the answer."""
    if request.purpose != "answer" or request.output is None:
        return request.replace(output=None)
    if request.model.profile.json_schema:
        return request
    schema = msgspec.json.encode(request.output.schema).decode()
    told = f"Give your final answer as JSON, and nothing but JSON, that fits this schema:\n{schema}"
    return request.replace(output=None, instructions={**request.instructions, "output": told})
