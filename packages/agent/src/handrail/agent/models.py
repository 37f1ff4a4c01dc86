"""What a model is: something that completes a request, whole or as a stream of deltas."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from handrail.agent.errors import BuildError
from handrail.filters import Message
from handrail.filters.messages import whole
from handrail.sessions import Usage

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import ChatRequest

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filtered", "other"]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a model is asked: sampling, length, and whatever else a service takes (`extra`, sent as it is).

    Raises `BuildError` for a value of another kind, or a number that is not finite.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        for name, kind, fits in _KINDS:
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise BuildError(f"settings.{name} is {kind}, not {value!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and whole(value) == value


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_named(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


_KINDS: tuple[tuple[str, str, Callable[[object], bool]], ...] = (
    ("temperature", "a finite number", _is_number),
    ("top_p", "a finite number", _is_number),
    ("max_tokens", "a whole number", _is_whole),
    ("stop", "several texts, as in ('END',)", _are_texts),
    ("tool_choice", "a text", _is_text),
    ("parallel_tool_calls", "True or False", lambda value: isinstance(value, bool)),
    ("seed", "a whole number", _is_whole),
    ("extra", "a mapping of texts to values", _is_named),
)

DEFAULT_SETTINGS = Settings()


class ToolSpec(msgspec.Struct, frozen=True, dict=True):
    """A tool as a model sees it: its name, what it is for, and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class OutputSchema(msgspec.Struct, frozen=True, dict=True):
    """What the answer's text must be: JSON that fits a schema, which is an object's at its root. `strict` asks the
    service to hold the model to it wherever the schema can be made strict."""

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


class Profile(msgspec.Struct, frozen=True):
    """What a model can do.

    `json_schema` says that it can be held to a schema for its answer, `json_schema_with_tools` that it can be while it
    is offered tools, within `max_schema_bytes` (of the schema as JSON) and `max_schema_properties` (of all its objects
    together; None is no limit). `strict_tools` says that it can be held to the schemas of its tools.
    """

    streaming: bool = True
    tools: bool = True
    json_schema: bool = False
    json_schema_with_tools: bool = True
    max_schema_bytes: int | None = None
    max_schema_properties: int | None = None
    strict_tools: bool = False


class ChatResponse(msgspec.Struct, frozen=True):
    """A model's answer: an assistant message, what it cost, and why it ended.

    `message` needs no id, agent or time: the run gives them. `usage.requests` is counted by the run as well.
    """

    message: Message
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"

    def replace(self, **changes: Any) -> ChatResponse:
        """The same answer with these fields changed; an unknown field is a `TypeError`."""
        return msgspec.structs.replace(self, **changes)


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of an answer's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of what a model thinks."""

    text: str


class ArgumentsDelta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a tool call's arguments; `index` is the call's place in the answer."""

    index: int
    call_id: str
    name: str
    text: str


Delta: TypeAlias = TextDelta | ReasoningDelta | ArgumentsDelta


@runtime_checkable
class Model(Protocol):
    """What every model implements. `stream` yields deltas and, last, the whole `ChatResponse`.

    Both raise `ModelError`. Neither keeps state between calls but connections, which `aclose` closes.
    """

    @property
    def name(self) -> str:
        """The model's name, for records and prices."""
        ...

    @property
    def profile(self) -> Profile:
        """What the model can do."""
        ...

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """The answer to a request."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        """The answer in pieces, and last as a whole."""
        ...

    async def aclose(self) -> None:
        """Closes what the model holds open."""
        ...


# Services by name, as module and class: a service's module is loaded when one of its models is first asked for.
_SERVICES = {"openai": ("handrail.agent.providers.openai", "OpenAIChat")}


def find_model(model: Model | str) -> Model:
    """A model from its value or from `service:name`, such as `openai:gpt-4.1-mini`. Raises `BuildError`."""
    if not isinstance(model, str):
        return model
    service, _, name = model.partition(":")
    if not name or service not in _SERVICES:
        possible = ", ".join([f"{known}:NAME" for known in _SERVICES])
        raise BuildError(f"no model is called {model!r}; write service:name, as {possible}")
    module, cls = _SERVICES[service]
    found: Model = getattr(import_module(module), cls)(name)
    return found
