"""A model behind a Chat Completions address."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from handrail.agent.errors import ModelError, ModelRefused
from handrail.agent.http.failures import failed_within, told
from handrail.agent.http.retries import Retries
from handrail.agent.http.secrets import Secret
from handrail.agent.http.services import Event, Service, Timeouts, address, finish, shown
from handrail.agent.models import ChatResponse, Delta, Profile, Settings
from handrail.agent.providers.openai.answers import read_answer
from handrail.agent.providers.openai.requests import encode_request
from handrail.agent.providers.openai.streams import Assembly

if TYPE_CHECKING:
    import httpx

    from handrail.agent.kernel.requests import ChatRequest

PUBLIC = "https://api.openai.com/v1"
PROFILE = Profile(
    json_schema=True,
    json_schema_with_tools=True,
    max_schema_bytes=120_000,
    max_schema_properties=5000,
    strict_tools=True,
)
"""What the public service's models can do."""
_CUT_OFF = ("connection", "read", "total")


class OpenAIChat:
    """A model of the public service, or with `base_url` of any server that speaks Chat Completions.

    `base_url` and `api_key` are those of `OPENAI_BASE_URL` and `OPENAI_API_KEY` where they are not given; only the
    public service must have a key. `timeout` is one number of seconds for everything, or `Timeouts`; `retries` a
    number, or `Retries`. `headers` are sent beside the usual ones and shown nowhere. `settings` hold for each request
    that says nothing else. `profile` is what the model can do, for servers that cannot do all (`PROFILE` where it is
    not given). `transport` is the httpx transport to use, for proxies and tests.

    Raises `BuildError` for an address or a header that cannot be used, and `ModelError` from its calls.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: Timeouts | float | None = None,
        retries: Retries | int = 2,
        headers: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        profile: Profile | None = None,
        transport: "httpx.AsyncBaseTransport | None" = None,
    ) -> None:
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC
        key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        sent = {field: Secret(value, f"the header {field!r}") for field, value in (headers or {}).items()}
        if key:
            sent = {"authorization": Secret(key, scheme="Bearer"), **sent}
        self.name = name
        self.base_url = shown(base_url)
        self.settings = settings or Settings()
        self.profile = profile or PROFILE
        self._public = self.base_url == PUBLIC
        self._lacks_key = self._public and not sent
        self._service = Service(
            f"the model {name!r} at {self.base_url}",
            address(base_url, "chat/completions"),
            sent,
            _timeouts(timeout),
            Retries(times=retries) if isinstance(retries, int) else retries,
            transport,
        )

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r}, base_url={self.base_url!r})"

    async def complete(self, request: "ChatRequest") -> ChatResponse:
        """The answer to a request, in one piece."""
        return await self._service.retries.call(partial(self._answer, self._encode(request, stream=False)))

    async def stream(self, request: "ChatRequest") -> AsyncGenerator[Delta | ChatResponse, None]:
        """The answer in pieces, and last as a whole. Calls that fail are made again until the first piece."""
        begin = partial(self._begin, self._encode(request, stream=True))
        first, others = await self._service.retries.call(begin)
        async with aclosing(others):
            yield first
            async for piece in others:
                yield piece

    async def aclose(self) -> None:
        """Closes the connections of the running event loop."""
        await self._service.aclose()

    def _encode(self, request: "ChatRequest", *, stream: bool) -> bytes:
        if self._lacks_key:
            raise ModelRefused(f"there is no key for {self.base_url}: set OPENAI_API_KEY or pass api_key=")
        return encode_request(
            self.name,
            request,
            self.settings,
            stream=stream,
            public=self._public,
            strict_tools=self.profile.strict_tools,
        )

    async def _answer(self, body: bytes) -> ChatResponse:
        return read_answer(await self._service.post(body), self._service.where)

    async def _begin(self, body: bytes) -> tuple[Delta | ChatResponse, AsyncGenerator[Delta | ChatResponse, None]]:
        pieces = self._pieces(body)
        try:
            return await anext(pieces), pieces
        except BaseException:
            await pieces.aclose()
            raise

    async def _pieces(self, body: bytes) -> AsyncGenerator[Delta | ChatResponse, None]:
        assembly = Assembly(self._service.where)
        try:
            async with aclosing(self._service.events(body)) as events:
                async for event in events:
                    if event.data == "[DONE]":
                        assembly.done = True
                        await finish(events)
                        break
                    for delta in self._take(assembly, event):
                        yield delta
        except ModelError as error:
            # A connection that breaks, or falls silent, after the last word leaves a whole answer.
            if not (assembly.finished and error.kind in _CUT_OFF):
                error.partial, error.spent = assembly.partial, assembly.usage
                raise
        try:
            answer = assembly.response()
        except ModelError as error:
            error.partial, error.spent = assembly.partial, assembly.usage
            raise
        yield answer

    def _take(self, assembly: Assembly, event: Event) -> list[Delta]:
        if event.name == "body":
            return assembly.take_whole(event.data.encode())
        if event.name == "error":
            raise failed_within(told(event.data.encode()), self._service.where, streaming=True)
        return assembly.take(event.data)


def _timeouts(timeout: Timeouts | float | None) -> Timeouts:
    if isinstance(timeout, Timeouts):
        return timeout
    return Timeouts() if timeout is None else Timeouts(timeout, timeout, timeout)
