"""An agent runs on a served model, through every door."""

import json
from collections.abc import Callable

import httpx
import pytest

from agent.providers.openai.asking import chatting, chunk, end
from handrail.agent import Agent, ModelUnavailable, tool
from handrail.agent.providers.openai import OpenAIChat
from servers.aimock import Aimock
from servers.wire import sse


def counting() -> tuple[Callable[[], str], list[int]]:
    runs: list[int] = []

    def health() -> str:
        """Whether all is well."""
        runs.append(1)
        return "well"

    return health, runs


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_tool_is_called_and_its_result_answered(aimock: Aimock, streaming: bool) -> None:
    aimock.answers({"toolCalls": [{"name": "health", "arguments": {}, "id": "c1"}]}, "All is well.", chunkSize=4)
    health, runs = counting()
    async with chatting(aimock.base_url) as model:
        agent = Agent("Desk", instructions="Be brief.", model=model, tools=[tool(health)])
        if streaming:
            async with agent.stream("How are you?") as run:
                events = [event async for event in run]
            result = run.result
            assert len(events) > 5
        else:
            result = await agent.run("How are you?")
    assert (result.output, len(runs), result.usage.requests) == ("All is well.", 1, 2)
    roles = [message["role"] for message in aimock.requests[1]["body"]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize("arguments", [{}, {"arguments": ""}])
async def test_a_call_without_arguments_runs_its_tool_once_and_goes_back_with_an_empty_object(
    arguments: dict[str, str],
) -> None:
    function = {"name": "health", **arguments}
    call = chunk(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": function}])
    answers = [sse(call, end("tool_calls"), "[DONE]"), sse(chunk(content="Well."), end(), "[DONE]")]
    asked: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=answers.pop(0))

    health, runs = counting()
    async with (
        chatting("http://localhost/v1", transport=httpx.MockTransport(answer)) as model,
        Agent("Desk", model=model, tools=[tool(health)]).stream("How are you?") as run,
    ):
        async for _ in run:
            pass
    assert (run.result.output, len(runs)) == ("Well.", 1)
    sent = json.loads(asked[1])["messages"][1]["tool_calls"][0]["function"]
    assert sent == {"name": "health", "arguments": "{}"}


async def test_a_failure_of_the_service_ends_the_run_with_what_was_said(aimock: Aimock) -> None:
    failure = {"error": {"message": "down", "type": "server_error"}, "status": 503}
    aimock.answers({"toolCalls": [{"name": "health", "arguments": {}, "id": "c1"}]}, failure)
    health, runs = counting()
    async with chatting(aimock.base_url) as model:
        with pytest.raises(ModelUnavailable) as caught:
            await Agent("Desk", model=model, tools=[tool(health)]).run("How are you?")
    assert [message.role for message in caught.value.messages] == ["user", "assistant", "tool"]
    assert (len(runs), caught.value.usage.requests) == (1, 2)


def test_run_sync_closes_what_it_opened(aimock: Aimock) -> None:
    aimock.answers("one", "two")
    model = OpenAIChat("any", base_url=aimock.base_url, api_key="any")
    agent = Agent("Desk", model=model)
    assert [agent.run_sync("hello").output for _ in range(2)] == ["one", "two"]
