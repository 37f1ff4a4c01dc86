"""Strict schemas: a JSON Schema in the form that a service can hold a model to, token by token.

Strict decoding knows closed objects, all of whose properties must be there. So a property that may be left out may be
null there, and a null that nothing takes is a property left out again (`without_nulls`). What decoding cannot hold a
model to, such as a length or a default, is told in the description; the check of what comes back knows it anyway.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_DEPTH = 10
MAX_PROPERTIES = 5000
MAX_VALUES = 1000
"""Of all enumerations together."""
MAX_CHARACTERS = 120_000
"""Of the names of properties and definitions, and of the values of enumerations, together."""

_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_TYPES = frozenset({*_JSON_TYPES.values(), "object", "array"})
_KEPT = frozenset(
    {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
# What bounds one value, and can be left to the check of the answer.
_TOLD = frozenset({"minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties"})
# What changes the meaning of all that stands beside it.
_UNKNOWN = frozenset(
    {"allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "contains"}
    | {"minContains", "maxContains", "patternProperties", "propertyNames", "unevaluatedProperties", "prefixItems"}
    | {"unevaluatedItems", "additionalItems", "$dynamicRef", "$recursiveRef"}
)
# What a reference or a choice cannot have beside it: both would have to hold.
_MEANING = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "$ref", "anyOf", "oneOf"}
)


class _Loose(Exception):
    """A schema that strict decoding does not know."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema of an object, made strict at each depth, or None where it cannot be. What is given is not changed, and
    the same schema gives the same result in every process."""
    try:
        return _Strictness(schema).root()
    except (_Loose, RecursionError, TypeError, AttributeError):
        return None  # the last two for what is no schema at all


def without_nulls(text: str, places: Iterable[Sequence[Any]]) -> str:
    """The JSON text without the properties at these places whose value is null. A step that leads nowhere, such as the
    name of a union's branch, is passed over; text that is not JSON stays as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    found = [_leave_out(value, place) for place in places]
    return json.dumps(value, ensure_ascii=False) if any(found) else text


def _leave_out(value: Any, place: Sequence[Any]) -> bool:
    holder, key = None, None
    for step in place:
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)
        ):
            holder, key, value = value, step, value[step]
    if value is not None or not isinstance(holder, dict):
        return False
    del holder[key]
    return True


class _Strictness:
    """One schema on its way to being strict: the definitions that it needs, and how much there is of everything."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self.definitions: dict[str, Any] = {}
        self.properties = self.values = self.characters = 0

    def root(self) -> dict[str, Any]:
        schema = _merged(self.schema)
        if "$ref" in schema:
            _alone(schema, "$ref")
            schema = _described({**self.target(schema["$ref"])[1]}, schema)
        if isinstance(schema.get("type"), list) and "object" in schema["type"]:
            schema = {**schema, "type": "object"}  # arguments are an object, whatever else it says
        if schema.get("type", "object") == "object" and _MEANING.isdisjoint(schema.keys() - {"type"}):
            schema = {**schema, "type": "object", "properties": {}}
        made = self.node(schema, 1)
        if made.get("type") != "object":
            raise _Loose
        return {**made, "$defs": self.definitions} if self.definitions else made

    def node(self, schema: Any, depth: int) -> dict[str, Any]:
        schema = _merged(schema)
        if not _UNKNOWN.isdisjoint(schema):
            raise _Loose
        if "$ref" in schema:
            _alone(schema, "$ref")
            made = {"$ref": self.refer(schema["$ref"])}
            # Nothing may stand beside a reference, but something may beside a choice of one.
            return _described({"anyOf": [made]}, schema) if "description" in schema else made
        word = "anyOf" if "anyOf" in schema else "oneOf"
        if word in schema:
            _alone(schema, word, "type")
            return _described({"anyOf": [self.node(branch, depth) for branch in schema[word]]}, schema)
        return self.plain(schema, depth)

    def plain(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kinds = _types(schema)
        made: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
        for word in ("enum", "const"):
            if word in schema:
                made[word] = schema[word]
        self.count(values=_values(schema) or ())
        if "object" in kinds:
            made.update(self.object(schema, depth))
        if "array" in kinds:
            made["items"] = self.node(schema.get("items"), depth)
        told = []
        for word, value in schema.items():
            if word in _KEPT and _is_known(word, value):
                made[word] = value
            elif word in _KEPT or word in _TOLD:
                told.append(f"{word}: {_json(value)}")
        return _described(made, schema, told)

    def object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        closed = schema.get("additionalProperties") is False
        properties, required = schema.get("properties", {} if closed else None), schema.get("required", [])
        if not (closed or "additionalProperties" not in schema) or not isinstance(properties, Mapping):
            raise _Loose
        if depth > MAX_DEPTH or not set(required) <= set(properties):
            raise _Loose
        self.count(names=tuple(properties))
        made = {
            name: self.node(each, depth + 1) if name in required else self.optional(each, depth + 1)
            for name, each in properties.items()
        }
        return {"properties": made, "required": list(made), "additionalProperties": False}

    def optional(self, schema: Any, depth: int) -> dict[str, Any]:
        made = self.node(schema, depth)
        about = made.pop("description", "")
        if not self.takes_null(made):
            made = {"anyOf": [*made.get("anyOf", [made]), {"type": "null"}]}
        default = _merged(schema).get("default")
        return _described(made, {"description": about}, [f"default: {_json(default)}"] if default is not None else [])

    def takes_null(self, made: Mapping[str, Any], met: tuple[str, ...] = ()) -> bool:
        if "$ref" in made:
            name = made["$ref"].removeprefix("#/$defs/")
            return name not in met and self.takes_null(self.definitions.get(name) or {}, (*met, name))
        if "anyOf" in made:
            return any([self.takes_null(branch, met) for branch in made["anyOf"]])
        return "null" in _as_list(made.get("type", [])) and None in (_values(made) or [None])

    def refer(self, pointer: Any) -> str:
        if pointer == "#":
            return "#"
        name, target = self.target(pointer)
        if name not in self.definitions:
            self.definitions[name] = None  # it may refer to itself
            self.count(names=(name,))
            self.definitions[name] = self.node(target, 1)
        return f"#/$defs/{name}"

    def target(self, pointer: Any) -> tuple[str, Mapping[str, Any]]:
        places = [place for place in ("$defs", "definitions") if place in self.schema]
        if len(places) != 1 or not isinstance(pointer, str):
            raise _Loose
        name = pointer.removeprefix(f"#/{places[0]}/")
        if name == pointer or name not in self.schema[places[0]]:
            raise _Loose
        return name, _merged(self.schema[places[0]][name])

    def count(self, names: Sequence[str] = (), values: Sequence[Any] = ()) -> None:
        self.properties += len(names)
        self.values += len(values)
        self.characters += sum([len(each) for each in (*names, *values) if isinstance(each, str)])
        if self.properties > MAX_PROPERTIES or self.values > MAX_VALUES or self.characters > MAX_CHARACTERS:
            raise _Loose


def _merged(schema: Any) -> Mapping[str, Any]:
    # A conjunction of one is that one; what else it has is of this one.
    if not isinstance(schema, Mapping):
        raise _Loose
    parts = schema.get("allOf")
    if not isinstance(parts, list) or len(parts) != 1:
        return schema
    rest = {word: value for word, value in schema.items() if word != "allOf"}
    if not _MEANING.isdisjoint(rest):
        raise _Loose
    return {**_merged(parts[0]), **rest}


def _alone(schema: Mapping[str, Any], *words: str) -> None:
    if not _MEANING.isdisjoint(schema.keys() - set(words)):
        raise _Loose


def _described(made: dict[str, Any], schema: Mapping[str, Any], told: Sequence[str] = ()) -> dict[str, Any]:
    words = [str(schema["description"])] if schema.get("description") else []
    words += [f"({'; '.join(told)})"] if told else []
    return {**made, "description": " ".join(words)} if words else made


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    if kinds is None:
        values = _values(schema)
        if values is not None:
            kinds = list(dict.fromkeys([_JSON_TYPES.get(type(value)) for value in values]))
        else:
            kinds = "object" if "properties" in schema else "array" if "items" in schema else []
    kinds = _as_list(kinds)
    if not kinds or not all([kind in _TYPES for kind in kinds]):
        raise _Loose
    return kinds


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    values: list[Any] | None = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None and not all([type(value) in _JSON_TYPES for value in values]):
        raise _Loose
    return values


def _as_list(kinds: Any) -> list[Any]:
    return list(kinds) if isinstance(kinds, list | tuple) else [kinds]


def _is_known(word: str, value: Any) -> bool:
    if word == "format":
        return value in _FORMATS
    return word != "pattern" or not any([sign in value for sign in _LOOKAROUND])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
