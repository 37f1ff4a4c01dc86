"""A tool's signature is its schema, and its arguments are checked before it runs."""

import asyncio
import contextvars
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Optional

import pytest
from pydantic import BaseModel

from agent.desks import requests, result_of
from handrail.agent import Agent, BuildError, RunContext, ScriptedModel, Tool, UnfitName, tool
from handrail.agent.kernel import Middleware, ToolRequest
from handrail.agent.tools import InvalidArguments
from handrail.filters import ToolCall, call

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT")


class Colour(Enum):
    RED = "red"


class Place(BaseModel):
    city: str
    zip: int = 0


def parameters(fn: Any) -> Mapping[str, Any]:
    return tool(fn).prepare().spec.parameters


async def once(fn: Any, text: str, **options: Any) -> Any:
    """The result of one call of a tool, made by an agent."""
    model = ScriptedModel(ToolCall("c1", "it", text), "done")
    made = fn if isinstance(fn, Tool) else tool(name="it", **options)(fn)
    result = await Agent("X", model=model, tools=[made]).run("go", deps={"tenant": "t-1"})
    assert result.output == "done"
    return result_of(result.messages, "c1")


def test_names_types_defaults_and_descriptions_come_from_the_signature_and_the_docstring() -> None:
    def find(what: str, limit: int = 10, *, kind: Literal["a", "b"] = "a") -> str:
        """Finds things.

        Args:
            what: What to look for.
            limit: How many at most.
        """
        return what

    spec = tool(find).prepare().spec
    assert (spec.name, spec.description) == ("find", "Finds things.")
    assert spec.parameters["required"] == ["what"]
    assert spec.parameters["properties"]["what"] == {"type": "string", "description": "What to look for."}
    assert spec.parameters["properties"]["limit"]["default"] == 10
    assert spec.parameters["properties"]["kind"]["enum"] == ["a", "b"]
    assert spec.parameters["additionalProperties"] is False


def test_a_tool_without_parameters_has_an_object_schema() -> None:
    def now() -> str:
        return "noon"

    assert parameters(now)["type"] == "object"
    assert parameters(now)["properties"] == {}


def test_the_context_is_given_and_not_in_the_schema() -> None:
    def bare(context: RunContext, n: int) -> int:
        return n

    def typed(n: int, *, context: RunContext[dict[str, str]]) -> int:
        return n

    assert list(parameters(bare)["properties"]) == list(parameters(typed)["properties"]) == ["n"]


async def test_a_tool_sees_deps_path_and_the_call_it_serves() -> None:
    async def it(context: RunContext[dict[str, str]]) -> str:
        return f"{context.deps['tenant']} {context.agent} {context.path} {context.call_id} {context.step}"

    assert (await once(it, "")).text == "t-1 X X c1 1"


async def test_models_enums_and_options_arrive_as_python_values() -> None:
    async def it(place: Place, colour: Colour, tags: list[str], note: Optional[str] = None) -> str:  # noqa: UP045  # as people write it
        return f"{place!r} {colour!r} {tags} {note}"

    given = '{"place": {"city": "Rome"}, "colour": "red", "tags": ["x"]}'
    assert (await once(it, given)).text == "Place(city='Rome', zip=0) <Colour.RED: 'red'> ['x'] None"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"n": "seven"}', "n: "),
        ("{}", "n: "),
        ('{"n": 1, "m": 2}', "m: "),
        ('{"n": 1', "not a JSON object"),
        ("[1]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("7", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"n": ' + "9" * 5000 + "}", "n"),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_for_the_model_that_says_where(arguments: str, found: str) -> None:
    async def it(n: int) -> int:
        raise AssertionError("it must not run")

    result = await once(it, arguments)
    assert result.is_error
    assert found in result.text
    assert len(result.text) < 1000


@pytest.mark.parametrize("by_schema", [False, True])
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"n": "hunter2"}', "n"),
        ('{"n": 1, "m": "hunter2"}', "m"),
        ('{"n": 1, "m": hunter2}', "at character 15 of 22"),
        ('{"n": "hunter2', "at character 7 of 14"),
        ('["hunter2"]', "not a JSON object"),
    ],
)
async def test_arguments_that_cannot_be_taken_are_not_told_again_but_for_where_they_are_wrong(
    arguments: str, found: str, by_schema: bool
) -> None:
    async def it(n: int) -> int:
        raise AssertionError("it must not run")

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    result = await once(Tool.from_json_schema("it", "", schema, it) if by_schema else it, arguments)
    assert result.is_error
    assert (found in result.text, "hunter2" in result.text) == (True, False)


@pytest.mark.parametrize("arguments", ["", " ", "\n", "{}", " { } "])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    async def it() -> str:
        return "healthy"

    result = await once(it, arguments)
    assert (result.text, result.is_error) == ("healthy", False)


async def test_numbers_of_any_size_arrive_digit_for_digit_and_keep_their_kind() -> None:
    async def it(id: int, big: Any, f: Any, e: Any, neg0: float) -> str:
        return repr([id, big, f, e, neg0])

    given = '{"id": 2512292042121000001, "big": 123456789012345678901234567890, "f": 1.0, "e": 1e3, "neg0": -0.0}'
    assert (await once(it, given)).text == "[2512292042121000001, 123456789012345678901234567890, 1.0, 1000.0, -0.0]"
    by_schema = Tool.from_json_schema("it", "", {"type": "object"}, it)
    assert (await once(by_schema, given)).text.startswith("[2512292042121000001, 123456789012345678901234567890, 1.0,")


@pytest.mark.parametrize("by_schema", [False, True])
async def test_half_a_surrogate_pair_in_arguments_or_result_is_replaced(by_schema: bool) -> None:
    async def it(q: str) -> str:
        return f"{q} \ud83d \ud83c\udf78 é 北"

    made = Tool.from_json_schema("it", "", {"type": "object"}, it) if by_schema else it
    result = await once(made, '{"q": "\\udc97"}')
    assert (result.text, result.is_error) == ("\ufffd \ufffd 🍸 é 北", False)


async def test_a_key_of_half_a_pair_is_an_error_for_the_model() -> None:
    async def it(q: str = "") -> str:
        return q

    result = await once(it, '{"\\ud800": 1}')
    assert result.is_error
    assert result.digest


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "integer"}, "hunter2", '#/n: it is not of type "integer"'),
        ({"enum": [10, 20]}, "hunter2", "#/n: it is not one of 10, 20"),
        ({"const": 10}, 1, "#/n: 10 was expected"),
        ({"pattern": "^a"}, "hunter2", '#/n: it does not match "^a"'),
        ({"items": False}, ["hunter2"], "#/n/0: it is not allowed"),
        ({"unevaluatedItems": False}, ["hunter2"], "#/n: Unevaluated items are not allowed (1 item)"),
        ({"allOf": [False]}, "hunter2", "#/n: it is not allowed"),
        (
            {"anyOf": [{"type": "null"}, {"type": "integer"}]},
            "hunter2",
            '#/n: it fits none of 2 possibilities; of the nearest, #/n: it is not of type "null"',
        ),
    ],
)
async def test_a_json_schema_says_what_is_allowed_and_not_what_was_found(schema: Any, value: Any, told: str) -> None:
    async def it(**given: Any) -> str:
        raise AssertionError("it must not run")

    made = Tool.from_json_schema("it", "", {"type": "object", "properties": {"n": schema}}, it)
    assert (await once(made, json.dumps({"n": value}))).text == f"Invalid arguments: {told}"


async def test_a_json_schema_is_checked_with_the_place_of_the_mistake() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}

    async def it(**given: Any) -> str:
        return repr(given)

    made = Tool.from_json_schema("it", "Counts.", schema, it, side_effects="pure")
    assert (await once(made, '{"n": 3, "x": 1}')).text == "{'n': 3, 'x': 1}"
    bad = await once(made, '{"n": 0}')
    assert (bad.is_error, "#/n: it is less than the minimum of 1" in bad.text) == (True, True)
    for text in ("[]", "7", "{"):
        assert (await once(made, text)).is_error


def test_the_schema_given_is_not_changed_and_a_broken_one_is_refused() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = Tool.from_json_schema("it", "", schema, requests)
    made.prepare()
    assert schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    with pytest.raises(BuildError, match="the tool it: #/type: "):
        Agent("X", model=ScriptedModel(), tools=[Tool.from_json_schema("it", "", {"type": "objekt"}, requests)])


def with_stars(*args: int) -> None: ...
def with_options(**options: int) -> None: ...
def by_place(n: int, /) -> None: ...
def of_what(n: "Nothing") -> None: ...  # type: ignore[name-defined]  # noqa: F821  # what is tested
def of_a_thing(n: asyncio.Event) -> None: ...


@pytest.mark.parametrize("fn", [with_stars, with_options, by_place, of_what, of_a_thing])
def test_a_signature_that_json_cannot_fill_is_refused_when_the_agent_is_made(fn: Any) -> None:
    with pytest.raises(BuildError, match=fn.__name__):
        Agent("X", model=ScriptedModel(), tools=[fn])


@pytest.mark.parametrize(
    ("options", "error"),
    [({"name": "no good"}, UnfitName), ({"side_effects": "some"}, BuildError), ({"timeout": 0}, BuildError)],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], error: type[BuildError]) -> None:
    with pytest.raises(error):
        tool(**options)(by_place)


def test_a_lambda_needs_a_name_and_a_callable_object_has_its_own() -> None:
    class Adder:
        """Adds one."""

        async def __call__(self, n: int) -> int:
            return n + 1

    with pytest.raises(UnfitName):
        tool(lambda: "x")
    made = tool(Adder())
    assert (made.name, list(made.prepare().spec.parameters["properties"])) == ("Adder", ["n"])


async def test_sync_tools_async_tools_and_hooks_see_the_callers_context_variables() -> None:
    seen: list[str] = []

    class Watch(Middleware):
        async def around_tool(self, request: ToolRequest, call_next: Any) -> Any:
            seen.append(TENANT.get())
            return await call_next(request)

    def sync() -> None:
        seen.append(TENANT.get())
        TENANT.set("changed")

    async def other() -> None:
        seen.append(TENANT.get())

    TENANT.set("t-1")
    model = ScriptedModel([call("sync"), call("other")], call("sync"), "done")
    await Agent("X", model=model, tools=[sync, other], middleware=[Watch()]).run("go")
    assert seen == ["t-1"] * 6
    assert TENANT.get() == "t-1"


async def test_two_runs_at_once_never_see_each_others_context_variables() -> None:
    async def one(tenant: str) -> list[str]:
        seen: list[str] = []

        def look() -> None:
            seen.append(TENANT.get())

        TENANT.set(tenant)
        model = ScriptedModel([call("look") for _ in range(50)], "done")
        await Agent("X", model=model, tools=[look]).run("go")
        return seen

    both = await asyncio.gather(asyncio.create_task(one("t-1")), asyncio.create_task(one("t-2")))
    assert list(both) == [["t-1"] * 50, ["t-2"] * 50]


async def test_a_sync_tool_does_not_hold_up_the_event_loop() -> None:
    loop, released = asyncio.get_running_loop(), asyncio.Event()

    def it() -> str:
        asyncio.run_coroutine_threadsafe(_set(released), loop).result(5)
        return "released"

    assert (await once(it, "")).text == "released"


async def _set(event: asyncio.Event) -> None:
    event.set()


async def test_a_sync_function_may_return_an_awaitable() -> None:
    async def later() -> str:
        return "awaited"

    assert (await once(lambda: later(), "")).text == "awaited"


def test_a_check_is_told_in_words_that_hold_nothing_of_what_was_given() -> None:
    def it(card: int) -> int:
        return card

    with pytest.raises(InvalidArguments) as raised:
        tool(it).prepare().check('{"card": "4111-1111"}')
    assert "card" in str(raised.value)
    assert "4111" not in str(raised.value)


async def test_an_output_label_is_on_the_result() -> None:
    async def it() -> str:
        return "key"

    assert (await once(it, "", output_sensitivity="secret")).sensitivity == "secret"


async def test_a_null_that_a_parameter_does_not_take_is_that_parameter_left_out() -> None:
    def find(what: str, limit: int = 5, place: Place | None = None, kinds: list[Place] | None = None) -> str:
        return f"{what} {limit} {place} {kinds}"

    assert (await once(find, '{"what":"x","limit":null,"place":null}')).text == "x 5 None None"
    assert "zip=0" in (await once(find, '{"what":"x","place":{"city":"P","zip":null}}')).text
    assert "zip=0" in (await once(find, '{"what":"x","kinds":[{"city":"P","zip":null}]}')).text
    refused = await once(find, '{"what":null,"limit":null}')
    assert refused.text == (
        "Invalid arguments: what: Input should be a valid string; limit: Input should be a valid integer"
    )


async def test_a_null_that_a_schema_does_not_take_is_that_parameter_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    made = Tool.from_json_schema("it", "Does it.", schema, lambda **given: given)
    assert (await once(made, '{"a":"x","b":null}')).text == '{"a":"x"}'
    refused = await once(made, '{"a":null}')
    assert refused.is_error
    assert '#/a: it is not of type "string"' in refused.text


@pytest.mark.parametrize("reference", ["https://example.org/money.json", "#/$defs/money"])
def test_a_schema_that_refers_to_what_it_does_not_hold_is_refused_and_nothing_is_fetched(reference: str) -> None:
    schema = {"type": "object", "properties": {"price": {"$ref": reference}}}
    with pytest.raises(
        BuildError, match=r"the tool it: #/properties/price/\$ref: .* leads to no schema; nothing is fetched"
    ):
        Agent("X", model=ScriptedModel(), tools=[Tool.from_json_schema("it", "", schema, print)])
    held = {**schema, "$defs": {"money": {"$id": "https://example.org/money.json", "type": "number"}}}
    Agent("X", model=ScriptedModel(), tools=[Tool.from_json_schema("it", "", held, print)])


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "array"}, "no object can fit"),
        ({"type": ["string", "null"]}, "no object can fit"),
        ({"enum": [1, "a"]}, "no object can fit"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "no object can fit"),
        ({"anyOf": [{"type": "string"}, False]}, "no object can fit"),
        ({"type": "object", "allOf": [{"type": "object"}, {"const": 1}]}, "no object can fit"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "refers to itself without end"),
        ({"properties": {"a": {"pattern": "["}}}, "the keyword 'pattern'"),
    ],
)
def test_a_schema_that_no_call_could_fit_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Agent("X", model=ScriptedModel(), tools=[Tool.from_json_schema("it", "", schema, print)])


async def test_what_a_schema_from_elsewhere_says_beside_the_draft_means_nothing() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {
            "a": {"type": "string", "nullable": True, "example": "x", "format": "currency", "ui": {"type": 5}},
            "b": {"$ref": "#/components/schemas/b"},
        },
        "components": {"schemas": {"b": {"type": "integer", "markdownDescription": "b"}}},
    }
    made = Tool.from_json_schema("it", "", schema, lambda **given: given)
    assert (await once(made, '{"a":"x","b":1}')).text == '{"a":"x","b":1}'
    assert "#/b: it is not of type" in (await once(made, '{"a":"x","b":"1"}')).text


async def test_a_pattern_that_goes_back_and_back_does_not_stop_the_loop() -> None:
    for pattern in ("^(a+)+$", r"^(a|a)*(?=b)\1$"):
        schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
        made = Tool.from_json_schema("it", "", schema, lambda **given: given)
        refused = await once(made, f'{{"a":"{"a" * 5_000}!"}}')
        assert refused.text.startswith("Invalid arguments: #/a: it")


async def test_arguments_that_are_nested_too_deep_are_refused() -> None:
    made = Tool.from_json_schema("it", "", {"type": "object"}, lambda **given: len(given))
    assert (await once(made, '{"a":' * 99 + "1" + "}" * 99)).text == "1"
    assert "deeper than 100 levels" in (await once(made, '{"a":' * 101 + "1" + "}" * 101)).text
