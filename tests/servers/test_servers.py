"""The servers that tests of the providers speak to do what their descriptions say."""

import json
from typing import Any

import httpx
import pytest
from llmock.pytest_plugin import LLMock

from servers.aimock import Aimock
from servers.wire import sse, wire

ASK: dict[str, Any] = {"model": "any", "messages": [{"role": "user", "content": "hello"}]}


def ask(base_url: str, **fields: Any) -> httpx.Response:
    return httpx.post(f"{base_url}/chat/completions", json={**ASK, **fields}, timeout=10, trust_env=False)


def deltas(answer: httpx.Response) -> list[dict[str, Any]]:
    data = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
    return [choice["delta"] for line in data for choice in json.loads(line)["choices"]]


def test_answers_come_in_their_order(aimock: Aimock) -> None:
    aimock.answers("one", {"toolCalls": [{"name": "add", "arguments": {"a": 1}, "id": "c1"}]})
    messages = [ask(aimock.base_url).json()["choices"][0]["message"] for _ in range(2)]
    assert messages[0]["content"] == "one"
    assert messages[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}


def test_a_streamed_answer_comes_in_pieces_of_the_size_asked_for(aimock: Aimock) -> None:
    aimock.answers("abcdef", chunkSize=2)
    pieces = [delta.get("content") for delta in deltas(ask(aimock.base_url, stream=True))]
    assert [piece for piece in pieces if piece] == ["ab", "cd", "ef"]


def test_a_request_is_seen_and_one_that_nothing_matches_is_refused(aimock: Aimock) -> None:
    aimock.when({"userMessage": "weather"}, "sunny")
    assert ask(aimock.base_url).status_code == 404
    assert aimock.requests[0]["body"]["messages"] == ASK["messages"]


def test_each_test_starts_with_a_server_that_knows_nothing(aimock: Aimock) -> None:
    assert aimock.requests == []


def test_a_fault_server_limits_the_rate_and_fails_once(llmock: LLMock) -> None:
    llmock.rate_limit(retry_after=2).fail(500)
    answers = [ask(llmock.base_url()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 500, 200]
    assert answers[0].headers["retry-after"] == "2"


def test_a_fault_server_drops_a_stream(llmock: LLMock) -> None:
    llmock.reply("a long enough answer to be cut in two").disconnect(after_chunks=2)
    with pytest.raises(httpx.RemoteProtocolError):
        ask(llmock.base_url(), stream=True)


async def test_a_wire_sends_just_the_pieces_it_was_given() -> None:
    body = sse('{"a": 1}', "[DONE]")
    async with wire(body[:5], body[5:]) as server, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{server.base_url}/chat/completions", json=ASK)
    assert answer.content == body
    assert json.loads(server.requests[0].split(b"\r\n\r\n", 1)[1]) == ASK


async def test_a_wire_cuts_a_body_or_stays_silent() -> None:
    async with wire(b"data: {", after="cut") as server, httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(server.base_url, json=ASK)
    async with wire(after="hang") as server, httpx.AsyncClient(trust_env=False, timeout=0.1) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(server.base_url, json=ASK)
