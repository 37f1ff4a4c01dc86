"""The `openai:` model speaks to servers nobody here wrote, and gives in when it should."""

import asyncio
import copy
import logging
import os
import socket
import traceback
from typing import Any

import httpx
import pytest
from llmock.pytest_plugin import LLMock

from agent.providers.openai.asking import KEY, Pieces, asking, chatting, chunk, end, hear
from handrail.agent.errors import (
    BuildError,
    InvalidResponse,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from handrail.agent.models import Model, Settings, ToolSpec
from handrail.agent.providers.openai import OpenAIChat, Retries, Timeouts
from handrail.filters import assistant, tool_result, user
from servers.aimock import Aimock
from servers.wire import sse, wire

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def noting(times: int = 2) -> tuple[Retries, list[float]]:
    """Retries that write their waits down instead of waiting."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return Retries(times, sleep=sleep), waits


def test_it_is_a_model() -> None:
    model = OpenAIChat("any", base_url="http://localhost:1/v1")
    assert isinstance(model, Model)
    assert (model.name, model.profile.streaming, model.profile.tools) == ("any", True, True)


async def test_a_text_answer_comes_whole_and_in_pieces_alike(aimock: Aimock) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    aimock.answers({"content": "Hello, you.", "usage": usage}, {"content": "Hello, you.", "usage": usage}, chunkSize=4)
    async with chatting(aimock.base_url) as model:
        whole = await model.complete(asking(instructions={"own": "Be kind."}))
        heard = await hear(model, asking(instructions={"own": "Be kind."}))
    assert heard.answer == whole
    assert heard.text == whole.message.text == "Hello, you."
    assert len(heard.deltas) == 3
    assert (whole.usage.input_tokens, whole.usage.output_tokens, whole.usage.requests) == (10, 2, 0)


async def test_a_call_comes_whole_and_in_pieces_alike(aimock: Aimock) -> None:
    call = {
        "toolCalls": [{"name": "add", "arguments": {"a": 1}, "id": "c1"}, {"name": "add", "arguments": {}, "id": "c2"}]
    }
    aimock.answers(call, call, chunkSize=3)
    async with chatting(aimock.base_url) as model:
        whole = await model.complete(asking(tools=(ADD,)))
        heard = await hear(model, asking(tools=(ADD,)))
    assert heard.answer == whole
    assert [(c.id, c.name, c.parse()) for c in whole.message.tool_calls] == [("c1", "add", {"a": 1}), ("c2", "add", {})]
    assert whole.finish_reason == "tool_calls"


async def test_characters_that_a_server_cuts_in_two_come_whole(aimock: Aimock) -> None:
    aimock.answers("🙂🙃 é 北京", chunkSize=1)
    async with chatting(aimock.base_url) as model:
        heard = await hear(model)
    assert heard.text == heard.answer.message.text == "🙂🙃 é 北京"


async def test_what_a_model_thought_goes_back_to_it_with_the_result(aimock: Aimock) -> None:
    call = {"name": "add", "arguments": {"a": 1}, "id": "c1"}
    aimock.answers({"reasoning": "I must add.", "toolCalls": [call]}, "2")
    async with chatting(aimock.base_url) as model:
        asked = user("1+1?")
        heard = await hear(model, asking([asked], tools=(ADD,)))
        said = heard.answer.message
        await model.complete(asking([asked, said, tool_result(said.tool_calls[0], "2")], tools=(ADD,)))
    assert heard.thought == "I must add."
    sent = aimock.requests[1]["body"]["messages"]
    assert sent[1]["reasoning_content"] == "I must add."
    assert sent[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    assert (sent[2]["role"], sent[2]["tool_call_id"], sent[2]["content"]) == ("tool", "c1", "2")


async def test_the_request_that_goes_out_is_the_one_that_was_asked(aimock: Aimock) -> None:
    aimock.answers("Hi")
    async with chatting(aimock.base_url, settings=Settings(seed=7), headers={"x-team": "desk"}) as model:
        await hear(model, asking(settings=Settings(temperature=0.5)))
    request = aimock.requests[0]
    body = request["body"]
    assert (body["model"], body["seed"], body["temperature"], body["stream"]) == ("any", 7, 0.5, True)
    assert body["stream_options"] == {"include_usage": True}
    assert request["path"] == "/v1/chat/completions"
    assert request["headers"]["x-team"] == "desk"


async def test_a_limited_rate_is_waited_for_as_long_as_asked(llmock: LLMock) -> None:
    llmock.rate_limit(times=2, retry_after=7).reply("Hi")
    retries, waits = noting()
    async with chatting(llmock.base_url(), retries=retries) as model:
        assert (await model.complete(asking())).message.text == "Hi"
    assert waits == [7, 7]


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_server_that_fails_is_asked_again_and_then_given_up_on(llmock: LLMock, streaming: bool) -> None:
    llmock.fail(500, times=3)
    retries, waits = noting()
    async with chatting(llmock.base_url(), retries=retries) as model:
        with pytest.raises(ModelUnavailable) as caught:
            await (hear(model) if streaming else model.complete(asking()))
        assert (await model.complete(asking())).message.role == "assistant"
    assert (caught.value.status, len(waits), len(llmock.requests)) == (500, 2, 4)


async def test_a_wait_that_is_too_long_is_an_error_at_once(llmock: LLMock) -> None:
    llmock.rate_limit(retry_after=7200)
    retries, waits = noting()
    async with chatting(llmock.base_url(), retries=retries) as model:
        with pytest.raises(ModelUnavailable) as caught:
            await model.complete(asking())
    assert (caught.value.retry_after, waits) == (7200, [])


async def test_a_request_that_is_refused_is_not_made_again(llmock: LLMock) -> None:
    llmock.context_overflow()
    retries, waits = noting()
    async with chatting(llmock.base_url(), retries=retries) as model:
        with pytest.raises(ModelRefused, match="maximum context length was exceeded") as caught:
            await model.complete(asking())
    assert (caught.value.status, caught.value.code, waits) == (400, "context_length_exceeded", [])


@pytest.mark.parametrize("fault", ["disconnect", "truncate"])
async def test_a_stream_that_breaks_after_its_first_delta_is_not_begun_again(llmock: LLMock, fault: str) -> None:
    getattr(llmock.reply("a long enough answer to be cut in two"), fault)(after_chunks=4)
    retries, waits = noting()
    async with chatting(llmock.base_url(), retries=retries) as model:
        with pytest.raises(StreamBroken) as caught:
            await hear(model)
    assert caught.value.partial
    assert "a long enough answer to be cut in two".startswith(caught.value.partial)
    assert (caught.value.retryable, waits) == (True, [])


async def test_a_stream_that_breaks_before_its_first_delta_is_begun_again() -> None:
    retries, waits = noting()
    async with wire(b": soon\n\n", after="cut") as server, chatting(server.base_url, retries=retries) as model:
        with pytest.raises(StreamBroken):
            await hear(model)
    assert (len(server.requests), len(waits)) == (3, 2)


async def test_a_chunk_that_is_no_json_is_an_invalid_response(llmock: LLMock) -> None:
    llmock.reply("a long enough answer").corrupt(after_chunks=2)
    async with chatting(llmock.base_url()) as model:
        with pytest.raises(InvalidResponse, match="an event is not JSON"):
            await hear(model)


async def test_broken_arguments_come_as_they_are_for_the_loop_to_answer(llmock: LLMock) -> None:
    llmock.call_tool("add", {"a": 1}).break_tool_call()
    async with chatting(llmock.base_url()) as model:
        said = (await model.complete(asking(tools=(ADD,)))).message
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|delimiter"):
        said.tool_calls[0].parse()


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_server_that_never_answers_is_a_timeout_that_is_not_repeated(streaming: bool) -> None:
    retries, waits = noting()
    options: dict[str, Any] = {"timeout": 0.05, "retries": retries}
    async with wire(after="hang") as server, chatting(server.base_url, **options) as model:
        with pytest.raises(ModelTimeout):
            await (hear(model) if streaming else model.complete(asking()))
    assert waits == []


async def test_a_stream_that_falls_silent_is_a_timeout_and_keeps_its_text() -> None:
    times = Timeouts(read=0.05)
    async with (
        wire(sse(chunk(content="Part")), after="hang") as server,
        chatting(server.base_url, timeout=times) as model,
    ):
        with pytest.raises(ModelTimeout) as caught:
            await hear(model)
    assert (caught.value.partial, caught.value.kind) == ("Part", "read")


@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"choices": [', b"[]", b'{"choices": []}'])
async def test_a_whole_answer_that_is_none_is_an_invalid_response(body: bytes) -> None:
    async with wire(body, content_type="application/json") as server, chatting(server.base_url) as model:
        with pytest.raises(InvalidResponse, match="the model 'any' at http://127"):
            await model.complete(asking())


async def test_a_server_that_is_not_there_is_asked_again_and_is_unavailable() -> None:
    retries, waits = noting()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with chatting(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retries=retries) as model:
            with pytest.raises(ModelUnavailable):
                await model.complete(asking())
    assert len(waits) == 2


async def test_leaving_a_stream_early_closes_its_connection() -> None:
    async with wire(sse(chunk(content="Part")), after="hang") as server, chatting(server.base_url) as model:
        stream = model.stream(asking())
        await anext(stream)
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


class Silent(httpx.AsyncBaseTransport):
    """A transport that says when it was asked, and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_cancelled_call_is_cancelled_and_not_made_again() -> None:
    retries, waits = noting()
    silent = Silent()
    async with chatting("http://localhost/v1", retries=retries, transport=silent) as model:
        task = asyncio.create_task(model.complete(asking()))
        await silent.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert waits == []


async def test_a_hundred_and_fifty_calls_run_at_once() -> None:
    async with wire(sse(chunk(content="Hi"), end(), "[DONE]")) as server, chatting(server.base_url) as model:
        heard = await asyncio.gather(*[hear(model) for _ in range(150)])
    assert {one.text for one in heard} == {"Hi"}


def test_one_model_serves_one_event_loop_after_another() -> None:
    model = OpenAIChat("any", base_url="http://localhost/v1", transport=Pieces([sse(chunk(content="Hi"), end())]))

    async def once() -> str:
        heard = await hear(model)
        await model.aclose()
        return heard.text

    assert [asyncio.run(once()) for _ in range(2)] == ["Hi", "Hi"]


async def failures(caplog: pytest.LogCaptureFixture) -> list[ModelError]:
    """One failure of each kind, from a server that echoes the key wherever it can."""
    caplog.set_level(logging.DEBUG)
    echo = f"wrong key {KEY}".encode()
    found = []
    for status in ("401 Unauthorized", "429 Too Many Requests", "500 Internal Server Error", "200 OK"):
        async with (
            wire(echo, status=status, content_type="application/json") as server,
            chatting(server.base_url) as model,
        ):
            for ask in (model.complete(asking()), hear(model)):
                with pytest.raises(ModelError) as caught:
                    await ask
                found.append(caught.value)
    return found


async def test_no_key_is_in_any_error_log_or_traceback(caplog: pytest.LogCaptureFixture) -> None:
    errors = await failures(caplog)
    told = "".join(["".join(traceback.format_exception(error)) + repr(vars(error)) for error in errors])
    assert len(errors) == 8
    assert told.count("***") >= 8
    assert KEY not in told + caplog.text
    assert "HTTP Request: POST" in caplog.text


def test_no_key_is_in_anything_that_shows_a_model() -> None:
    model = OpenAIChat("any", base_url="https://h/v1?team=a", api_key=KEY, headers={"api-key": "h-0123456789"})
    shown = f"{model!r}{model}{vars(model)}{vars(vars(model)['_service'])}{copy.copy(model)!r}"
    assert [secret in shown for secret in (KEY, "h-0123456789")] == [False, False]
    assert repr(model) == "OpenAIChat('any', base_url='https://h/v1')"


async def test_the_public_service_needs_a_key_and_says_how_to_give_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    model = OpenAIChat("any")
    for ask in (model.complete(asking()), hear(model)):
        with pytest.raises(ModelRefused, match="set OPENAI_API_KEY or pass api_key="):
            await ask


async def test_address_and_key_come_from_the_environment(aimock: Aimock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", aimock.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    aimock.answers("Hi")
    model = OpenAIChat("any")
    assert (await model.complete(asking())).message.text == "Hi"
    await model.aclose()
    assert model.base_url == os.environ["OPENAI_BASE_URL"]


async def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with wire(sse(chunk(content="Hi"), end())) as server, chatting(server.base_url, api_key=None) as model:
        await hear(model)
    assert b"authorization" not in server.requests[0].lower()


@pytest.mark.parametrize("options", [{"api_key": "sk-\nx"}, {"headers": {"x": "é"}}, {"base_url": "localhost:1"}])
def test_what_cannot_be_sent_is_refused_when_the_model_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        OpenAIChat("any", **{"base_url": "http://localhost:1", **options})


async def test_ten_thousand_messages_are_encoded_once() -> None:
    sent: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(len(request.content))
        return httpx.Response(200, json={"choices": [{"message": {"role": "assistant", "content": "ok"}}]})

    history = [message for place in range(5000) for message in (user(f"q{place}"), assistant(f"a{place}"))]
    async with chatting("http://localhost/v1", transport=httpx.MockTransport(answer)) as model:
        for _ in range(2):
            await model.complete(asking(history))
    assert sent[0] == sent[1] > 300_000
    assert all([any([isinstance(value, bytes) for value in vars(message).values()]) for message in history])
