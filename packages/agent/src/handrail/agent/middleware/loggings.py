"""The layer that writes a line at the beginning and at the end of each turn, model call, tool call and boundary."""

import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TypeVar

from handrail.agent.errors import BuildError
from handrail.agent.kernel.middlewares import CallChat, CallHandoff, CallTool, CallTurn, Middleware
from handrail.agent.kernel.requests import (
    ChatRequest,
    ChatResponse,
    HandoffRequest,
    HandoffResponse,
    Request,
    ToolRequest,
    ToolResponse,
    TurnRequest,
    TurnResult,
)
from handrail.agent.lines import Facts, after, before, failure

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT")


class Logging(Middleware):
    """Logs what passes this place in the list: a line when it begins and one when it ends, with its seconds.

    A line's facts stand in its message and, by name, on the log record (`extra`). What was said is among them only with
    `text=True`: cut to `cut` characters, and never where it is labelled or redacted as secret. Of what is raised the
    type is told; its message only with `text=True`, and where it is an error of Handrail's own.

    `logger` is a logger or its name, `level` a number of `logging`; where the logger does not take that level, nothing
    is worked out. Raises `BuildError`.
    """

    def __init__(
        self,
        logger: str | logging.Logger = "handrail",
        level: int = logging.DEBUG,
        text: bool = False,
        *,
        cut: int = 200,
        name: str = "Logging",
    ) -> None:
        self.name = name
        if not isinstance(logger, str | logging.Logger):
            raise BuildError(f"Logging writes to a logger or the name of one, not to {logger!r}")
        for what, number in (("level", level), ("cut", cut)):
            if type(number) is not int or number < 1:
                raise BuildError(f"{what} of Logging is a whole number above 0, not {number!r}")
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._level = level
        self._cut = cut if text else 0

    async def around_turn(self, request: TurnRequest, call_next: CallTurn) -> TurnResult:
        """One agent's turn."""
        on = self._logger.isEnabledFor(self._level)
        return await (self._around("turn", request, call_next) if on else call_next(request))

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """One model call."""
        on = self._logger.isEnabledFor(self._level)
        return await (self._around("chat", request, call_next) if on else call_next(request))

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """One tool call."""
        on = self._logger.isEnabledFor(self._level)
        return await (self._around("tool", request, call_next) if on else call_next(request))

    async def around_handoff(self, request: HandoffRequest, call_next: CallHandoff) -> HandoffResponse:
        """One boundary."""
        on = self._logger.isEnabledFor(self._level)
        return await (self._around("handoff", request, call_next) if on else call_next(request))

    async def _around(
        self, hook: str, request: RequestT, call_next: Callable[[RequestT], Awaitable[ResponseT]]
    ) -> ResponseT:
        facts = before(request, self._cut)
        self._write(hook, "begins", facts)
        facts.pop("text", None)
        began = perf_counter()
        try:
            response = await call_next(request)
        except BaseException as error:
            seconds = round(perf_counter() - began, 6)
            self._write(hook, "ends", {**facts, "seconds": seconds, **failure(request, error, self._cut)})
            raise
        seconds = round(perf_counter() - began, 6)
        self._write(hook, "ends", {**facts, "seconds": seconds, **after(request, response, self._cut)})
        return response

    def _write(self, hook: str, event: str, facts: Facts) -> None:
        # As Python writes them, texts cannot end the line or steer a terminal.
        told = " ".join([f"{name}={value!r}" for name, value in facts.items()])
        self._logger.log(self._level, "%s %s: %s", hook, event, told, extra={"hook": hook, "event": event, **facts})
