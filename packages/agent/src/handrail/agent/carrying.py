"""Carrying: how a team of agents is run without an agent that calls it."""

from collections.abc import AsyncIterator
from typing import Any

from handrail.agent.agents import Agent
from handrail.agent.errors import ToolFailed
from handrail.agent.events import Event
from handrail.agent.kernel.middlewares import CallChat, CallHandoff, CallTool, Middleware
from handrail.agent.kernel.requests import ChatRequest, HandoffRequest, HandoffResponse, ToolRequest, ToolResponse
from handrail.agent.models import ChatResponse
from handrail.agent.runs import RunResult
from handrail.agent.scripted import FunctionModel
from handrail.agent.streams import Stream
from handrail.agent.teams import TeamTool
from handrail.filters import NothingToHandOver, assistant, call


class TeamResult(RunResult, frozen=True, kw_only=True):
    """How a run of a team ended; `report` says what each of its agents did (`FannedOut`, `Evaluated`)."""

    report: Any


class Carrier(Middleware):
    """Has an agent pass its input on to a team and answer with the result, without a model; it serves one run."""

    def __init__(self, tool: TeamTool) -> None:
        self.tool = tool
        self.input = ""
        self.input_id = ""
        self.response: ToolResponse | None = None

    def agent(self) -> Agent:
        """The agent that calls the team. Raises `BuildError` where it cannot be built."""
        model = FunctionModel(lambda request: "", name="none")
        return Agent(self.tool.name, model=model, tools=[self.tool], middleware=[self])

    def result(self, result: RunResult) -> TeamResult:
        """The run's result, with the team's report."""
        known = {name: getattr(result, name) for name in result.__struct_fields__}
        return TeamResult(report=self.response.value if self.response is not None else None, **known)

    async def around_chat(self, request: ChatRequest, call_next: CallChat) -> ChatResponse:
        """Calls the team, then says what it answered."""
        last = request.messages[-1]
        if self.response is not None:
            return ChatResponse(assistant(last.text, sensitivity=last.sensitivity))
        self.input, self.input_id = last.text if last.role == "user" else "", last.id
        self.input = self.input if self.input.strip() else "Answer the last message."
        asked = call(self.tool.name, input=self.input)
        return ChatResponse(assistant(asked, sensitivity=last.sensitivity), finish_reason="tool_calls")

    async def around_tool(self, request: ToolRequest, call_next: CallTool) -> ToolResponse:
        """Keeps what the team gave. Raises `ToolFailed`."""
        response = self.response = await call_next(request)
        if response.is_error:
            cause = getattr(response.value, "error", None)
            raise ToolFailed(self.tool.name, response.error_class, str(response.content)) from cause
        return response

    async def around_handoff(self, request: HandoffRequest, call_next: CallHandoff) -> HandoffResponse:
        """Does not say twice what the agent is asked: where it crosses as it stands, there is no note of it."""
        if request.input == self.input:
            try:
                response = await call_next(request.replace(input=""))
            except NothingToHandOver:
                return await call_next(request)
            if response.seed[-1].id == self.input_id:
                return response
        return await call_next(request)


class TeamStream:
    """A run of a team that is heard as it goes. Use it with `async with`, and iterate over its events."""

    def __init__(self, stream: Stream[RunResult], carrier: Carrier) -> None:
        self._stream = stream
        self._carrier = carrier

    @property
    def result(self) -> TeamResult:
        """The run's result, once its events have ended. Raises what the run raised, or `RunError` before the end."""
        return self._carrier.result(self._stream.result)

    async def __aenter__(self) -> "TeamStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stream.__aexit__(*exc_info)

    def __aiter__(self) -> AsyncIterator[Event]:
        return aiter(self._stream)

    async def __anext__(self) -> Event:
        return await anext(self._stream)
