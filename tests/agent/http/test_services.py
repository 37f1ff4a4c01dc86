"""A service is reached, waited for, and given up on, as it was told."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from handrail.agent.errors import (
    BuildError,
    InvalidResponse,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StreamBroken,
)
from handrail.agent.http.retries import Retries
from handrail.agent.http.secrets import Secret
from handrail.agent.http.services import Event, Service, Timeouts, address, finish, shown
from servers.wire import sse, wire

KEY = "sk-test-0123456789"
PATIENT = Timeouts()
SOON = Timeouts(connect=5, read=0.05, total=5)


def service(base_url: str, timeouts: Timeouts = PATIENT) -> Service:
    headers = {"authorization": Secret(KEY, scheme="Bearer")}
    return Service("the model", address(base_url, "chat"), headers, timeouts, Retries())


async def events(served: Service) -> list[Event]:
    async with aclosing(served.events(b"{}")) as stream:
        return [event async for event in stream]


async def failure(*pieces: bytes, timeouts: Timeouts = SOON, streaming: bool = False, **options: Any) -> ModelError:
    async with wire(*pieces, **options) as server:
        served = service(server.base_url, timeouts)
        with pytest.raises(ModelError) as caught:
            await (events(served) if streaming else served.post(b"{}"))
        await served.aclose()
    return caught.value


async def test_a_body_goes_out_and_the_answer_comes_back_whole() -> None:
    async with wire(b"ab", b"c", content_type="application/json") as server:
        served = service(server.base_url)
        assert await served.post(b'{"a":1}') == b"abc"
        await served.aclose()
    head, body = server.requests[0].split(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert f"authorization: bearer {KEY}".encode() in head.lower()


async def test_events_come_without_comments_blank_lines_and_other_fields() -> None:
    body = b"\xef\xbb\xbf: c\n\n:\n\ndata: a\n\nid: 7\nretry: 9\nevent: error\ndata: b\ndata: c\n\n\n\nodd\n\nid: 8\n\n"
    async with wire(body) as server:
        served = service(server.base_url)
        assert await events(served) == [Event("message", "a"), Event("error", "b\nc")]
        await served.aclose()


async def test_line_ends_are_those_of_the_standard_and_no_others() -> None:
    async with wire("data: a\u2028b\x85c\r\n\r\ndata: d\r\r".encode()) as server:
        served = service(server.base_url)
        assert [event.data for event in await events(served)] == ["a\u2028b\x85c", "d"]
        await served.aclose()


async def test_a_stream_that_was_read_to_its_end_leaves_its_connection_for_the_next() -> None:
    body = sse("a", "[DONE]")
    callers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        callers.append(writer)
        while await reader.read(10_000):
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        served = service(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        for _ in range(3):
            async with aclosing(served.events(b"{}")) as stream:
                assert (await anext(stream)).data == "a"
                await finish(stream)
        await served.aclose()
        for caller in callers:
            caller.close()
            await caller.wait_closed()
    assert len(callers) == 1


async def test_an_answer_that_is_whole_in_place_of_a_stream_is_one_event() -> None:
    async with wire(b'{"a"', b":1}", content_type="application/json; charset=utf-8") as server:
        served = service(server.base_url)
        assert await events(served) == [Event("body", '{"a":1}')]
        await served.aclose()


async def test_a_stream_of_another_type_is_no_answer() -> None:
    error = await failure(b"<html>hello", content_type="text/html", streaming=True)
    assert isinstance(error, InvalidResponse)
    assert "text/html in place of text/event-stream; it begins '<html>hello'" in str(error)


async def test_a_service_that_never_answers_is_given_up_on() -> None:
    error = await failure(after="hang")
    assert (type(error), error.kind, error.retryable) == (ModelTimeout, "read", True)
    assert str(error) == "the model was silent for 0.05 s"


class NeverDone(httpx.AsyncBaseTransport):
    """A connection over which an answer begins at once and never ends."""

    class Body(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b": wait\n\n"
            await asyncio.Event().wait()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=self.Body())


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_service_that_is_never_done_is_given_up_on(streaming: bool) -> None:
    served = Service("the model", "http://h/v1", {}, Timeouts(total=0.05), Retries(), NeverDone())
    with pytest.raises(ModelTimeout) as caught:
        await (events(served) if streaming else served.post(b"{}"))
    await served.aclose()
    assert (caught.value.kind, str(caught.value)) == ("total", "the model took more than 0.05 s")


async def test_a_body_that_is_cut_is_an_invalid_response_and_a_stream_is_broken() -> None:
    whole = await failure(b'{"a', after="cut", content_type="application/json")
    stream = await failure(b"data: a\n\n", after="cut", streaming=True)
    assert [type(whole), type(stream)] == [InvalidResponse, StreamBroken]
    assert whole.retryable
    assert stream.retryable


async def test_a_service_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        served = service(f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with pytest.raises(ModelUnavailable, match="connection to the model failed"):
            await served.post(b"{}")
        await served.aclose()


async def test_an_error_holds_nothing_of_the_request() -> None:
    error = await failure(b'{"a', after="cut")
    assert error.__cause__ is error.__context__ is None


async def test_a_redirect_says_where_it_leads_and_is_not_followed() -> None:
    headers = ["location: http://u:p@there.test/v2?key=k"]
    error = await failure(b"", status="307 Temporary Redirect", headers=headers)
    assert isinstance(error, ModelRefused)
    assert "it leads to http://there.test/v2; set base_url" in str(error)


async def test_a_status_that_is_an_error_is_raised_with_its_reason_for_a_stream_as_well() -> None:
    error = await failure(b'{"error": "no such model"}', status="404 Not Found", streaming=True)
    assert (type(error), error.status) == (ModelRefused, 404)
    assert "no such model; check the model's name" in str(error)


async def test_an_asked_wait_is_in_the_error() -> None:
    error = await failure(b"busy", status="429 Too Many Requests", headers=["Retry-After: 3"])
    assert error.retry_after == 3


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_key_in_the_query_is_sent_and_shown_nowhere(streaming: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    shut = ["location: /v2?key=query-0123456789", "retry-after: 1"]
    async with wire(b"no query-0123456789", status="400 No", headers=shut) as server:
        url = f"{server.base_url}?api=3&key=query-0123456789"
        served = service(url)
        with pytest.raises(ModelError) as caught:
            await (events(served) if streaming else served.post(b"{}"))
        await served.aclose()
    assert b"POST /v1/chat?api=3&key=query-0123456789 HTTP" in server.requests[0]
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    assert "query-" not in caplog.text.replace("/v2?key=query-0123456789", "") + str(caught.value)


async def test_a_transport_sees_the_whole_address() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.raw_path, dict(request.url.params), str(request.url), repr(request.url)))
        return httpx.Response(200, content=b"x")

    url = address("http://h/v1?key=k&a=b", "chat")
    served = Service("the model", url, {}, PATIENT, Retries(), httpx.MockTransport(answer))
    assert await served.post(b"{}") == b"x"
    shown_url = "http://h/v1/chat"
    assert seen == [(b"/v1/chat?key=k&a=b", {"key": "k", "a": "b"}, shown_url, f"URL({shown_url!r})")]
    await served.aclose()


@pytest.mark.parametrize("leads", ["http://[", "http://h:port/", "http://\x7f"])
async def test_a_redirect_to_nowhere_has_a_type_of_its_own(leads: str) -> None:
    error = await failure(b"", status="307 Temporary Redirect", headers=[f"location: {leads}"])
    assert isinstance(error, ModelError)


def test_each_event_loop_has_a_client_of_its_own() -> None:
    served = None

    async def once() -> bytes:
        nonlocal served
        async with wire(b"x") as server:
            served = served or service(server.base_url)
            served.url = address(server.base_url, "chat")
            answer = await served.post(b"{}")
            await served.aclose()
        return answer

    assert [asyncio.run(once()) for _ in range(2)] == [b"x", b"x"]


async def test_a_closed_service_opens_anew() -> None:
    async with wire(b"x") as server:
        served = service(server.base_url)
        for _ in range(2):
            assert await served.post(b"{}") == b"x"
            await served.aclose()
        await served.aclose()


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h:80/v1/", "http://h:80/v1/chat/completions"),
        ("https://h/openai?api-version=3", "https://h/openai/chat/completions?api-version=3"),
        ("https://h", "https://h/chat/completions"),
    ],
)
def test_a_path_goes_below_the_base_address_and_its_query_stays(base_url: str, url: str) -> None:
    assert address(base_url, "chat/completions") == url


@pytest.mark.parametrize(
    "base_url",
    ["localhost:8000", "ftp://h/v1", "http:///v1", "http://user:word@h/v1", "http://[word", "http://h:word/"],
)
def test_an_address_that_cannot_be_used_is_refused(base_url: str) -> None:
    with pytest.raises(BuildError, match="base_url") as caught:
        address(base_url, "chat")
    assert "word" not in str(caught.value).replace("password", "")


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert shown("https://user:word@h:1/v1/?key=k#f") == "https://h:1/v1"
