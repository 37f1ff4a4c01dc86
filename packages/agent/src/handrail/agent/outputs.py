"""Output types: what an agent's answer has to be, and how it is read and written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec

from handrail.agent.errors import BuildError, InvalidOutput
from handrail.agent.names import check_tool_name

if TYPE_CHECKING:
    from handrail.agent.kernel.requests import TurnResult

Mode: TypeAlias = Literal["auto", "native", "tool"]
OnExhausted: TypeAlias = Literal["raise", "return", "fallback"]
BY = "output_type"
"""Who judges an answer by its output type, as its verdict has it."""
NOTHING: Any = object()
"""What `fallback` is where none was given."""
MOST_PROBLEMS = 10
"""How many of the things that are wrong with an answer a model is told at once."""


class _Typed(msgspec.Struct, frozen=True):
    type: Any


class Output(_Typed, frozen=True, kw_only=True):
    """What an agent's answer has to be: a value of `type`, which is any type that pydantic knows and JSON can carry.

    `mode` says how the model is asked for it: held to the type's JSON Schema by its service (`native`), by a tool that
    it answers with (`tool`), or whichever fits the model (`auto`). An answer that does not fit is given back with what
    is wrong with it, at most `retries` times; `on_exhausted` says what comes then: `raise` (`InvalidOutput`), `return`
    (no output, and the verdict says why) or `fallback` (this value, with the same verdict). `name` and `description`
    are what the model reads; a name also begins the names of a union's tools.

    Raises `BuildError` for options that exclude each other, and `UnfitName`.
    """

    mode: Mode = "auto"
    retries: int = 2
    on_exhausted: OnExhausted = "raise"
    fallback: Any = NOTHING
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        for what, possible in (("mode", get_args(Mode)), ("on_exhausted", get_args(OnExhausted))):
            if getattr(self, what) not in possible:
                raise BuildError(f"{what} is one of {', '.join(possible)}, not {getattr(self, what)!r}")
        if not isinstance(self.retries, int) or isinstance(self.retries, bool) or self.retries < 0:
            raise BuildError(f"retries is a whole number from 0, not {self.retries!r}")
        if (self.fallback is NOTHING) != (self.on_exhausted != "fallback"):
            raise BuildError("fallback is the value for on_exhausted='fallback': give both, or neither")
        if inspect.isroutine(self.type):
            # The library behind it would call the function with what the model says.
            raise BuildError(f"an output type is a type, not the function {self.type!r}")
        if self.name:
            check_tool_name(self.name, "the output")


class Unfit(Exception):
    """An answer that does not fit; the message is for the model, and says what is wrong and where."""


class Shape(msgspec.Struct, frozen=True):
    """One type as a model meets it: its name, the schema of an object, what reads a JSON text of that (raises `Unfit`),
    and what writes a value as JSON text (raises `ValueError` for one that JSON cannot carry)."""

    label: str
    schema: Mapping[str, Any]
    read: Callable[[str], Any]
    write: Callable[[Any], str]


class Prepared(msgspec.Struct, frozen=True):
    """An output type worked out: as a whole (None where only plain words are asked for), its variants, and whether
    plain words are an answer."""

    output: Output
    label: str
    whole: Shape | None
    variants: tuple[Shape, ...]
    words: bool

    @property
    def fallback_text(self) -> str:
        """The fallback as JSON text."""
        value: Any = self.output.fallback
        return value if self.whole is None or (self.words and isinstance(value, str)) else self.whole.write(value)


def prepare(asked: Any, agent: str) -> Prepared:
    """An output type, given as a type or as an `Output`, worked out when its agent is built.

    Raises `BuildError` for a type that pydantic or JSON Schema does not know, and for a fallback that does not fit it.
    """
    output = asked if isinstance(asked, Output) else Output(asked)
    kinds = _variants(output.type)
    words = str in kinds
    structured = [kind for kind in kinds if kind is not str]
    try:
        whole = _shape(output.type) if structured else None
        variants = (whole,) if len(kinds) == 1 and whole is not None else [_shape(kind) for kind in structured]
    except _unknown_to_pydantic() as error:
        raise BuildError(
            f"the output type of {agent} has no JSON schema: {str(error).partition(chr(10))[0]}"
        ) from error
    label = whole.label if whole is not None else "str"
    prepared = Prepared(output, label, whole, tuple(variants), words)
    if output.fallback is not NOTHING:
        _check_fallback(prepared, agent)
    return prepared


def _unknown_to_pydantic() -> tuple[type[Exception], ...]:
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    return PydanticUserError, PydanticUndefinedAnnotation


def _check_fallback(prepared: Prepared, agent: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(prepared.output.type).validate_python(prepared.output.fallback, strict=True)
        _ = prepared.fallback_text
    except (ValidationError, ValueError) as error:
        raise BuildError(f"the fallback of {agent} is no {prepared.label} that JSON can carry: {error}") from error


def _variants(kind: Any) -> list[Any]:
    """The types that a union may be, in order; of any other type itself."""
    if hasattr(kind, "__value__"):
        return _variants(kind.__value__)
    origin = get_origin(kind)
    if origin is Annotated:
        # A discriminator only says which variant is meant; any other annotation is the union's own.
        inner, *about = get_args(kind)
        chooses = all([getattr(each, "discriminator", None) and not getattr(each, "metadata", None) for each in about])
        found = _variants(inner)
        return found if chooses and len(found) > 1 else [kind]
    if origin is not Union and origin is not UnionType:
        return [kind]
    return list(dict.fromkeys([each for branch in get_args(kind) for each in _variants(branch)]))


def _shape(kind: Any) -> Shape:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    schema = _at_root(adapter.json_schema())
    label, write = str(schema.get("title") or _label(kind)), _writing(adapter)
    if schema.get("type") == "object":
        return Shape(label, schema, _reading(adapter), write)
    wrapped = _wrapped(kind)
    read = _reading(wrapped)
    return Shape(label, wrapped.json_schema(), lambda text: read(text)["value"], write)


def _at_root(schema: dict[str, Any]) -> dict[str, Any]:
    # A type that holds itself is a reference at the root, where a service wants an object.
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema


def _label(kind: Any) -> str:
    kinds = _variants(kind)
    if len(kinds) > 1:
        return " | ".join(map(_label, kinds))
    if get_origin(kind) is Annotated:
        return _label(get_args(kind)[0])
    if kind is NoneType:
        return "None"
    return str(kind).replace("typing.", "") if get_args(kind) else getattr(kind, "__name__", str(kind))


def _wrapped(kind: Any) -> Any:
    # A service wants an object at the root.
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    make: Any = TypedDict
    holder = make("Answer", {"value": kind})
    holder.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(holder)


def _reading(adapter: Any) -> Callable[[str], Any]:
    from pydantic import ValidationError

    from handrail.agent.signatures import mended_json

    def read(text: str) -> Any:
        try:
            return adapter.validate_json(text)
        except ValidationError as error:
            if (mended := mended_json(text, error)) != text:
                try:
                    return read(mended)
                except Unfit:
                    pass
            # Not from it: what it says holds what was found.
            raise Unfit(_explained(error)) from None
        except Exception as error:
            # The type's own code; a check that raises is not passed.
            raise Unfit(f"the check of the answer failed with {type(error).__name__}") from error

    return read


def _explained(error: Any) -> str:
    # The places and what was expected there, without what was found: it may be anything.
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    told = [f"{'.'.join(map(str, each['loc'])) or 'the answer'}: {each['msg']}" for each in problems[:MOST_PROBLEMS]]
    more = [f"and {len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else []
    return "; ".join([*told, *more])


def _writing(adapter: Any) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        return adapter.dump_json(value, by_alias=True, round_trip=True, warnings=False).decode()  # type: ignore[no-any-return]  # bytes

    return write


def unanswered(agent: str, result: TurnResult) -> InvalidOutput | None:
    """The error for whoever asked an agent that ended without a value of its output type; None where it gave one."""
    verdict = result.verdict
    if verdict is None or verdict.valid or verdict.by != BY or result.output is not None:
        return None
    if result.message is not None and result.message.text == "null":
        return None  # a fallback of None
    return InvalidOutput(f"the output type of {agent}", verdict.attempts, verdict.reason)
