"""Delegating: an agent that another calls as a tool, in a scope of its own."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.agent.crossing import cross_boundary, record_of
from handrail.agent.ended import let_go
from handrail.agent.errors import LimitExceeded
from handrail.agent.handing import KEPT_BACK, NO_ANSWER, failure, joined
from handrail.agent.kernel.requests import ToolResponse, TurnResult
from handrail.agent.limits import Budget
from handrail.agent.outputs import unanswered
from handrail.agent.scopes import Scope
from handrail.agent.subagents import AgentTool
from handrail.filters import FilterError, History, Message, NothingToHandOver, ToolCall, View
from handrail.filters.sensitivity import Tier, highest
from handrail.sessions import SessionError, SubagentRecord, Usage

if TYPE_CHECKING:
    from handrail.agent.loop import Turn

FINISHED = "The agent finished."
FOLD = 2000
"""How many characters of an answer `fold=True` keeps."""


class Outcome(msgspec.Struct, frozen=True):
    """How a sub-agent's call ended: its answer, or what is told of its failure; `label` is how sensitive that is.

    `is_silent` marks one that completed and gave no answer, or none that may cross; `error` is what was raised.
    """

    status: Literal["completed", "failed", "timeout", "limit"]
    text: str
    label: Tier | None = None
    is_silent: bool = False
    error: Exception | None = None

    @property
    def response(self) -> ToolResponse:
        """The same as a tool's result. A call that did not complete is an error, never an empty success."""
        if self.status == "completed":
            return ToolResponse(self.text, sensitivity=self.label)
        error_class = "timeout" if self.status == "timeout" else "failed"
        return ToolResponse(None, self.text, True, error_class, self.label, error=self.error)


class Delegation:
    """One sub-agent's call, from what crosses to what comes back, and what the record says of it.

    `part` counts from 1 where a call asks several agents, and `budget` is one that they share within the caller's.
    """

    def __init__(
        self, turn: "Turn", tool: AgentTool, call: ToolCall, *, part: int = 0, budget: Budget | None = None
    ) -> None:
        self.turn = turn
        self.tool = tool
        self.call = call
        self.part = part
        self.budget = budget or turn.budget
        self.name: str = tool.child.name
        self.scope: Scope | None = None
        self.fields: dict[str, Any] = {}
        self.stopped = "cancelled"
        """What the record says of the call where it is cancelled."""

    @property
    def usage(self) -> Usage:
        """What the call cost so far."""
        return self.scope.usage if self.scope is not None else Usage()

    async def run(self, input: str, label: Tier | None = None) -> Outcome:
        """How the call ended; `label` is how sensitive the input is, beside what the caller saw.

        Raises what ends the run: a filter's or a session's error, and a limit of the caller.
        """
        try:
            async with asyncio.timeout(self.tool.timeout) as deadline:
                return await self._ask(input, label)
        except (asyncio.CancelledError, SessionError, FilterError, LimitExceeded) as error:
            self._broken(error)
            raise
        except TimeoutError as error:
            if not deadline.expired():
                raise
            return self._failed(
                f"The agent {self.name} did not end within {self.tool.timeout} seconds.", "timeout", error
            )

    async def _ask(self, input: str, label: Tier | None) -> Outcome:
        turn, tool = self.turn, self.tool
        deps = turn.context.deps if tool.deps is None else tool.deps(turn.context.deps)
        read_only = tool.capability == "read_only"
        scope = self.scope = turn.scope.within(
            turn.path, self.call.id, deps, forward=tool.forward_events, read_only=read_only, part=self.part
        )
        try:
            await self._cross(scope, input, label)
        except NothingToHandOver as error:
            return Outcome("failed", f"{self.name} was not asked: {error}", error=error)
        try:
            result, said = await self._converse(scope)
        except NothingToHandOver as error:
            return self._failed(f"The agent {self.name} had nothing to hand over: {error}", error=error)
        except (SessionError, FilterError):
            raise
        except LimitExceeded as error:
            if turn.budget.holds(error.budget):
                raise
            return self._failed(f"The agent {self.name} reached {error.limit}={error.value}.", "limit", error)
        except Exception as error:  # noqa: BLE001  # to the agent that asked, a failed agent is a failed tool
            return self._raised(scope, error)
        if (problem := unanswered(self.name, result)) is not None:
            return self._raised(scope, problem)
        if result.status != "completed":
            return self._failed(f"The agent {self.name} did not complete: {result.status}.")
        return self._completed(scope, result, said)

    def _raised(self, scope: Scope, error: Exception) -> Outcome:
        views = [view.history for view in scope.views.values()]
        back = failure(self.turn, self.name, self.tool.returns, error, views, self.tool.policy)
        return self._failed(f"The agent {back.text}", "failed", error, back.label)

    async def _cross(self, scope: Scope, input: str, label: Tier | None) -> None:
        turn, tool = self.turn, self.tool
        crossing = await cross_boundary(
            turn,
            "subagent",
            self.name,
            turn.history,
            self.call.id,
            tool.filter,
            input=input,
            label=label,
            policy=tool.policy,
            part=self.part,
        )
        path = scope.path(self.name)
        if turn.run.log.on:
            fields = record_of(turn, crossing, path)
            same = ("path", "source", "target", "target_path", "call_id", "step")
            self.fields = {name: fields[name] for name in same}
            turn.run.log.write(SubagentRecord(event="start", part=self.part, **fields))
        scope.views[path] = View(History(crossing.seed))

    async def _converse(self, scope: Scope) -> tuple[TurnResult, list[Message]]:
        from handrail.agent.loop import converse

        child = self.turn.run.graph.agents[self.name]
        limits = child.agent.limits
        budget = Budget(limits, self.budget) if limits is not None else self.budget
        said: list[Message] = []
        seed = scope.views[scope.path(self.name)].history

        async def answered() -> tuple[TurnResult, "Turn"]:
            return await budget.in_time(
                converse(self.turn.run, scope, child, seed, seeded=True, budget=budget, said=said)
            )

        result, last = await self.budget.in_time(answered())
        let_go(last)
        return result, said

    def _completed(self, scope: Scope, result: TurnResult, said: Sequence[Message]) -> Outcome:
        answers = [result.message] if result.message is not None else []
        text, label = FINISHED, None
        if self.tool.expose != "none":
            shown = said if self.tool.expose == "all" else answers
            back = joined(self.turn, self.name, self.tool.returns, shown, self.tool.policy)
            text, label = back.text, back.label
        is_silent = text in (NO_ANSWER, KEPT_BACK)
        text = _folded(self.turn, self.tool, result, text)
        label = highest(self.tool.output_sensitivity, label)
        self._write("completed", text, label, self._is_reworded(scope, result))
        return Outcome("completed", text, label, is_silent)

    def _is_reworded(self, scope: Scope, result: TurnResult) -> bool:
        if self.tool.fold or self.tool.expose == "none":
            return True
        views = scope.views.values()
        lasts = [last for view in views if (last := _last_answer(view.history)) is not None]
        return all([last != result.message for last in lasts])

    def _failed(
        self,
        text: str,
        status: Literal["failed", "timeout", "limit"] = "failed",
        error: Exception | None = None,
        label: Tier | None = None,
    ) -> Outcome:
        self._write(status, text, label)
        return Outcome(status, text, label, error=error)

    def _broken(self, error: BaseException) -> None:
        # The error on its way matters more than a record that cannot be written, and may be that very failure.
        with contextlib.suppress(SessionError, OSError):
            self._write(self.stopped if isinstance(error, asyncio.CancelledError) else "failed", "")

    def _write(self, status: str, answer: str, label: Tier | None = None, reworded: bool = False) -> None:
        if not self.fields:
            return
        log = self.turn.run.log
        if not self.part:
            if self.turn.answered is None:
                self.turn.answered = {}
            self.turn.answered[self.call.id] = answer
        record = SubagentRecord(
            event="end",
            part=self.part,
            status=status,
            answer=answer,
            sensitivity=label if self.part else None,
            at=self.turn.run.clock(),
            usage=self.usage,
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
