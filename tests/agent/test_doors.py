"""Real calls can be forbidden at the door of whatever asks a service, and models can be stood in for."""

from collections.abc import Awaitable, Callable

import pytest

from handrail.agent import Agent, FunctionModel, Model, ScriptedModel, to_tool
from handrail.agent.doors import real_calls_forbidden, stood_in
from handrail.agent.errors import RealCallForbidden
from handrail.agent.providers.openai import OpenAIChat
from handrail.filters import call
from servers.wire import sse, wire


def heard(agent: Agent) -> Callable[[str], Awaitable[object]]:
    async def ask(input: str) -> object:
        async with agent.stream(input) as run:
            return [event async for event in run]

    return ask


async def test_no_request_leaves_for_a_service_and_the_error_names_the_model_and_who_forbids_it() -> None:
    async with wire(sse("[DONE]")) as server:
        agent = Agent("desk", model=OpenAIChat("small", base_url=server.base_url, api_key="any"))
        with real_calls_forbidden("a test"):
            for ask in (agent.run, heard(agent)):
                with pytest.raises(RealCallForbidden, match=r"'small'.*forbidden by a test"):
                    await ask("Hi")
        assert server.requests == []
        await agent.graph().aclose()


async def test_a_door_that_two_have_closed_opens_when_both_are_done() -> None:
    agent = Agent("desk", model=OpenAIChat("small", base_url="http://127.0.0.1:9", api_key="any"))
    with real_calls_forbidden("one"):
        with real_calls_forbidden("two"), pytest.raises(RealCallForbidden, match="two"):
            await agent.run("Hi")
        with pytest.raises(RealCallForbidden, match="one"):
            await agent.run("Hi")


def test_models_that_answer_in_the_process_go_on() -> None:
    with real_calls_forbidden("a test"):
        assert Agent("desk", model=ScriptedModel("Hello.")).run_sync("Hi").output == "Hello."


def test_a_stand_in_is_asked_in_the_place_of_every_agents_model() -> None:
    met: list[str] = []

    def stand_in(model: Model) -> Model:
        met.append(model.name)
        asks = {"a": call("transfer_to_b", call_id="h"), "b": call("c", call_id="k", input="?")}
        done = model.name == "c" or met.count("b") == 2
        return ScriptedModel("Done." if done else asks[model.name], name=model.name)

    deep = to_tool(Agent("c", model=FunctionModel(lambda _: "no", name="c")))
    second = Agent("b", model=FunctionModel(lambda _: "no", name="b"), tools=[deep])
    first = Agent("a", model=FunctionModel(lambda _: "no", name="a"), handoffs=[second])
    with stood_in(stand_in):
        assert first.run_sync("Hi").output == "Done."
    assert met == ["a", "b", "c", "b"]
    assert first.run_sync("Hi").output == "no"
