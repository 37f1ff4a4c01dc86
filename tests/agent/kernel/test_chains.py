"""There is one onion: the first layer is outermost, and each does with the call what it likes."""

import asyncio
from typing import Any

import pytest

from agent.desks import hear, tasks
from handrail.agent import Agent, FunctionModel, ScriptedModel
from handrail.agent.kernel import (
    ChatRequest,
    HandoffResponse,
    Middleware,
    ToolRequest,
    ToolResponse,
    TurnResult,
    chain,
)
from handrail.agent.models import ChatResponse
from handrail.filters import assistant, call, user

HOOKS = ["around_turn", "around_chat", "around_tool", "around_handoff"]


async def double(request: Any) -> Any:
    return request * 2


def adding(number: int) -> Any:
    async def layer(request: Any, call_next: Any) -> Any:
        return await call_next(request + number) + number

    return layer


async def test_without_layers_a_chain_is_its_terminal() -> None:
    assert chain([], double) is double


async def test_the_first_layer_is_outermost() -> None:
    async def negate(request: Any, call_next: Any) -> Any:
        return -(await call_next(request))

    assert await chain([adding(1), negate], double)(3) == -8 + 1
    assert await chain([negate, adding(1)], double)(3) == -(8 + 1)


async def test_a_layer_that_does_not_call_on_keeps_the_inner_ones_from_running() -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        return 100

    async def never(request: Any) -> Any:
        raise AssertionError("it must not run")

    assert await chain([adding(1), instead, adding(5)], never)(3) == 101


async def test_a_layer_may_call_on_again_and_each_call_passes_all_inner_layers() -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        return await call_next(request) + await call_next(request)

    assert await chain([twice, adding(1)], double)(3) == 18


async def test_what_is_raised_travels_outward_and_may_be_caught_by_a_layer() -> None:
    async def fail(request: Any) -> Any:
        raise LookupError("gone")

    async def catch(request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except LookupError:
            return 0

    assert await chain([adding(1), catch, adding(2)], fail)(3) == 1
    with pytest.raises(LookupError, match="gone"):
        await chain([adding(1)], fail)(3)


class Watch(Middleware):
    """Notes every hook on the way in and out."""

    def __init__(self, name: str, order: list[str]) -> None:
        self.name = name
        self.order = order

    async def _watch(self, hook: str, request: Any, call_next: Any) -> Any:
        self.order.append(f"{self.name} {hook}(")
        try:
            return await call_next(request)
        finally:
            self.order.append(f"){self.name} {hook}")

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        return await self._watch("turn", request, call_next)

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await self._watch("chat", request, call_next)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        return await self._watch("tool", request, call_next)

    async def around_handoff(self, request: Any, call_next: Any) -> Any:
        return await self._watch("handoff", request, call_next)


async def ok() -> str:
    return "ok"


def both(order: list[str], *layers: Middleware) -> Agent:
    """An agent that calls a tool, then hands over to one that answers; two layers watch around the given ones."""
    model = ScriptedModel(call("ok", call_id="c1"), call("transfer_to_b", call_id="h1"), "done")
    watching = [Watch("1", order), *layers, Watch("2", order)]
    return Agent("A", model=model, tools=[ok], handoffs=[Agent("B", model=model)], middleware=watching)


async def test_all_hooks_of_an_agent_nest_in_list_order_around_one_another() -> None:
    order: list[str] = []
    assert (await both(order).run("go")).output == "done"
    chat = ["1 chat(", "2 chat(", ")2 chat", ")1 chat"]
    tool = ["1 tool(", "2 tool(", ")2 tool", ")1 tool"]
    crossing = ["1 handoff(", "2 handoff(", ")2 handoff", ")1 handoff"]
    assert order == ["1 turn(", "2 turn(", *chat, *tool, *chat, *crossing, ")2 turn", ")1 turn"]


def acting(hook: str, act: Any) -> Middleware:
    """A layer with one hook."""

    async def around(self: Middleware, request: Any, call_next: Any) -> Any:
        return await act(request, call_next)

    return type("Acting", (Middleware,), {hook: around})()


class Stop(BaseException):
    """What no handler of errors may catch."""


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("error", [PermissionError("no"), Stop("no"), asyncio.CancelledError("no")])
async def test_whichever_hook_raises_the_outer_layers_end_and_the_caller_gets_that_error(
    hook: str, error: BaseException
) -> None:
    async def act(request: Any, call_next: Any) -> Any:
        raise error

    order: list[str] = []
    with pytest.raises(type(error)):
        await both(order, acting(hook, act)).run("go")
    entered = [each for each in order if each.endswith("(")]
    ended = [each for each in order if each.startswith(")")]
    assert len(entered) == len(ended) > 0
    assert order[-1] == ")1 turn"
    assert tasks() == set()


@pytest.mark.parametrize("hook", HOOKS)
async def test_whichever_hook_calls_on_twice_the_inner_layers_run_twice_and_the_run_ends_well(hook: str) -> None:
    async def act(request: Any, call_next: Any) -> Any:
        if hook != "around_turn":
            await call_next(request)
        return await call_next(request)

    order: list[str] = []
    model = FunctionModel(answering)
    layers = [Watch("1", order), acting(hook, act), Watch("2", order)]
    agent = Agent("A", model=model, tools=[ok], handoffs=[Agent("B", model=model)], middleware=layers)
    result = await agent.run("go")
    name = hook.removeprefix("around_")
    times = 1 if hook == "around_turn" else 2
    assert (result.output, len(result.handoffs)) == ("done", 1)
    assert order.count(f"2 {name}(") == times * order.count(f"1 {name}(") > 0


def answering(request: ChatRequest) -> Any:
    if request.run.agent == "B":
        return "done"
    called = any(message.role == "tool" for message in request.messages)
    return call("transfer_to_b", call_id="h1") if called else call("ok", call_id="c1")


INSTEAD: dict[str, Any] = {
    "around_turn": TurnResult(status="completed", message=assistant("mine"), output="mine"),
    "around_chat": ChatResponse(assistant("mine")),
    "around_tool": ToolResponse("mine"),
    "around_handoff": HandoffResponse((user("mine", id="x1"),)),
}


@pytest.mark.parametrize("hook", HOOKS)
async def test_whichever_hook_does_not_call_on_the_inner_layers_do_not_run_and_the_outer_end(hook: str) -> None:
    async def act(request: Any, call_next: Any) -> Any:
        return INSTEAD[hook]

    order: list[str] = []
    heard = await hear(both(order, acting(hook, act)), "go")
    name = hook.removeprefix("around_")
    assert heard.error is None
    assert f"2 {name}(" not in order
    assert order[-1] == ")1 turn"
    assert "mine" in str(heard.result)


@pytest.mark.parametrize("hook", HOOKS)
async def test_whichever_hook_waits_the_run_can_be_cancelled_there(hook: str) -> None:
    waiting = asyncio.Event()

    async def act(request: Any, call_next: Any) -> Any:
        waiting.set()
        await asyncio.Event().wait()

    order: list[str] = []
    running = asyncio.create_task(both(order, acting(hook, act)).run("go"))
    await waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (order[-1], tasks()) == (")1 turn", set())


@pytest.mark.parametrize("hook", HOOKS)
async def test_whichever_hook_swallows_a_cancel_the_run_still_ends_cancelled_or_with_its_answer(hook: str) -> None:
    waiting = asyncio.Event()

    async def act(request: Any, call_next: Any) -> Any:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return INSTEAD[hook]

    running = asyncio.create_task(both([], acting(hook, act)).run("go"))
    await waiting.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled() or running.result().status == "completed"
    assert tasks() == set()


async def test_a_layer_sees_the_request_that_the_one_outside_it_gave() -> None:
    seen: list[str] = []

    async def outer(request: ToolRequest, call_next: Any) -> Any:
        return await call_next(request.replace(arguments={"text": "outer"}))

    async def inner(request: ToolRequest, call_next: Any) -> Any:
        seen.append(request.arguments["text"])
        return (await call_next(request)).replace(content="inner")

    async def echo(text: str) -> str:
        seen.append(text)
        return text

    first, second = acting("around_tool", outer), type("Other", (Middleware,), {})()
    model = ScriptedModel(call("echo", text="model"), "done")
    agent = Agent("A", model=model, tools=[echo], middleware=[first, second, Inner(inner)])
    result = await agent.run("go")
    assert (seen, result.messages[2].text) == (["outer", "outer"], "inner")


class Inner(Middleware):
    def __init__(self, act: Any) -> None:
        self.act = act

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        return await self.act(request, call_next)
