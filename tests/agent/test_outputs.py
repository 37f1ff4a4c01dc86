"""Any type that pydantic knows can be what an answer has to be; what cannot is refused when the agent is built."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, BeforeValidator, Field, RootModel, field_validator
from typing_extensions import TypedDict

from handrail.agent import Agent, BuildError, Output, ScriptedModel, UnfitName
from handrail.agent.outputs import Unfit, prepare


class Invoice(BaseModel):
    """What is owed."""

    id: str
    total: int = 0
    note: str = Field(default="", alias="remark")


class Refund(BaseModel):
    kind: Literal["refund"]


class Other(BaseModel):
    kind: Literal["other"]


class Folder(BaseModel):
    name: str
    within: list["Folder"] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    what: str
    count: NotRequired[int]


class Colour(Enum):
    RED = "red"


class Names(RootModel[list[str]]):
    pass


class Unknown:
    pass


class Careful(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def only_a(cls, word: str) -> str:
        return {"a": word}[word]


def read(kind: Any, text: str) -> Any:
    whole = prepare(kind, "X").whole
    assert whole is not None
    assert whole.schema["type"] == "object"
    return whole.read(text)


def problem(kind: Any, text: str) -> str:
    with pytest.raises(Unfit) as caught:
        read(kind, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Invoice, '{"id":"7","remark":"x"}', Invoice(id="7", remark="x")),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (Row, '{"what":"a"}', {"what": "a"}),
        (Folder, '{"name":"a","within":[{"name":"b"}]}', Folder(name="a", within=[Folder(name="b")])),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (int, '{"value":3}', 3),
        (list[date], '{"value":["2024-02-29"]}', [date(2024, 2, 29)]),
        (Colour, '{"value":"red"}', Colour.RED),
        (Names, '{"value":["a"]}', Names(["a"])),
        (Annotated[int, Field(gt=2)], '{"value":3}', 3),
        (Invoice | Point, '{"value":{"x":1}}', Point(1)),
        (int | None, '{"value":null}', None),
        (Annotated[Refund | Other, Field(discriminator="kind")], '{"value":{"kind":"other"}}', Other(kind="other")),
    ],
)
def test_a_json_text_becomes_a_value_of_the_type_and_its_words_can_be_read_again(
    kind: Any, text: str, value: Any
) -> None:
    assert read(kind, text) == value
    whole = prepare(kind, "X").whole
    assert whole is not None
    words = whole.write(value)
    assert read(kind, f'{{"value":{words}}}' if "value" in whole.schema.get("properties", ()) else words) == value


@pytest.mark.parametrize("kind", [lambda x: x, len, 5, "Nowhere", Any.__class__, Callable[[int], int], Unknown])
def test_a_type_without_a_json_schema_is_refused_when_the_agent_is_built(kind: Any) -> None:
    with pytest.raises(BuildError, match="output type"):
        Agent("X", model=ScriptedModel(), output_type=kind)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "magic"},
        {"retries": -1},
        {"retries": True},
        {"on_exhausted": "shrug"},
        {"on_exhausted": "fallback"},
        {"fallback": 3},
        {"on_exhausted": "fallback", "fallback": "three"},
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        Agent("X", model=ScriptedModel(), output_type=Output(int, **options))


def test_a_name_that_no_tool_can_have_is_refused() -> None:
    with pytest.raises(UnfitName):
        Output(int, name="the answer")


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (Invoice, '{"total":"many"}', ["id: Field required", "total: Input should be a valid integer"]),
        (Invoice, "[]", ["the answer: Input should be an object"]),
        (Invoice, "{", ["the answer: Invalid JSON"]),
        (list[int], '{"value":[1,"x"]}', ["value.1: Input should be a valid integer"]),
        (int, '{"value":1,"more":2}', ["more: Extra inputs are not permitted"]),
        (Folder, '{"name":"a","within":[{}]}', ["within.0.name: Field required"]),
    ],
)
def test_what_is_wrong_is_told_by_place(kind: Any, text: str, told: list[str]) -> None:
    said = problem(kind, text)
    assert [part for part in told if part not in said] == []


def test_what_was_found_is_not_told() -> None:
    assert "sk-live-123" not in problem(Invoice, '{"id":["sk-live-123"],"total":"sk-live-123"}')


def test_of_many_problems_the_first_are_told_and_the_others_counted() -> None:
    said = problem(list[int], json.dumps({"value": ["x"] * 25}))
    assert (said.count("should be a valid integer"), said.endswith("and 15 more")) == (10, True)


def test_a_check_that_raises_anything_is_not_passed() -> None:
    assert problem(Careful, '{"word":"b"}') == "the check of the answer failed with KeyError"


def test_a_null_where_something_may_be_left_out_is_left_out() -> None:
    assert read(Invoice, '{"id":"7","total":null,"remark":null}') == Invoice(id="7")
    assert read(Row, '{"what":"a","count":null}') == {"what": "a"}
    assert "id: Input should be a valid string" in problem(Invoice, '{"id":null}')


def test_half_a_surrogate_pair_is_read_as_a_replacement() -> None:
    assert read(Invoice, '{"id":"a\\ud83d"}') == Invoice(id="a\ufffd")


def test_a_union_has_its_variants_and_words_among_them_are_plain() -> None:
    prepared = prepare(Invoice | str | list[int] | None, "X")
    assert [shape.label for shape in prepared.variants] == ["Invoice", "list[int]", "None"]
    assert (prepared.words, prepared.label) == (True, "Invoice | str | list[int] | None")


def test_a_union_with_a_check_of_its_own_is_one_variant() -> None:
    checked = Annotated[Invoice | Point, BeforeValidator(lambda value: value)]
    assert len(prepare(checked, "X").variants) == 1


def test_plain_words_are_asked_for_without_a_shape() -> None:
    prepared = prepare(str, "X")
    assert (prepared.whole, prepared.variants, prepared.words) == (None, (), True)
