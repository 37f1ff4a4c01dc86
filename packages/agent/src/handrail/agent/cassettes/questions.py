"""The request of a model call as a cassette holds it: readable JSON, whose digest is what calls are matched by.

What changes from run to run is left out: ids, times, and the ids of calls; so is whether the answer was streamed.
"""

import json
from collections.abc import Collection
from hashlib import sha256
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from handrail.agent.models import OutputSchema, Settings, ToolSpec
from handrail.filters.canonical import canonical
from handrail.filters.messages import Part, Role
from handrail.sessions.changes import meaning
from handrail.sessions.tracks import answered

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest

_MEDIA = frozenset({"image", "audio", "file"})
_WORDS: dict[str, Collection[str]] = {
    "kind": [str(part.__struct_config__.tag) for part in get_args(Part)],
    "role": get_args(Role),
}
_INLINE = 200
"""Characters of inline data that are written as they are; of more only how many there are, and their digest."""


def question(model: str, request: "ChatRequest") -> dict[str, Any]:
    """What a model of this name is asked, as JSON."""
    told: dict[str, Any] = {"model": model}
    if request.purpose != "answer":
        told["purpose"] = request.purpose
    blocks = [name for name, text in request.instructions.items() if text]
    told["instructions"] = {name: request.instructions[name] for name in blocks}
    if blocks != sorted(blocks):
        told["order"] = blocks  # they are joined in it, and a digest sorts them
    places = answered(request.messages)
    told["messages"] = [_message(meaning(*each)) for each in zip(request.messages, places, strict=True)]
    told["tools"] = [_tool(spec) for spec in request.tools]
    told["settings"] = _settings(request.settings)
    if request.output is not None:
        told["output"] = _output(request.output)
    # What is no JSON, as a setting of somebody's own may be, is written as a digest takes it.
    again: dict[str, Any] = json.loads(canonical({name: value for name, value in told.items() if value}))
    return {name: again[name] for name in told if name in again}


def question_digest(told: dict[str, Any]) -> str:
    """SHA-256 in hex over the canonical JSON of a question."""
    return sha256(canonical(told)).hexdigest()


def _message(told: dict[str, Any]) -> dict[str, Any]:
    if told.get("answers") is None:
        told.pop("answers", None)
    for part in told["content"]:
        data = part.get("data")
        if part["kind"] in _MEDIA and isinstance(data, str) and len(data) > _INLINE:
            part["data"] = f"{len(data)} characters, sha256 {sha256(data.encode()).hexdigest()}"
    return told


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "parameters": spec.parameters}


def _settings(settings: Settings) -> dict[str, Any]:
    given = {name: getattr(settings, name) for name in settings.__struct_fields__}
    defaults = Settings()
    return {name: value for name, value in given.items() if value != getattr(defaults, name)}


def _output(output: OutputSchema) -> dict[str, Any]:
    return {"name": output.name, "schema": output.schema, "strict": output.strict}


def each_text(value: Any, change: Any) -> Any:
    """The JSON value with every text in it changed, but for the words that tell kinds and roles apart."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            key: item if isinstance(item, str) and item in _WORDS.get(key, ()) else each_text(item, change)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [each_text(item, change) for item in value]
    return value


def message_json(message: msgspec.Struct) -> dict[str, Any]:
    """A message as the JSON it is written as."""
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(message))
    return told
