"""What messages and parts are made with: values that are also pydantic fields, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec

_Known = TypeVar("_Known")


class Value(msgspec.Struct, frozen=True):
    """The base of messages and parts: a pydantic model may have them as fields, in Python and in JSON."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        (described,), components = msgspec.json.schema_components([cls], ref_template="{name}")
        inlined: dict[str, Any] = _inlined(described, components)
        return inlined

    @classmethod
    def _validated(cls, value: Any) -> Any:
        if isinstance(value, cls):
            return value
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


def _inlined(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(components[schema["$ref"]], components)
    return {key: _inlined(item, components) for key, item in schema.items() if key != "discriminator"}


class Once(Generic[_Known]):
    """A property computed at first use and kept on the instance (no lock, and lost by `replace`, as it must be)."""

    def __init__(self, compute: Callable[[Any], _Known]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Once[_Known]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Known: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
