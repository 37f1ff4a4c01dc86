"""An answer is JSON that fits its schema, or is given again with what is wrong; its value is the output."""

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, field_validator

from agent.desks import failure, texts
from handrail.agent import Agent, BuildError, ScriptedModel
from handrail.agent.errors import InvalidOutput
from handrail.agent.kernel import Verdict
from handrail.agent.middleware import SchemaValidation, Validation
from handrail.filters import Refusal, assistant
from handrail.sessions import Session

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "pattern": "^[A-Z]"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
ADA = '{"name": "Ada", "age": 36}'


class Person(BaseModel):
    name: str = Field(pattern="^[A-Z]")
    age: int = Field(ge=0)
    kind: Literal["a", "b"] = "a"


def desk(*answers: Any, schema: Any = PERSON, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(*answers)
    return Agent("desk", model=model, middleware=[SchemaValidation(schema, **options)]), model


async def test_the_value_of_the_answer_is_the_output_and_stands_in_the_verdict() -> None:
    agent, _ = desk(f"Here:\n```json\n{ADA}\n```")
    result = await agent.run("Who?")
    assert result.verdict == Verdict(valid=True, by="SchemaValidation", value={"name": "Ada", "age": 36})
    assert result.output is result.verdict.value
    assert result.messages[-1].text.startswith("Here:")


async def test_what_is_wrong_is_fed_back_place_by_place() -> None:
    agent, model = desk('{"name": "ada", "age": -1}', ADA)
    await agent.run("Who?")
    bad, feedback = model.requests[1].messages[-2:]
    assert bad.text == '{"name": "ada", "age": -1}'
    assert '#/age: it is less than the minimum of 0; #/name: it does not match "^[A-Z]"' in feedback.text


async def test_no_more_than_so_many_problems_are_fed_back() -> None:
    agent, model = desk('{"name": "ada", "age": -1}', ADA, max_errors=1)
    await agent.run("Who?")
    assert "#/age: it is less than the minimum of 0; and 1 more" in model.requests[1].messages[-1].text


@pytest.mark.parametrize(
    "answer",
    [
        "Ada, 36",
        "",
        f"{ADA} I hope that helps",
        '{"name": "Ada", "name": "Bob", "age": 36}',
        '{"name": "Ada", "age": NaN}',
        "[" * 50_000,
        assistant(Refusal("I would rather not.")),
    ],
)
async def test_what_is_not_one_json_value_is_no_answer(answer: Any) -> None:
    agent, _ = desk(answer, retries=0, schema=True)
    error = await failure(agent, "Who?")
    assert isinstance(error, InvalidOutput)
    assert error.reason.startswith("#: ")


async def test_a_fence_counts_only_where_it_may() -> None:
    agent, _ = desk(f"```\n{ADA}\n```", retries=0, code_fence=False)
    assert isinstance(await failure(agent, "Who?"), InvalidOutput)


async def test_a_type_that_pydantic_knows_stands_in_place_of_a_schema() -> None:
    agent, model = desk('{"name": "ada", "age": -1, "kind": "z"}', ADA, schema=Person)
    result = await agent.run("Who?")
    assert result.verdict == Verdict(valid=True, attempts=2, by="SchemaValidation", value=Person(name="Ada", age=36))
    said = model.requests[1].messages[-1].text
    assert "#/name: String should match pattern '^[A-Z]'" in said
    assert "#/kind: Input should be 'a' or 'b'" in said


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [(list[int], "[1, 2]", [1, 2]), (int | None, "null", None), (Literal["yes", "no"], '"no"', "no")],
)
async def test_any_such_type_will_do(kind: Any, answer: str, value: Any) -> None:
    agent, _ = desk(answer, schema=kind)
    assert (await agent.run("Well?")).output == value


async def test_a_validator_of_a_type_that_raises_is_a_no() -> None:
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            raise ZeroDivisionError("n=9041")

    agent, _ = desk('{"n": 9041}', schema=Odd, retries=0)
    error = await failure(agent, "Well?")
    assert isinstance(error, InvalidOutput)
    assert "9041" not in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("keys", ['{"name": "Ada", "age": 1, "age": 2}', '{"name": "Ada", "age": Infinity}'])
async def test_a_type_is_held_against_strict_json_too(keys: str) -> None:
    agent, _ = desk(keys, schema=Person, retries=0)
    assert isinstance(await failure(agent, "Who?"), InvalidOutput)


async def test_an_unfit_answer_may_be_returned_and_says_that_it_is() -> None:
    agent, _ = desk("no", "nay", retries=1, on_exhausted="return")
    result = await agent.run("Who?")
    assert result.output == "nay"
    assert result.verdict is not None
    assert (result.verdict.valid, result.verdict.attempts, result.verdict.value) == (False, 2, None)


@pytest.mark.parametrize(("fallback", "output"), [(ADA, {"name": "Ada", "age": 36}), ("Sorry.", "Sorry.")])
async def test_a_fallback_that_fits_is_read_like_an_answer(fallback: str, output: Any) -> None:
    agent, _ = desk("no", retries=0, on_exhausted="fallback", fallback=fallback)
    result = await agent.run("Who?")
    assert result.output == output
    assert texts(result.messages) == ["Who?", fallback]


@pytest.mark.parametrize("schema", [PERSON, Person])
async def test_a_fallback_that_does_not_fit_is_its_words(schema: Any) -> None:
    agent, _ = desk("no", schema=schema, retries=0, on_exhausted="fallback", fallback='{"name": "ada"}')
    assert (await agent.run("Who?")).output == '{"name": "ada"}'


async def test_a_check_outside_sees_the_value() -> None:
    model = ScriptedModel(ADA, '{"name": "Bo", "age": 7}')
    layers = [Validation(lambda person: person["age"] < 18), SchemaValidation(PERSON)]
    result = await Agent("desk", model=model, middleware=layers).run("Who?")
    assert result.verdict == Verdict(valid=True, attempts=2, by="Validation", value={"name": "Bo", "age": 7})


async def test_a_session_goes_on_with_the_answer_that_fitted(tmp_path: Path) -> None:
    agent, _ = desk("no", ADA)
    result = await agent.run("Who?", session=tmp_path / "s.jsonl")
    assert texts(Session(tmp_path / "s.jsonl").history()) == ["Who?", ADA]
    assert tuple(Session(tmp_path / "s.jsonl").history()) == tuple(result.messages)


class Later(BaseModel):
    x: "Nowhere"  # type: ignore[name-defined]  # noqa: F821  # what is tested


@pytest.mark.parametrize(
    ("schema", "options", "problem"),
    [
        ({"requird": []}, {}, "the schema of SchemaValidation: #/requird"),
        ("string", {}, "a JSON Schema or a type, not 'string'"),
        ([{"type": "string"}], {}, "a JSON Schema or a type"),
        (None, {}, "a JSON Schema or a type"),
        (lambda text: True, {}, "a JSON Schema or a type"),
        (Later, {}, "pydantic cannot check: name 'Nowhere' is not defined"),
        (PERSON, {"max_errors": 0}, "max_errors of SchemaValidation"),
        (PERSON, {"retries": -1}, "retries of SchemaValidation"),
    ],
)
def test_what_cannot_work_is_refused_when_the_layer_is_made(schema: Any, options: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        SchemaValidation(schema, **options)


async def test_a_fallback_on_which_a_types_validator_raises_is_its_text() -> None:
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            raise KeyError(n)

    agent, _ = desk('{"n": 1}', schema=Odd, retries=0, on_exhausted="fallback", fallback='{"n": 2}')
    assert (await agent.run("Well?")).output == '{"n": 2}'


@pytest.mark.parametrize(
    "options", [{"code_fence": 1}, {"formats": None}, {"keep_attempts": 1}, {"max_errors": 0}, {"schema": object()}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="SchemaValidation"):
        SchemaValidation(**{"schema": True, **options})
