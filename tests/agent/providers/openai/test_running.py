"""An agent runs on a served model, through every door."""

import json
from collections.abc import Callable

import httpx
import pytest
from pydantic import BaseModel

from agent.providers.openai.asking import chatting, chunk, end
from handrail.agent import Agent, ModelUnavailable, tool
from handrail.agent.events import Discard
from handrail.agent.models import Profile
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


class Parcel(BaseModel):
    city: str
    days: int = 0


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_output_type_is_asked_for_by_its_schema_and_a_bad_answer_goes_back(
    aimock: Aimock, streaming: bool
) -> None:
    aimock.answers('{"days":1}', '{"city":"Porto","days":null}')
    async with chatting(aimock.base_url) as model:
        agent = Agent("Desk", model=model, output_type=Parcel)
        if streaming:
            async with agent.stream("Where is it?") as run:
                events = [type(event) async for event in run]
            result = run.result
            assert events.count(Discard) == 1
        else:
            result = await agent.run("Where is it?")
    assert result.output == Parcel(city="Porto")
    first, second = [request["body"] for request in aimock.requests]
    assert first["response_format"]["json_schema"]["strict"] is True
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["city", "days"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert "city: Field required" in second["messages"][2]["content"]


async def test_a_server_without_schemas_is_given_a_tool_to_answer_with(aimock: Aimock) -> None:
    aimock.answers({"toolCalls": [{"name": "final_answer", "arguments": {"city": "Porto"}, "id": "c1"}]})
    async with chatting(aimock.base_url, profile=Profile()) as model:
        result = await Agent("Desk", model=model, output_type=Parcel).run("Where is it?")
    assert result.output == Parcel(city="Porto")
    (sent,) = [request["body"] for request in aimock.requests]
    assert "response_format" not in sent
    assert "strict" not in sent["tools"][0]["function"]


async def test_a_strict_tools_null_is_its_parameter_left_out(aimock: Aimock) -> None:
    given: list[int] = []

    @tool
    def find(what: str, limit: int = 5) -> str:
        """Finds."""
        given.append(limit)
        return what

    aimock.answers({"toolCalls": [{"name": "find", "arguments": {"what": "x", "limit": None}, "id": "c1"}]}, "done")
    async with chatting(aimock.base_url) as model:
        assert (await Agent("Desk", model=model, tools=[find]).run("go")).output == "done"
    assert given == [5]
    assert aimock.requests[0]["body"]["tools"][0]["function"]["strict"] is True
