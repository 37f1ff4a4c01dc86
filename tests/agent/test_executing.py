"""A tool's arguments are checked once, and what it gives or raises is told for what it is."""

import asyncio
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from agent.desks import answers, failure, hear, result_of, roles, tasks
from handrail.agent import Agent, BuildError, RunContext, ScriptedModel, Tool, ToolFailed, tool
from handrail.agent.events import ToolEnd
from handrail.agent.kernel import Middleware, ToolRequest, ToolResponse
from handrail.agent.tools import ErrorClass
from handrail.filters import Image, Text, ToolCall, breaches, call

CHECKS: list[int] = []


def counted(value: int) -> int:
    CHECKS.append(value)
    if value < 0:
        raise ValueError("not below 0")
    return value


class Layer(Middleware):
    """A tool layer that is a function of the request."""

    def __init__(self, fn: Any = None, name: str = "Layer") -> None:
        self.fn = fn
        self.name = name

    async def around_tool(self, request: ToolRequest, call_next: Any) -> ToolResponse:
        if self.fn is None:
            return await call_next(request)
        return await self.fn(request, call_next)


async def half(n: Annotated[int, AfterValidator(counted)]) -> str:
    return str(n / 2)


async def ended(calls: Any, *tools: Any, **options: Any) -> Any:
    """The view of a run in which these calls were made and answered."""
    result = await Agent("X", model=ScriptedModel(calls, "done"), tools=tools, **options).run("go")
    assert result.output == "done"
    return result.messages


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize(("n", "text"), [(4, "2.0"), (-1, "Invalid arguments: n: Value error, not below 0")])
async def test_arguments_are_checked_once_however_many_layers_look_at_them(layers: int, n: int, text: str) -> None:
    CHECKS.clear()
    passing = [Layer(name=f"layer {number}") for number in range(layers)]
    view = await ended(call("half", call_id="c1", n=n), half, middleware=passing)
    assert (CHECKS, answers(view)) == ([n], [("c1", text)])


async def test_a_layer_sees_a_call_whose_arguments_do_not_fit_but_none_that_is_no_json() -> None:
    seen: list[str] = []

    async def look(request: ToolRequest, call_next: Any) -> Any:
        seen.append(request.call.id)
        return await call_next(request)

    calls = [call("half", call_id="c1", n=-1), ToolCall("c2", "half", '{"n":'), ToolCall("c3", "half", "[4]")]
    view = await ended(calls, half, middleware=[Layer(look)])
    assert seen == ["c1"]
    assert [result_of(view, each.id).is_error for each in calls] == [True, True, True]


async def test_what_a_layer_changes_is_checked_again_and_another_tool_checks_for_itself() -> None:
    async def twice(n: Annotated[int, AfterValidator(counted)]) -> str:
        return str(n * 2)

    async def change(request: ToolRequest, call_next: Any) -> Any:
        if request.arguments["n"] == 4:
            return await call_next(request.replace(arguments={"n": 6}))
        return await call_next(request.replace(tool=tool(twice)))

    CHECKS.clear()
    calls = [call("half", call_id="c1", n=4), call("half", call_id="c2", n=5)]
    view = await ended(calls, half, middleware=[Layer(change)])
    assert answers(view) == [("c1", "3.0"), ("c2", "10")]
    assert sorted(CHECKS) == [4, 5, 5, 6]


async def test_a_call_that_a_layer_makes_twice_has_arguments_of_its_own_each_time() -> None:
    seen: list[list[int]] = []

    async def eat(numbers: list[int]) -> str:
        seen.append(list(numbers))
        numbers.clear()
        return "eaten"

    async def again(request: ToolRequest, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    await ended(call("eat", numbers=[1, 2]), eat, middleware=[Layer(again)])
    assert seen == [[1, 2], [1, 2]]


async def test_a_tool_may_say_itself_what_the_model_is_shown_how_secret_it_is_and_that_it_failed() -> None:
    async def it(n: int) -> ToolResponse:
        if n == 1:
            return ToolResponse({"rows": 9}, content="9 rows", sensitivity="secret")
        if n == 2:
            return ToolResponse(content=[Text("look"), Image(url="https://example.org/a.png")])
        return ToolResponse(content="no such order", is_error=True, error_class="odd" if n == 3 else "transient")

    classes: list[str] = []

    async def look(request: ToolRequest, call_next: Any) -> Any:
        response = await call_next(request)
        classes.append(response.error_class)
        return response

    calls = [call("it", call_id=f"c{n}", n=n) for n in (1, 2, 3, 4)]
    view = await ended(calls, tool(output_sensitivity="internal", sequential=True)(it), middleware=[Layer(look)])
    first, second, third, _ = [result_of(view, each.id) for each in calls]
    assert (first.text, first.sensitivity, first.is_error) == ("9 rows", "secret", False)
    assert (second.content[1], second.sensitivity) == (Image(url="https://example.org/a.png"), "internal")
    assert (third.text, third.is_error) == ("no such order", True)
    assert classes == ["", "", "failed", "transient"]


async def hang() -> None:
    await asyncio.Event().wait()


async def cancels_itself() -> None:
    raise asyncio.CancelledError


async def raises() -> None:
    raise ValueError("bad")


async def down() -> None:
    raise ConnectionError("down")


@pytest.mark.parametrize(
    ("made", "error_class"),
    [
        (raises, "failed"),
        (down, "transient"),
        (tool(timeout=0.01)(hang), "timeout"),
        (cancels_itself, "failed"),
        (tool(name="missing")(raises), "invalid_arguments"),
    ],
)
async def test_each_failure_is_of_one_class_and_told_by_default(made: Any, error_class: ErrorClass) -> None:
    name = made.name if isinstance(made, Tool) else made.__name__
    asked = call(name, n=1) if name == "missing" else call(name)
    view = await ended(asked, made)
    assert view[-2].is_error
    error = await failure_of(asked, made, {error_class: "raise"})
    assert error is not None
    others = {each: "raise" for each in ("failed", "transient", "denied", "invalid_arguments") if each != error_class}
    assert await failure_of(asked, made, others) is None


async def failure_of(asked: ToolCall, made: Any, tool_errors: Any) -> BaseException | None:
    try:
        await Agent("X", model=ScriptedModel(asked, "done"), tools=[made], tool_errors=tool_errors).run("go")
    except (ToolFailed, ValueError, ConnectionError) as error:
        return error
    return None


async def test_an_error_that_ends_the_run_is_the_tools_own_and_the_others_are_stopped_first() -> None:
    stopped: list[str] = []

    async def slow_ok() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("slow_ok")
        return "ok"

    agent = Agent(
        "X",
        model=ScriptedModel([call("raises", call_id="c2"), call("slow_ok", call_id="c4")]),
        tools=[raises, slow_ok],
        tool_errors={"failed": "raise"},
    )
    async with asyncio.timeout(1):
        with pytest.raises(ValueError, match="bad") as raised:
            await agent.run("go")
    assert type(raised.value) is ValueError
    assert "raises" in [entry.name for entry in raised.traceback]
    assert (stopped, tasks()) == (["slow_ok"], set())


async def test_where_no_exception_was_raised_the_run_ends_with_one_that_names_tool_and_class() -> None:
    asked = [call("half", call_id="c1", n=4), call("half", call_id="c2", n=-1)]
    agent = Agent("X", model=ScriptedModel(asked), tools=[half], tool_errors={"invalid_arguments": "raise"})
    error = await failure(agent, "go")
    assert isinstance(error, ToolFailed)
    assert (error.tool, error.error_class) == ("half", "invalid_arguments")
    assert (roles(error.messages), breaches(error.messages)) == ("uatt", [])
    assert "not below 0" in result_of(error.messages, "c2").text


async def test_a_layer_that_makes_a_success_of_a_failure_saves_the_run() -> None:
    async def mend(request: ToolRequest, call_next: Any) -> Any:
        response = await call_next(request)
        assert isinstance(response.error, ValueError)
        return ToolResponse("mended")

    view = await ended(call("raises", call_id="c1"), raises, middleware=[Layer(mend)], tool_errors={"failed": "raise"})
    assert answers(view) == [("c1", "mended")]


@pytest.mark.parametrize("tool_errors", [{"faild": "raise"}, {"failed": "stop"}, {"failed": True}])
def test_a_class_or_a_policy_that_there_is_not_is_refused(tool_errors: Any) -> None:
    with pytest.raises(BuildError, match="tool_errors of X"):
        Agent("X", model=ScriptedModel(), tool_errors=tool_errors)


async def test_an_error_without_a_text_of_its_own_is_told_by_its_type() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise LookupError

    async def it() -> None:
        raise Odd

    assert answers(await ended(call("it", call_id="c1"), it)) == [("c1", "Odd")]


async def test_a_failed_call_that_ends_the_run_was_still_heard() -> None:
    agent = Agent("X", model=ScriptedModel(call("raises")), tools=[raises], tool_errors={"failed": "raise"})
    heard = await hear(agent, "go")
    assert type(heard.error) is ValueError
    assert [event.result.text for event in heard.of(ToolEnd)] == ["ValueError: bad"]


async def test_the_key_of_a_call_reaches_the_tool() -> None:
    @tool(idempotency_key=lambda arguments: f"order-{arguments['n']}")
    async def pay(n: int, run: RunContext[None]) -> str:
        return run.key

    view = await ended(call("pay", call_id="c1", n=7), pay)
    assert answers(view) == [("c1", "order-7")]
