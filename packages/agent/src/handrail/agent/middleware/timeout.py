"""The layer that gives turns, model calls and tools so much time and no more."""

import asyncio
from dataclasses import dataclass

from handrail.agent.errors import BuildError, CancelSwallowed, ModelTimeout, TurnTimeout
from handrail.agent.kernel.middlewares import CallChat, CallTool, CallTurn, Middleware
from handrail.agent.kernel.requests import ChatRequest, ChatResponse, ToolRequest, ToolResponse, TurnRequest, TurnResult
from handrail.agent.seconds import check_seconds


@dataclass(frozen=True, kw_only=True)
class Timeout(Middleware):
    """So many seconds for each model call, each tool call and the whole turn, with all that is inside this layer.

    What has not ended by then is cancelled, and late, also where it answers all the same. A model call raises
    `ModelTimeout`, which may be tried again; a tool call gives an error result of class `timeout`; a turn raises
    `TurnTimeout`. What the inside raises by itself, its own `TimeoutError` too, passes as it is. Raises `BuildError`
    for what is no number above 0, and where none is given.
    """

    model: float | None = None
    tool: float | None = None
    turn: float | None = None
    name: str = "Timeout"

    def __post_init__(self) -> None:
        for what in ("model", "tool", "turn"):
            check_seconds(getattr(self, what), f"Timeout({what}=)")
        if self.model is self.tool is self.turn is None:
            raise BuildError("Timeout is told what to limit: seconds for model, tool or turn")

    async def around_turn(self, request: TurnRequest, call_next: CallTurn) -> TurnResult:
        """Raises `TurnTimeout`; a handoff ends the turn, so the next agent's is not counted."""
        if self.turn is None:
            return await call_next(request)
        cancels = _cancels()
        try:
            async with asyncio.timeout(self.turn) as deadline:
                result = await call_next(request)
        except (TimeoutError, CancelSwallowed):
            # A cancel that a tool kept to itself is ours too (Python 3.11 makes no TimeoutError of it by itself).
            if not deadline.expired() or _cancels() > cancels:
                raise
            raise TurnTimeout(request.run.agent, self.turn) from None
        if _is_late(deadline, cancels):
            raise TurnTimeout(request.run.agent, self.turn)
        return result

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Raises `ModelTimeout`."""
        if self.model is None:
            return await call_next(request)
        cancels = _cancels()
        try:
            async with asyncio.timeout(self.model) as deadline:
                response = await call_next(request)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise self._late_answer(request) from None
        if _is_late(deadline, cancels):
            raise self._late_answer(request)
        return response

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """Gives an error result. A sync tool runs in a thread, which cannot be stopped: nobody waits for it then."""
        if self.tool is None:
            return await call_next(request)
        cancels = _cancels()
        try:
            async with asyncio.timeout(self.tool) as deadline:
                response = await call_next(request)
        except TimeoutError:
            if not deadline.expired():
                raise
            return self._late_result(request)
        return self._late_result(request) if _is_late(deadline, cancels) else response

    def _late_answer(self, request: ChatRequest) -> ModelTimeout:
        return ModelTimeout(f"{request.model.name} did not answer within {self.model} seconds")

    def _late_result(self, request: ToolRequest) -> ToolResponse:
        text = f"{request.tool.name} did not end within {self.tool} seconds."
        return ToolResponse(content=text, is_error=True, error_class="timeout")


def _is_late(deadline: asyncio.Timeout, cancels: int) -> bool:
    # Somebody inside kept the cancel to himself. Where he kept one from outside too, the run ends by that.
    return deadline.expired() and _cancels() <= cancels


def _cancels() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0
