"""One address of a service: requests are posted to it, answers come back whole or as events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary

import msgspec

from handrail.agent.doors import check_door
from handrail.agent.errors import BuildError, InvalidResponse, ModelError, ModelTimeout, ModelUnavailable, StreamBroken
from handrail.agent.http.failures import Told, refusal, told, unreadable
from handrail.agent.http.retries import Retries, asked_wait
from handrail.agent.http.secrets import Secret, Where, in_query

if TYPE_CHECKING:
    import ssl

    import httpx

_Value = TypeVar("_Value")
# A run of a thousand agents has a thousand calls open; a pool of the usual hundred would make them queue.
_CONNECTIONS = 1000
_KEPT_ALIVE = 100
# After the last event only the end of the body is due. A service that owes even that loses its connection.
_FAREWELL = 0.25


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to wait: to be connected, for the next byte (a comment in a stream counts), and for one whole attempt.

    None waits for ever.
    """

    connect: float | None = 10.0
    read: float | None = 300.0
    total: float | None = 900.0


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event of a stream: its name (`message` unless the service gave one) and its data.

    A service that was asked for a stream and answers as a whole gives one event named `body`.
    """

    name: str
    data: str


class Service:
    """An address with its headers and timeouts, and a client for each event loop that it is used from.

    `name` is its name in errors, which show neither a header's value nor anything of a request. What stands in the
    query of `url` is shown neither there nor in the client's log.
    """

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, Secret],
        timeouts: Timeouts,
        retries: Retries,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        self.where = Where(name, (*headers.values(), *in_query(url)))
        self.url = url
        self.retries = retries
        self._headers = dict(headers)
        self._timeouts = timeouts
        self._transport = transport
        self._certificates: ssl.SSLContext | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def post(self, body: bytes) -> bytes:
        """The whole body of the answer to one request. Raises `ModelError`."""
        deadline = self._deadline()
        response = await self._begin(body, deadline)
        try:
            content = await self._within(deadline, response.aread(), InvalidResponse)
        finally:
            await response.aclose()
        self._check(response, content)
        return content

    async def events(self, body: bytes) -> AsyncGenerator[Event, None]:
        """The events of the answer to one request, as they come. Raises `ModelError`; close it when done early."""
        deadline = self._deadline()
        response = await self._begin(body, deadline)
        try:
            if not response.is_success:
                self._check(response, await self._within(deadline, response.aread(), ModelUnavailable))
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                async with aclosing(self._listen(response, deadline)) as events:
                    async for event in events:
                        yield event
                return
            content = await self._within(deadline, response.aread(), InvalidResponse)
            if kind != "application/json":
                raise unreadable(
                    self.where, f"{kind or 'a body without a type'} in place of text/event-stream", content
                )
            yield Event("body", content.decode(errors="replace"))
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Closes the client of the running event loop; the next call opens one anew."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _listen(self, response: "httpx.Response", deadline: float | None) -> AsyncGenerator[Event, None]:
        from httpx_sse import EventSource

        # The standard leaves no choice of encoding, and allows a byte order mark.
        response.encoding = "utf-8-sig"
        source = EventSource(response).aiter_sse()
        try:
            while (event := await self._within(deadline, anext(source, None), StreamBroken)) is not None:
                if event.data:
                    yield Event(event.event, event.data)
        finally:
            await source.aclose()

    async def _begin(self, body: bytes, deadline: float | None) -> "httpx.Response":
        check_door(self.where)
        client = self._client()
        request = client.build_request("POST", self.url, content=body)
        if request.url.query:
            request.url = _quiet()(request.url)
        return await self._within(deadline, client.send(request, stream=True), ModelUnavailable)

    async def _within(self, deadline: float | None, due: Awaitable[_Value], broken: type[ModelError]) -> _Value:
        """What is due, before the deadline. What fails on the way is raised as one of Handrail's own errors.

        It is raised outside the handler: the client's error holds the request, with its headers.
        """
        import httpx

        try:
            async with asyncio.timeout_at(deadline):
                return await due
        except TimeoutError:
            failure: ModelError = ModelTimeout(f"{self.where} took more than {self._timeouts.total} s", kind="total")
        except httpx.TimeoutException as error:
            failure = self._late(error)
        except httpx.HTTPError as error:
            words = self.where.hide(str(error)) or type(error).__name__
            failure = broken(f"the connection to {self.where} failed: {words}", kind="connection", retryable=True)
        raise failure

    def _late(self, error: "httpx.TimeoutException") -> ModelTimeout:
        import httpx

        if isinstance(error, httpx.ConnectTimeout):
            words = f"{self.where} could not be reached in {self._timeouts.connect} s"
            return ModelTimeout(words, kind="connect")
        return ModelTimeout(f"{self.where} was silent for {self._timeouts.read} s", kind="read")

    def _check(self, response: "httpx.Response", content: bytes) -> None:
        if response.is_success:
            return
        wait = asked_wait(response.headers, self.retries.now())
        reason = told(content)
        if "location" in response.headers:
            reason = Told(f"it leads to {shown(response.headers['location'])}")
        raise refusal(response.status_code, reason, self.where, wait)

    def _deadline(self) -> float | None:
        total = self._timeouts.total
        return None if total is None else asyncio.get_running_loop().time() + total

    def _client(self) -> "httpx.AsyncClient":
        import httpx

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None or client.is_closed:
            times = self._timeouts
            client = self._clients[loop] = httpx.AsyncClient(
                auth=self._sign,
                timeout=httpx.Timeout(connect=times.connect, read=times.read, write=times.read, pool=None),
                limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_KEPT_ALIVE),
                verify=self._trust(),
                transport=self._transport,
                headers={"content-type": "application/json", "user-agent": "handrail"},
            )
        return client

    def _trust(self) -> "ssl.SSLContext":
        """What certificates are checked against; read once, as it takes some 30 ms."""
        import httpx

        if self._certificates is None:
            self._certificates = httpx.create_ssl_context()
        return self._certificates

    def _sign(self, request: "httpx.Request") -> "httpx.Request":
        for name, secret in self._headers.items():
            request.headers[name] = secret.header()
        return request


@cache
def _quiet() -> "type[httpx.URL]":
    """Addresses whose query is sent but not written out: the client writes each into its log."""
    import httpx

    class Quiet(httpx.URL):
        def __str__(self) -> str:
            return shown(super().__str__())

        def __repr__(self) -> str:
            return f"URL({str(self)!r})"

    return Quiet


async def finish(events: AsyncGenerator[Event, None]) -> None:
    """Reads what is left of a stream whose last event has come, so that its connection can serve again."""
    try:
        async with asyncio.timeout(_FAREWELL):
            async for _ in events:
                pass
    except (TimeoutError, ModelError):
        pass


def address(base_url: str, path: str) -> str:
    """The address of a path below a service's base address, whose query stays. Raises `BuildError`."""
    parts = _split(base_url)
    if parts is None:
        raise BuildError("base_url is no address: it cannot be taken apart; it must read as in http://host:port/path")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BuildError(f"base_url must begin with http:// or https:// and name a host; it is {shown(base_url)!r}")
    if "@" in parts.netloc:
        raise BuildError(f"base_url {shown(base_url)!r} holds a user or a password; pass headers= instead")
    return parts._replace(path=f"{parts.path.rstrip('/')}/{path}", fragment="").geturl()


def shown(base_url: str) -> str:
    """A base address as it may be shown: without a user, a password or a query, which may hold a key."""
    parts = _split(base_url)
    if parts is None:
        return "an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, path=parts.path.rstrip("/"), query="", fragment="").geturl()


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        # What is no number is found when the port is asked for.
        return parts if parts.port is None or parts.port >= 0 else None
    except ValueError:
        return None
