"""A JSON Schema is all of its draft, says when it is made what it cannot mean, and no value makes it hang or crash."""

import json
import re
import timeit
from collections.abc import Callable
from typing import Any

import pytest

from handrail.agent import BuildError
from handrail.agent.schemas import MOST, Schema

SLOW = r"^(a|a)*(?=b)\1$"
LONG = "a" * 60 + "!"


def problems(schema: Any, value: Any, **options: Any) -> list[str]:
    return [str(problem) for problem in Schema(schema, what="the schema", **options).problems(value)]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1, "1"),
        ({"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "integer"}}}, 1, "1"),
        ({"$id": "https://example.org/a", "$ref": "b", "$defs": {"q": {"$id": "b", "type": "null"}}}, None, 0),
        (
            {"properties": {"next": {"$ref": "#"}}, "required": ["id"]},
            {"id": 1, "next": {"id": 2}},
            {"id": 1, "next": {}},
        ),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": "text"}),
        ({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": False}, {"n_a": 1}, {"m_a": 1}),
        ({"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False}, {"a": 1}, {"a": 1, "b": 2}),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
        ({"prefixItems": [True], "unevaluatedItems": False}, [1], [1, 2]),
        ({"contains": {"type": "string"}, "minContains": 2}, ["a", 1, "b"], ["a", 1]),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, {"c": 1}, {"a": 1}),
        ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"propertyNames": {"maxLength": 2}}, {"ab": 1}, {"abc": 1}),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1, 3),
        ({"not": {"const": 1}}, 2, 1.0),
        ({"enum": [1, None, {"a": []}]}, 1.0, "1"),
        ({"const": 1}, 1.0, True),
        ({"type": "integer"}, 2.0, 2.5),
        ({"uniqueItems": True}, [1, True], [1, 1.0]),
        ({"multipleOf": 0.01}, 19.99, 19.995),
        ({"maximum": 10**30}, 10**30, 10**31),
        ({"minLength": 2, "maxLength": 2}, "😀😀", "😀"),
        ({"pattern": "^[0-9]+$"}, "12", "12\n"),
        ({"pattern": r"^\d+$"}, "12", "٣"),
        ({"pattern": r"^(?!\s*$)\p{L}+$"}, "é", " "),
        ({"$dynamicRef": "#t", "$defs": {"t": {"$dynamicAnchor": "t", "type": "string"}}}, "a", 1),
        ({"definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a"}, None, 1),
        ({"x-unit": "kg", "$comment": "for people", "examples": [1], "deprecated": True, "type": "number"}, 1, "1"),
        (True, 1, ...),
        (False, ..., 1),
    ],
)
def test_every_keyword_of_the_draft_counts(schema: Any, good: Any, bad: Any) -> None:
    assert good is ... or problems(schema, good) == []
    assert bad is ... or problems(schema, bad) != []


FORMATS = {
    "date-time": ("2026-03-07T12:00:00Z", "2026-03-07 12:00"),
    "date": ("2026-02-28", "2026-02-30"),
    "time": ("12:00:00Z", "25:00:00Z"),
    "duration": ("P3DT4H", "3 days"),
    "email": ("ada@example.org", "ada"),
    "hostname": ("example.org", "-a-"),
    "ipv4": ("192.0.2.1", "192.0.2.256"),
    "ipv6": ("2001:db8::1", "2001::db8::1"),
    "uri": ("https://example.org/a", "example"),
    "uri-reference": ("/a", "\\"),
    "iri": ("https://example.org/é", "é"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    "uri-template": ("/a/{b}", "/a/{b"),
    "json-pointer": ("/a/0", "a/0"),
    "relative-json-pointer": ("1/a", "/a"),
    "regex": ("^a", "("),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_checked_unless_they_are_not_to_be(name: str) -> None:
    good, bad = FORMATS[name]
    assert problems({"format": name}, good) == []
    assert problems({"format": name}, bad) == [f'#: it is not a "{name}"']
    assert problems({"format": name}, bad, formats=False) == []


@pytest.mark.parametrize(
    ("schema", "place", "problem"),
    [
        ({"requird": ["a"]}, "#/requird", "did you mean 'required'?"),
        ({"properties": {"a/b": {"nullable": True}}}, "#/properties/a~1b/nullable", 'add "null" to the type'),
        ({"dependencies": {}}, "#/dependencies", "dependentRequired or dependentSchemas"),
        ({"items": [{"type": "string"}]}, "#/items", "the keyword 'items'"),
        ({"type": "strin"}, "#/type", "the keyword 'type'"),
        ({"properties": {"type": {"minimum": "1"}}}, "#/properties/type/minimum", "the keyword 'minimum'"),
        ({"properties": {"type": 5}}, "#/properties/type", "the keyword 'properties'"),
        ({"allOf": [True, {"pattern": "["}]}, "#/allOf/1/pattern", "the keyword 'pattern'"),
        ({"patternProperties": {"(": True}}, "#/patternProperties/(", "the keyword 'patternProperties'"),
        ({"items": {"$ref": "#/$defs/none"}}, "#/items/$ref", "leads to no schema"),
        ({"$ref": "https://example.org/schema"}, "#/$ref", "nothing is fetched"),
        ({"$ref": "#/const", "const": 5}, "#/$ref", "leads to no schema"),
        ({"$ref": "#/x-own/a", "x-own": {"a": {"typ": 1}}}, "#/x-own/a/typ", "did you mean 'type'?"),
        ({"$ref": "#"}, "#", "itself without end"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "#/$defs/a", "itself without end"),
        ({"format": "date_time"}, "#/format", "date-time.*formats=False"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "#/$schema", "only https://json-schema.org"),
        ({"not": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "#/not/$schema", "only https"),
    ],
)
def test_what_a_schema_cannot_mean_is_said_with_place_and_keyword(schema: Any, place: str, problem: str) -> None:
    with pytest.raises(BuildError, match=f"^the schema: {re.escape(place)}: .*{problem}"):
        Schema(schema, what="the schema")


@pytest.mark.parametrize("schema", ["a", [1], None, {"enum": {1, 2}}, {"const": float("nan")}])
def test_what_is_no_json_is_no_schema(schema: Any) -> None:
    with pytest.raises(BuildError, match="the schema"):
        Schema(schema, what="the schema")


def test_schemas_that_lead_too_far_or_too_deep_are_refused() -> None:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(30)} | {"d30": True}
    with pytest.raises(BuildError, match="more than 20 schemas"):
        Schema({"$ref": "#/$defs/d0", "$defs": chain}, what="the schema")
    deep: Any = {}
    for _ in range(3000):
        deep = {"items": deep}
    with pytest.raises(BuildError):
        Schema(deep, what="the schema")


def test_a_schema_that_is_changed_afterwards_changes_nothing() -> None:
    given = {"type": "string"}
    schema = Schema(given, what="the schema")
    given["type"] = "integer"
    assert schema.problems("a") == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": SLOW}, LONG),
        ({"not": {"pattern": SLOW}}, LONG),
        ({"not": {"properties": {"a": {"pattern": SLOW}}}}, {"a": LONG}),
        ({"if": {"pattern": SLOW}, "then": False}, LONG),
        ({"oneOf": [{"pattern": SLOW}, True]}, LONG),
        ({"contains": {"pattern": SLOW}, "minContains": 0, "maxContains": 0}, [LONG]),
        ({"patternProperties": {SLOW: False}}, {LONG: 1}),
        ({"patternProperties": {SLOW: {"type": "string"}}, "additionalProperties": True}, {LONG: 1}),
        ({"allOf": [{"patternProperties": {SLOW: True}}], "unevaluatedProperties": False}, {LONG: 1}),
        ({"propertyNames": {"not": {"pattern": SLOW}}}, {LONG: 1}),
    ],
)
def test_a_pattern_that_goes_back_and_back_ends_and_is_a_no_wherever_it_stands(schema: Any, value: Any) -> None:
    assert problems(schema, value) != []


def test_many_such_texts_take_no_longer_than_one() -> None:
    for many in (1_000, 10_000):
        (found,) = problems({"items": {"pattern": SLOW}}, [LONG] * many)
        assert found.startswith("#/0: it holds a text that takes a pattern too long")


def test_a_pattern_that_needs_not_go_back_does_not() -> None:
    assert problems({"pattern": "^(a+)+$"}, "a" * 100_000 + "!") != []
    assert problems({"pattern": "^(a+)+$"}, "a" * 100_000) == []


def test_problems_stand_in_the_order_of_their_places_and_say_what_is_allowed() -> None:
    schema = {
        "required": ["z"],
        "properties": {
            "b": {"enum": ["x", None, 1]},
            "a": {"const": {"k": 1}},
            "list": {"items": {"pattern": "^a"}},
        },
    }
    found = problems(schema, {"list": ["b"] * 11, "b": "secret", "a": 1})
    assert found[:4] == [
        '#: "z" is a required property',
        '#/a: {"k":1} was expected',
        '#/b: it is not one of "x", null, 1',
        '#/list/0: it does not match "^a"',
    ]
    assert [text.partition(":")[0] for text in found[3:]] == [f"#/list/{number}" for number in range(11)]
    assert "secret" not in "".join(found)


def test_of_several_possibilities_the_nearest_says_what_is_missing() -> None:
    schema = {
        "anyOf": [{"type": "integer"}, {"type": "object", "properties": {"n": {"enum": ["a"]}}, "required": ["n"]}]
    }
    (found,) = problems(schema, {"n": "b"})
    assert found == '#: it fits none of 2 possibilities; of the nearest, #/n: it is not one of "a"'


def test_a_value_with_no_end_of_problems_is_not_looked_at_for_ever() -> None:
    assert len(problems({"items": {"type": "string"}}, list(range(4_000)))) == MOST
    assert problems({"items": {"type": "string"}}, ["a", *range(50_000)]) == [
        '#/1: it is not of type "string"; more may be wrong, here and elsewhere'
    ]


def tree(word: str, *names: str) -> dict[str, Any]:
    """A schema of expressions: each of these operations has two sides, and a number ends it."""
    side = {"$ref": "#/$defs/e"}
    kinds = [
        {"type": "object", "properties": {"op": {"const": name}, "l": side, "r": side}, "required": ["op", "l"]}
        for name in names
    ]
    return {"$defs": {"e": {word: [*kinds, {"type": "number"}]}}, "$ref": "#/$defs/e"}


def nested(levels: int, leaf: Any, step: Callable[[Any], Any]) -> Any:
    for _ in range(levels):
        leaf = step(leaf)
    return leaf


SLOW_TO_TELL: list[tuple[Any, Callable[[Any], Any]]] = [
    (tree("oneOf", "add", "neg"), lambda inner: {"op": "no", "l": inner}),
    (tree("anyOf", "add", "neg"), lambda inner: {"l": inner, "op": "add", "r": inner if inner == "x" else 1}),
    ({"items": {"$ref": "#"}, "type": "array", "allOf": [{"items": {"$ref": "#"}}]}, lambda inner: [inner]),
    (
        {"properties": {"l": {"$ref": "#"}}, "patternProperties": {"^l": {"$ref": "#"}}, "type": "object"},
        lambda inner: {"l": inner},
    ),
    (
        {
            "anyOf": [
                {"items": {"$ref": "#"}, "maxItems": 0, "type": "array"},
                {"type": "array", "items": {"$ref": "#"}},
            ]
        },
        lambda inner: [inner],
    ),
]


@pytest.mark.parametrize(("schema", "step"), SLOW_TO_TELL)
def test_a_tree_of_possibilities_takes_no_longer_with_each_level(schema: Any, step: Callable[[Any], Any]) -> None:
    made = Schema(schema, what="the schema")
    deep, deeper = nested(45, "x", step), nested(90, "x", step)
    assert len(made.problems(deep)) == len(made.problems(deeper)) == 1

    def seconds(value: Any) -> float:
        return min(timeit.repeat(lambda: made.problems(value), number=3, repeat=5))

    assert seconds(deeper) < 10 * seconds(deep)


def test_of_a_large_value_the_first_problem_is_told_where_it_is() -> None:
    value = nested(30, {"op": "no", "l": 1}, lambda inner: {"op": "add", "l": inner, "r": 1})
    schema = {"$defs": tree("oneOf", "add", "neg")["$defs"], "properties": {"e": {"items": {"$ref": "#/$defs/e"}}}}
    (found,) = problems(schema, {"e": [1, value]})
    assert found == "#/e/1: it fits none of 3 possibilities; more may be wrong, here and elsewhere"


def test_of_a_small_tree_the_nearest_possibility_is_told() -> None:
    (found,) = problems(tree("oneOf", "add", "neg"), {"op": "add", "l": {"op": "no", "l": 1}})
    assert '#/l/op: "add" was expected' in found


def test_where_a_reference_leads_into_a_possibility_a_large_value_does_not_fit_as_a_whole() -> None:
    schema = {"anyOf": [{"items": {"anyOf": [{"type": "string"}]}}], "not": {"$ref": "#/anyOf/0/items"}}
    (found,) = problems(schema, [1] * 10_000)
    assert found == "#: it does not fit, and it would take too long to tell where"


def test_the_deepest_value_that_is_read_is_held_against_a_schema_that_refers_to_itself() -> None:
    value = json.loads("[" * 100 + "]" * 100)
    assert problems({"type": "array", "items": {"allOf": [{"$ref": "#"}]}}, value) == []
