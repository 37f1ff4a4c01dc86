"""Delegating: an agent that another calls as a tool, in a scope of its own."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from handrail.agent.crossing import cross_boundary, record_of
from handrail.agent.errors import LimitExceeded
from handrail.agent.handing import failure, joined
from handrail.agent.kernel.requests import ToolResponse, TurnResult
from handrail.agent.limits import Budget
from handrail.agent.scopes import Scope
from handrail.agent.subagents import AgentTool
from handrail.filters import FilterError, History, Message, NothingToHandOver, ToolCall, View
from handrail.filters.sensitivity import Tier, highest
from handrail.sessions import SessionError, SubagentRecord

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

FINISHED = "The agent finished."
FOLD = 2000
"""How many characters of an answer `fold=True` keeps."""


async def call_agent(turn: "Turn", tool: AgentTool, call: ToolCall, input: str) -> ToolResponse:
    """Runs a sub-agent in a scope of its own. One that does not complete is a tool error, never an empty success."""
    run = turn.run
    child = run.graph.agents[tool.child.name]
    deps = turn.context.deps if tool.deps is None else tool.deps(turn.context.deps)
    scope = turn.scope.within(
        turn.path, call.id, deps, forward=tool.forward_events, read_only=tool.capability == "read_only"
    )
    ended = _Ended(turn, tool, call, scope)
    try:
        crossing = await cross_boundary(
            turn, "subagent", child.name, turn.history, call.id, tool.filter, input=input, policy=tool.policy
        )
    except NothingToHandOver as error:
        return ToolResponse(content=f"{child.name} was not asked: {error}", is_error=True, error_class="failed")
    if run.log.on:
        ended.begin(record_of(turn, crossing, scope.path(child.name)))
    try:
        scope.views[scope.path(child.name)] = View(History(crossing.seed))
        result, said = await _run(turn, scope, tool)
    except NothingToHandOver as error:
        return ended.failed(f"The agent {child.name} had nothing to hand over: {error}")
    except (asyncio.CancelledError, SessionError, FilterError) as error:
        ended.broken(error)
        raise
    except LimitExceeded as error:
        if turn.budget.holds(error.budget):
            ended.broken(error)
            raise
        return ended.failed(f"The agent {child.name} reached {error.limit}={error.value}.")
    except Exception as error:  # noqa: BLE001  # to the agent that asked, a failed agent is a failed tool
        views = [view.history for view in scope.views.values()]
        back = failure(turn, child.name, tool.returns, error, views, tool.policy)
        return ended.failed(f"The agent {back.text}", back.label)
    if result.status != "completed":
        return ended.failed(f"The agent {child.name} did not complete: {result.status}.")
    return ended.completed(result, said)


async def _run(turn: "Turn", scope: Scope, tool: AgentTool) -> tuple[TurnResult, list[Message]]:
    from handrail.agent.loop import converse

    child = turn.run.graph.agents[tool.child.name]
    budget = Budget(child.agent.limits, turn.budget) if child.agent.limits is not None else turn.budget
    said: list[Message] = []
    seed = scope.views[scope.path(child.name)].history
    result, _ = await converse(turn.run, scope, child, seed, seeded=True, budget=budget, said=said)
    return result, said


class _Ended:
    """How a sub-agent's call ended, for its caller and for the record."""

    def __init__(self, turn: "Turn", tool: AgentTool, call: ToolCall, scope: Scope) -> None:
        self.turn = turn
        self.tool = tool
        self.call = call
        self.scope = scope
        self.fields: dict[str, Any] = {}

    def begin(self, fields: dict[str, Any]) -> None:
        same = ("path", "source", "target", "target_path", "call_id", "step")
        self.fields = {name: fields[name] for name in same}
        self.turn.run.log.write(SubagentRecord(event="start", **fields))

    def failed(self, text: str, label: Tier | None = None) -> ToolResponse:
        self._write("failed", text)
        return ToolResponse(content=text, is_error=True, error_class="failed", sensitivity=label)

    def broken(self, error: BaseException) -> None:
        # The error on its way matters more than a record that cannot be written, and may be that very failure.
        with contextlib.suppress(SessionError, OSError):
            self._write("cancelled" if isinstance(error, asyncio.CancelledError) else "failed", "")

    def completed(self, result: TurnResult, said: list[Message]) -> ToolResponse:
        answers = [result.message] if result.message is not None else []
        text, label = FINISHED, None
        if self.tool.expose != "none":
            shown = said if self.tool.expose == "all" else answers
            text, _, label = joined(self.turn, self.tool.child.name, self.tool.returns, shown, self.tool.policy)
        text = _folded(self.turn, self.tool, result, text)
        self._write("completed", text, self._reworded(result))
        return ToolResponse(text, sensitivity=highest(self.tool.output_sensitivity, label))

    def _reworded(self, result: TurnResult) -> bool:
        if self.tool.fold or self.tool.expose == "none":
            return True
        views = self.scope.views.values()
        lasts = [last for view in views if (last := _last_answer(view.history)) is not None]
        return all([last != result.message for last in lasts])

    def _write(self, status: str, answer: str, reworded: bool = False) -> None:
        log = self.turn.run.log
        if self.fields:
            self.turn.answered[self.call.id] = answer
            record = SubagentRecord(
                event="end",
                status=status,
                answer=answer,
                at=self.turn.run.clock(),
                usage=self.scope.usage,
                returns=log.descriptor(self.tool.returns),
                reworded=reworded,
                **self.fields,
            )
            log.write(record)


def _last_answer(history: History) -> Message | None:
    return next((message for message in reversed(history) if message.role == "assistant"), None)


def _folded(turn: "Turn", tool: AgentTool, result: TurnResult, text: str) -> str:
    # A fold keeps the caller's context small: what was done in one line, and the answer cut to so many characters.
    if not tool.fold:
        return text
    limit = FOLD if tool.fold is True else tool.fold
    # A model may call anything by any name, so only the names of tools that there are come back.
    known = [name for bound in turn.run.graph.agents.values() for name in (*bound.tools, *bound.handoffs)]
    names = ", ".join(dict.fromkeys(call.name for call in result.tool_calls if call.name in known)) or "none"
    steps = f"{result.steps} step{'s' if result.steps != 1 else ''}"
    cut = text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"
    return f"[{tool.child.name} {result.status} in {steps}; tools: {names}]\n{cut}"
