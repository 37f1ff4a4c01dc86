"""What a JSON Schema lets through is what another implementation of the same draft lets through."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from handrail.agent.schemas import Schema

NAMES = st.sampled_from(["a", "b", "c"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
PLAIN: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-3, 3),
        "multipleOf": st.integers(1, 3),
        "minLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", "a|b"]),
        "minItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=2, unique=True),
    },
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    PLAIN | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
        },
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_two_implementations_of_the_draft_agree_on_what_is_valid(schema: Any, value: Any) -> None:
    known = Schema(schema, what="a schema")
    assert (not known.problems(value)) == Draft202012Validator(schema).is_valid(value)
