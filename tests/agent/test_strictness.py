"""A schema is made strict as a whole, or it is not called strict."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from jsonschema_rs import meta
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from handrail.agent.strictness import MAX_CHARACTERS, MAX_DEPTH, MAX_PROPERTIES, strict_schema, without_nulls

TEXT = {"type": "string"}
KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"),
    *("description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems"),
}


def held(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def loose(schema: Any, place: str = "$") -> Iterator[str]:
    """Where a schema is not what strict decoding takes."""
    if not isinstance(schema, Mapping) or not KNOWN.issuperset(schema):
        yield f"{place}: {schema}"
        return
    if "$ref" in schema and len(schema) > 1:
        yield f"{place}: beside a reference"
    if not {"type", "anyOf", "$ref"} & schema.keys():
        yield f"{place}: no type"
    if "object" in str(schema.get("type")) and not (
        schema.get("additionalProperties") is False and list(schema["properties"]) == schema["required"]
    ):
        yield f"{place}: open"
    if "array" in str(schema.get("type")) and "items" not in schema:
        yield f"{place}: no items"
    for name in ("properties", "$defs"):
        for key, each in schema.get(name, {}).items():
            yield from loose(each, f"{place}.{key}")
    for each in [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())]:
        yield from loose(each, f"{place}/")


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema made strict, which it is."""
    made = strict_schema(schema)
    assert made is not None
    assert made["type"] == "object"
    assert not list(loose(made))
    meta.validate(made)
    return made


class Currency(Enum):
    EUR = "EUR"
    USD = "USD"


class Line(BaseModel):
    what: str = Field(description="What was sold.")
    price: Decimal
    tags: set[str] = set()


class Order(BaseModel):
    """An order."""

    id: Annotated[str, Field(min_length=3, pattern="^[A-Z]+$")]
    lines: list[Line]
    currency: Currency = Currency.EUR
    due: date | None = None
    first: Line = Field(description="The first.")
    state: Literal["open", "paid"]
    parent: "Order | None" = None
    paid: int | str | None = 5


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


class Sparse(TypedDict):
    needed: str
    spare: NotRequired[int]


@pytest.mark.parametrize(
    ("schema", "required"),
    [
        ({"properties": {"a": TEXT}}, ["a"]),
        ({"type": ["object", "null"], "properties": {"a": TEXT}}, ["a"]),
        ({"type": "object", "properties": {}}, []),
        ({"type": "object"}, []),
        ({}, []),
        ({"type": "object", "additionalProperties": False}, []),
        ({"allOf": [held(a=TEXT)]}, ["a"]),
        ({"$ref": "#/definitions/A", "definitions": {"A": held(a=TEXT)}}, ["a"]),
    ],
)
def test_the_root_becomes_a_closed_object_however_it_was_written(schema: dict[str, Any], required: list[str]) -> None:
    assert strict(schema)["required"] == required


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": {}},
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        held(a={}),
        held(a=True),
        held(a={"type": "object"}),
        held(a={"type": "array"}),
        held(a={"type": "array", "items": held(b={"type": "object", "additionalProperties": TEXT})}),
        held(a={"allOf": [TEXT, {"minLength": 2}]}),
        held(a={"type": "array", "prefixItems": [TEXT]}),
        held(a={"not": TEXT}),
        held(a={"type": "date"}),
        held(a={"enum": [{"b": 1}]}),
        held(a={"$ref": "#/properties/b"}),
        held(a={"$ref": "other.json"}),
        held(a={"$ref": "#/$defs/A", "type": "object"}) | {"$defs": {"A": held(b=TEXT)}},
        held(a={"anyOf": [held(b=TEXT)], "properties": {"c": TEXT}}),
        held(a=TEXT) | {"patternProperties": {"^x": TEXT}},
        held(a=TEXT) | {"required": ["b"]},
        {"anyOf": [held(a=TEXT), held(b=TEXT)]},
        {"type": "array", "items": TEXT},
        held(a=TEXT) | {"required": True},
        held(a={"anyOf": 3}),
        held(a={"type": "string", "enum": 3}),
        held(a={"type": "string", "pattern": 3}),
        {"type": "object", "properties": ["a"]},
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": TEXT, "b": TEXT}},
    ],
)
def test_what_strict_decoding_does_not_know_is_not_called_strict(schema: dict[str, Any]) -> None:
    assert strict_schema(schema) is None


def test_a_default_becomes_words_and_leaving_out_becomes_null() -> None:
    coin = {"type": "string", "enum": ["EUR", "USD"], "default": "EUR", "description": "The coin."}
    made = strict(held(c=coin))["properties"]["c"]
    assert made == {
        "anyOf": [{"type": "string", "enum": ["EUR", "USD"]}, {"type": "null"}],
        "description": 'The coin. (default: "EUR")',
    }


def test_what_takes_null_already_gets_no_second_one() -> None:
    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    listed = {"type": ["string", "null"], "default": "x"}
    made = strict(held(a=nullable, b=listed))["properties"]
    assert made["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert made["b"] == {"type": ["string", "null"], "description": '(default: "x")'}


def test_what_is_required_stays_as_it_is() -> None:
    assert strict({**held(a=TEXT), "required": ["a"]})["properties"] == {"a": TEXT}


def test_a_definition_is_made_strict_once_and_may_hold_itself() -> None:
    node = held(k={"type": "integer"}, next={"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]})
    made = strict({**held(n={"$ref": "#/$defs/N"}), "$defs": {"N": node, "unused": {"type": "wrong"}}})
    assert list(made["$defs"]) == ["N"]
    assert made["$defs"]["N"]["required"] == ["k", "next"]


def test_what_decoding_cannot_hold_to_is_told_in_words() -> None:
    text = {"type": "string", "minLength": 2, "format": "color", "pattern": "^(?=a)", "title": "A"}
    made = strict({**held(a=text), "required": ["a"]})["properties"]["a"]
    assert made == {"type": "string", "description": '(minLength: 2; format: "color"; pattern: "^(?=a)")'}


@pytest.mark.parametrize("kind", [Order, Sparse, Annotated[Order, Field(description="x")]])
def test_types_of_pydantic_become_strict(kind: Any) -> None:
    made = strict(TypeAdapter(kind).json_schema())
    found = objects(made)
    assert found
    assert all(each["additionalProperties"] is False and each["required"] == [*each["properties"]] for each in found)


def objects(schema: Any) -> list[Any]:
    """Every schema of an object within a schema."""
    if isinstance(schema, list):
        return [found for each in schema for found in objects(each)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" and "properties" in schema else []
    return own + [found for each in schema.values() for found in objects(each)]


def test_a_union_told_apart_by_a_field_becomes_a_choice() -> None:
    class Owner(BaseModel):
        pet: Annotated[Cat | Dog, Field(discriminator="kind")]

    made = strict(TypeAdapter(Owner).json_schema())
    assert made["properties"]["pet"] == {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}


def test_what_is_too_much_for_the_service_is_not_called_strict() -> None:
    deep: dict[str, Any] = TEXT
    for _ in range(MAX_DEPTH):
        deep = held(a=deep)
    strict(deep)
    assert strict_schema(held(a=deep)) is None
    assert strict_schema(held(**{f"p{n}": TEXT for n in range(MAX_PROPERTIES + 1)})) is None
    assert strict_schema(held(a={"enum": [str(n) for n in range(1001)]})) is None
    assert strict_schema(held(a={"enum": ["x" * MAX_CHARACTERS]})) is None


def test_the_given_schema_is_not_changed_and_every_process_makes_the_same_bytes() -> None:
    schema = TypeAdapter(Order).json_schema()
    before = copy.deepcopy(schema)
    made = json.dumps(strict(schema))
    assert schema == before
    code = "\n".join(
        [
            "import json, sys",
            "from handrail.agent.strictness import strict_schema",
            "print(json.dumps(strict_schema(json.load(sys.stdin))))",
        ]
    )
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(schema),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )
        assert told.stdout.strip() == made


def test_nulls_are_left_out_where_they_were_found_and_nowhere_else() -> None:
    text = '{"a": null, "b": [{"c": null, "d": 1}], "e": null, "f": [null]}'
    left = without_nulls(text, [("a",), ("b", 0, "Branch", "c"), ("f", 0), ("x",), ()])
    assert json.loads(left) == {"b": [{"d": 1}], "e": None, "f": [None]}
    assert without_nulls(text, []) is text
    assert without_nulls("{", [("a",)]) == "{"
