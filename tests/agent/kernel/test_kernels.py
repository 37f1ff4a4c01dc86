"""The chains without the loop: one model call or one tool call, through the layers."""

from typing import Any

import pytest

from agent.desks import texts
from handrail.agent import BuildError, FunctionModel, LimitExceeded, Limits, ModelUnavailable, NameClash, ScriptedModel
from handrail.agent.events import MessageDone, Text
from handrail.agent.kernel import (
    Kernel,
    Middleware,
    ToolResponse,
    around_chat,
    around_tool,
    before_model,
)
from handrail.filters import assistant, call, user
from handrail.sessions import Usage

ECHO = FunctionModel(lambda request: f"heard {', '.join(texts(request.messages))}")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def test_a_chat_is_one_model_call_through_the_chat_chain_and_runs_no_tools() -> None:
    async def louder(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.replace(message=response.message.replace(content=f"{response.message.text}!"))

    kernel = Kernel(ECHO, [add], [around_chat(louder)])
    assert (await kernel.chat("Hi")).message.text == "heard Hi!"
    assert (await kernel.chat([user("one"), assistant("two"), user("three")])).message.text == "heard one, two, three!"
    asking = Kernel(ScriptedModel(call("add", call_id="c1", a=1, b=2)), [add])
    response = await asking.chat(user("Add."))
    assert (response.finish_reason, len(response.message.tool_calls)) == ("tool_calls", 1)


async def test_a_tool_call_goes_once_through_the_tool_chain_with_its_arguments_as_object_or_text() -> None:
    async def tenfold(request: Any, call_next: Any) -> Any:
        return (await call_next(request)).replace(value=10 * (await call_next(request)).value)

    kernel = Kernel(ECHO, [add], [around_tool(tenfold)])
    assert (await kernel.tool("add", {"a": 1, "b": 2})).value == 30
    assert (await kernel.tool("add", '{"a": 1, "b": 2}')).value == 30


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("ad", "{}", "There is no tool 'ad'. Did you mean add?"),
        ("add", '{"a": 1}', "Invalid arguments"),
        ("add", "{broken", "not a JSON object"),
    ],
)
async def test_a_call_that_cannot_run_gives_what_the_model_would_be_told(name: str, arguments: str, found: str) -> None:
    response = await Kernel(ECHO, [add]).tool(name, arguments)
    assert (response.is_error, response.error_class) == (True, "invalid_arguments")
    assert found in str(response.content)


async def test_a_stream_gives_the_same_answer_in_pieces() -> None:
    events = []
    async with Kernel(ECHO).chat_stream("one two") as stream:
        async for event in stream:
            events.append(event)
    assert [event.text for event in events if isinstance(event, Text)] == ["heard ", "one ", "two"]
    assert isinstance(events[-1], MessageDone)
    assert stream.result.message.text == "heard one two"


async def test_instructions_and_settings_are_those_of_the_call() -> None:
    model = ScriptedModel("a", "b")
    brings = type("Brings", (Middleware,), {"instructions": "Always."})()
    kernel = Kernel(model, middleware=[brings])
    await kernel.chat("Hi", instructions="Be brief.")
    await kernel.chat("Hi", instructions={"tone": "kind"})
    assert [dict(request.instructions) for request in model.requests] == [
        {"Brings": "Always.", "agent": "Be brief."},
        {"Brings": "Always.", "tone": "kind"},
    ]


async def test_layers_keep_their_memory_from_call_to_call_and_in_both_chains() -> None:
    class Count(Middleware):
        def init_state(self) -> dict[str, Any]:
            return {"n": 0}

        async def _count(self, request: Any, call_next: Any) -> Any:
            request.state["n"] += 1
            counts.append(request.state["n"])
            return await call_next(request)

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await self._count(request, call_next)

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await self._count(request, call_next)

    counts: list[int] = []
    kernel = Kernel(ECHO, [add], [Count()])
    await kernel.chat("Hi")
    await kernel.tool("add", {"a": 1, "b": 2})
    await kernel.chat("Hi")
    await Kernel(ECHO, [add], [Count()]).chat("Hi")
    assert counts == [1, 2, 3, 1]


async def test_limits_hold_over_all_calls_and_errors_travel_outward() -> None:
    kernel = Kernel(ECHO, [add], limits=Limits(max_steps=1, max_tool_calls=1))
    await kernel.chat("Hi")
    await kernel.tool("add", {"a": 1, "b": 2})
    with pytest.raises(LimitExceeded, match="max_steps=1"):
        await kernel.chat("Hi")
    with pytest.raises(LimitExceeded, match="max_tool_calls=1"):
        await kernel.tool("add", {"a": 1, "b": 2})
    with pytest.raises(ModelUnavailable):
        await Kernel(ScriptedModel(ModelUnavailable("busy"))).chat("Hi")


async def test_deps_reach_layers_and_what_a_call_costs_comes_back() -> None:
    async def look(request: Any, call_next: Any) -> Any:
        seen.append(request.run.deps)
        return await call_next(request)

    seen: list[Any] = []
    response = await Kernel(ECHO, middleware=[around_chat(look)], deps="mine").chat("Hi")
    assert (seen, response.usage) == (["mine"], Usage(requests=1))


@pytest.mark.parametrize("messages", [[], [7], 7])
async def test_what_is_no_message_is_refused(messages: Any) -> None:
    with pytest.raises(BuildError, match="text, a message, or messages"):
        await Kernel(ECHO).chat(messages)


async def test_a_wrong_response_names_the_layer() -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        return None

    with pytest.raises(Exception, match=r"wrong\.around_chat of kernel returned NoneType, not a ChatResponse"):
        await Kernel(ECHO, middleware=[around_chat(wrong)]).chat("Hi")
    with pytest.raises(Exception, match=r"wrong\.around_tool of kernel returned NoneType, not a ToolResponse"):
        await Kernel(ECHO, [add], [around_tool(wrong)]).tool("add", {"a": 1, "b": 2})


def test_a_kernel_is_refused_and_described_as_an_agent_is() -> None:
    with pytest.raises(NameClash, match="'add'"):
        Kernel(ECHO, [add, add])

    async def around(request: Any, call_next: Any) -> Any:
        return ToolResponse()

    assert "tool: around > tool" in Kernel(ECHO, [add], [around_tool(around)]).describe()


async def test_a_layer_that_a_kernel_would_never_call_is_refused_and_its_other_hooks_take_no_part() -> None:
    async def never(state: Any, run: Any) -> Any:
        raise AssertionError("it must not run")

    with pytest.raises(BuildError, match="never has no hook that a kernel calls"):
        Kernel(ECHO, middleware=[before_model(never)])

    class Both(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            raise AssertionError("it must not run")

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request)

    assert (await Kernel(ECHO, middleware=[Both()]).chat("Hi")).message.text == "heard Hi"
