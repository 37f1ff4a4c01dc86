"""What a layer does wrong is told by its name: what it returned, what it raised, and a cancel it kept to itself."""

import asyncio
import contextlib
from typing import Any

import pytest

from agent.desks import failure, hear, pause, tasks
from handrail.agent import Agent, FunctionModel, InvalidAnswer, ModelUnavailable, ScriptedModel, handoff, tool
from handrail.agent.errors import CancelSwallowed
from handrail.agent.kernel import (
    HandoffResponse,
    Jump,
    Middleware,
    ToolResponse,
    TurnResult,
    after_agent,
    after_model,
    around_chat,
    around_handoff,
    around_tool,
    around_turn,
    before_agent,
    before_model,
)
from handrail.agent.models import ChatResponse
from handrail.filters import assistant, call, user

AROUND = {"turn": around_turn, "chat": around_chat, "tool": around_tool, "handoff": around_handoff}
STATE = {
    "before_agent": before_agent,
    "before_model": before_model,
    "after_model": after_model,
    "after_agent": after_agent,
}
RESPONSES = {"turn": "TurnResult", "chat": "ChatResponse", "tool": "ToolResponse", "handoff": "HandoffResponse"}


async def ok() -> str:
    return "ok"


def desk(*layers: Middleware) -> Agent:
    """An agent that calls a tool and hands over to one that answers."""
    model = ScriptedModel(call("ok", call_id="c1"), call("transfer_to_b", call_id="h1"))
    b = Agent("B", model=ScriptedModel("done"))
    return Agent("A", model=model, tools=[ok], handoffs=[handoff(b)], middleware=layers)


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


@pytest.mark.parametrize("chain", AROUND)
@pytest.mark.parametrize(
    "found", [None, "words", 7, ("response", {"state": 1}), Jump("end"), assistant("words")], ids=repr
)
async def test_a_wrong_response_is_an_error_that_names_the_layer_and_what_was_wanted(chain: str, found: Any) -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        return found

    error = await failure(desk(AROUND[chain](wrong)), "go")
    assert type(error) is InvalidAnswer
    told = f"wrong.around_{chain} of A returned {type(found).__name__}, not a {RESPONSES[chain]}"
    assert str(error) == told


@pytest.mark.parametrize("chain", AROUND)
async def test_where_an_outer_layer_passes_a_wrong_response_on_those_inside_it_are_named_too(chain: str) -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        return None

    hook = AROUND[chain]
    error = await failure(desk(hook(name="outer")(passing), hook(wrong)), "go")
    assert "outer" in str(error)
    assert "wrong" in str(error)


@pytest.mark.parametrize("hook", STATE)
@pytest.mark.parametrize("found", ["words", 7, ["notes"], assistant("words"), True], ids=repr)
async def test_a_wrong_update_is_an_error_that_names_the_hook(hook: str, found: Any) -> None:
    async def wrong(state: Any, run: Any) -> Any:
        return found

    error = await failure(desk(STATE[hook](wrong)), "go")
    assert type(error) is InvalidAnswer
    told = f"wrong.{hook} of A returned {type(found).__name__}, not None, values by channel, or a jump"
    assert str(error) == told


@pytest.mark.parametrize(
    "message", [user("words"), assistant(call("ok", call_id="c9"))], ids=["a user's", "one with open calls"]
)
async def test_a_turn_cannot_end_with_a_message_that_is_no_answer(message: Any) -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        return TurnResult(status="completed", message=message)

    error = await failure(desk(around_turn(wrong)), "go")
    assert "ended with a message that is no answer" in str(error)


@pytest.mark.parametrize("status", ["handed_over", "completed"])
async def test_a_turn_cannot_say_that_it_handed_over_when_it_did_not_or_the_other_way_round(status: Any) -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        if status == "handed_over":
            return TurnResult(status=status)
        return (await call_next(request)).replace(status=status)

    error = await failure(desk(around_turn(wrong)), "go")
    assert f"ended as '{status}', but control has" in str(error)


@pytest.mark.parametrize(
    ("chain", "response", "found"),
    [
        ("chat", ChatResponse(user("words")), "not an assistant's message"),
        ("handoff", HandoffResponse("words"), "a seed that is not messages"),  # type: ignore[arg-type]  # what is tested
    ],
)
async def test_a_response_that_holds_something_wrong_is_an_error(chain: str, response: Any, found: str) -> None:
    async def wrong(request: Any, call_next: Any) -> Any:
        return response

    error = await failure(desk(AROUND[chain](wrong)), "go")
    assert found in str(error)


class Named(Middleware):
    """A layer whose class others share; one hook of it may fail."""

    def __init__(self, name: str, fails: bool) -> None:
        self.name, self.fails = name, fails

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        if self.fails:
            self.fail()
        return await call_next(request)

    def fail(self) -> None:
        raise LookupError("gone")


async def noted(agent: Agent) -> Any:
    """The notes on the error that ends a run, whichever door it came through."""
    with pytest.raises(Exception, match=r".") as raised:
        await agent.run("go")
    heard = await hear(agent, "go")
    assert heard.error is not None
    notes: Any = getattr(raised.value, "__notes__", [])
    assert [note for note in notes if note.startswith("raised in")] == getattr(heard.error, "__notes__", [])
    return notes


async def test_an_error_of_a_layer_has_a_note_that_names_it_among_others_of_its_class() -> None:
    for failing in ("one", "two", "three"):
        agent = Agent(
            "A",
            model=FunctionModel(lambda request: "x"),
            middleware=[Named(name, name == failing) for name in ("one", "two", "three")],
        )
        assert await noted(agent) == [f"raised in {failing}.around_chat"]


async def test_an_error_of_the_model_is_no_layers() -> None:
    def fail(request: Any) -> Any:
        raise ModelUnavailable("busy")

    assert await noted(Agent("A", model=FunctionModel(fail), middleware=[Named("one", False)])) == []


async def test_an_error_of_a_sub_agents_layer_is_told_to_the_agent_that_asked() -> None:
    child = Agent("Child", model=FunctionModel(lambda request: "x"), middleware=[Named("one", True)])
    model = ScriptedModel(call("child", call_id="k1", input="?"), "done")
    result = await Agent("Boss", model=model, tools=[child.to_tool()]).run("go")
    assert "LookupError" in result.messages[2].text


@pytest.mark.parametrize("hook", [*AROUND, *STATE])
async def test_a_cancel_that_a_hook_keeps_to_itself_ends_the_run_all_the_same_and_names_the_layers(hook: str) -> None:
    waiting = asyncio.Event()

    async def wait() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await pause()

    async def around(request: Any, call_next: Any) -> Any:
        await wait()
        return await call_next(request)

    async def told(state: Any, run: Any) -> Any:
        await wait()

    layer = AROUND[hook](name="keeps")(around) if hook in AROUND else STATE[hook](name="keeps")(told)
    running = asyncio.create_task(desk(layer).run("go"))
    await waiting.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await running
    assert isinstance(raised.value, CancelSwallowed)
    assert (raised.value.agent, raised.value.layers, tasks()) == ("A", ("keeps",), set())


async def test_a_hook_that_lets_a_timeout_of_its_own_expire_swallows_nothing() -> None:
    async def brief(request: Any, call_next: Any) -> Any:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return ToolResponse("too late", is_error=True)

    result = await desk(around_tool(brief)).run("go")
    assert result.output == "done"


@pytest.mark.parametrize("name", ["around_agent", "wrap_model", "on_tool", "before_tool", "after_turn"])
def test_a_hook_that_nobody_calls_is_refused_when_the_agent_is_made(name: str) -> None:
    layer = type("Layer", (Middleware,), {name: passing})()
    with pytest.raises(Exception, match=f"Layer defines {name}, which is no hook"):
        Agent("A", model=ScriptedModel(), middleware=[layer])


async def test_after_a_cancel_that_a_layer_kept_to_itself_no_tool_begins() -> None:
    begun, ran = asyncio.Event(), []

    class Keeps(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            with contextlib.suppress(asyncio.CancelledError):
                begun.set()
                await asyncio.Event().wait()
            return await call_next(request)

    @tool
    async def pay() -> str:
        ran.append(1)
        return "paid"

    agent = Agent("X", model=ScriptedModel(call("pay")), tools=[pay], middleware=[Keeps()])
    run = asyncio.ensure_future(agent.run("go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ran == []
