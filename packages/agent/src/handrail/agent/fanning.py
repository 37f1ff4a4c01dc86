"""Fan-out: several agents asked the same at once, and one result made of their answers."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from handrail.agent.delegating import Delegation, Outcome
from handrail.agent.errors import BuildError, LimitExceeded
from handrail.agent.kernel.requests import ToolResponse
from handrail.agent.limits import Budget, Limits
from handrail.agent.merging import Candidate, FannedOut, Merge, Merging, Way
from handrail.agent.subagents import INPUT_SCHEMA, AgentTool, asked
from handrail.agent.teams import TeamTool, check_budget, check_count, edge_to
from handrail.agent.threads import ended, raise_first
from handrail.filters import ToolCall

if TYPE_CHECKING:
    from handrail.agent.agents import Agent
    from handrail.agent.loop import Turn


class FanOut(TeamTool, frozen=True, kw_only=True, dict=True, eq=False):
    """Several agents that are asked the same at once, as one tool; see `fan_out`."""

    merge: Merge
    judge: AgentTool | None = None
    separator: str
    max_concurrency: int
    budget: Limits | None = None

    @property
    def children(self) -> tuple[AgentTool, ...]:
        """The agents, and the judge."""
        return self.team if self.judge is None else (*self.team, self.judge)

    async def answer(self, turn: "Turn", call: ToolCall, input: str) -> ToolResponse:
        """Asks all agents, and merges. Raises what ends the run, when every agent has stopped."""
        fan = _Fan(self, turn, call)
        candidates = await fan.ask(input)
        response = await Merging(self, turn, call, candidates, fan.first, fan.budget).response(input)
        report: FannedOut = response.value
        won = report.winner.agent if report.winner is not None else ""
        way = self.merge if isinstance(self.merge, str) else getattr(self.merge, "__name__", "function")
        statuses = [candidate.status for candidate in candidates]
        turn.context.for_call(call.id).tell("fan_out", merge=way, winner=won, statuses=statuses)
        return response


def fan_out(
    agents: "Sequence[Agent | AgentTool]",
    *,
    merge: Merge = "concat",
    max_concurrency: int = 4,
    budget: Limits | None = None,
    timeout: float | None = None,
    judge: "Agent | AgentTool | None" = None,
    separator: str = "\n\n---\n\n",
    name: str = "fan_out",
    description: str = "",
    **options: Any,
) -> FanOut:
    """A tool that asks several agents the same, at most `max_concurrency` at once, and makes one result of it.

    Each is a sub-agent of the caller; `options` say how each is asked, and are those of `to_tool` (`filter`, `returns`,
    `expose`, …). One that needs its own is given as `to_tool(agent, …)`. `timeout` is in seconds, for each agent.
    `budget` bounds all of them together, within the caller's: when it is reached, those that still run are stopped.
    Its `max_seconds` are for a judge or a merging function as well.
    One that fails does not trouble the others. `merge` says what the result is:

    - `concat`: the answers in list order with the `separator` between, and `[status: name]` in the place of the others.
    - `first_success`: the first answer; the others are stopped, and have ended when it is given.
    - `judge`: what the `judge` answers who is shown the answers, or the one that it picks with `{"pick": number}`.
    - a function of the candidates, sync or async: the text, or the candidate, that it returns.

    Where no agent answered the result is an error; a function is asked all the same. Raises `BuildError`.
    """
    if merge not in get_args(Way) and not callable(merge):
        raise BuildError(f"merge of {name} is one of {', '.join(get_args(Way))}, or a function, not {merge!r}")
    if (merge == "judge") != (judge is not None):
        raise BuildError(f"{name} needs a judge where merge='judge', and only there")
    if not isinstance(separator, str):
        raise BuildError(f"the separator of {name} is a text, not {separator!r}")
    check_count("max_concurrency", max_concurrency, name)
    check_budget(budget, name)
    team = tuple([edge_to(agent, name, timeout, options) for agent in agents])
    if not team:
        raise BuildError(f"{name} has no agents to ask")
    judged = {option: value for option, value in options.items() if option not in ("expose", "fold")}
    names = ", ".join(dict.fromkeys([edge.child.name for edge in team]))
    return FanOut(
        name=name,
        description=description or f"Ask these agents at once: {names}.",
        fn=asked,
        parameters=INPUT_SCHEMA,
        output_sensitivity=options.get("output_sensitivity"),
        team=team,
        merge=merge,
        judge=None if judge is None else edge_to(judge, name, timeout, judged),
        separator=separator,
        max_concurrency=max_concurrency,
        budget=budget,
    )


class _Fan:
    """The agents of one call while they run."""

    def __init__(self, tool: FanOut, turn: "Turn", call: ToolCall) -> None:
        self.tool = tool
        self.turn = turn
        self.context = turn.context.for_call(call.id)
        self.budget = Budget(tool.budget, turn.budget) if tool.budget is not None else None
        self.gate = asyncio.Semaphore(tool.max_concurrency)
        parts = enumerate(tool.team, 1)
        self.asked = [Delegation(turn, edge, call, part=part, budget=self.budget) for part, edge in parts]
        self.seconds = [0.0] * len(self.asked)
        self.first: int | None = None
        """The place of the first that answered."""
        self.is_over = False
        """Whether nobody is waited for any more."""

    async def ask(self, input: str) -> tuple[Candidate, ...]:
        """What came of each agent, when all have ended."""
        tasks = [asyncio.ensure_future(self._one(place, input)) for place in range(len(self.asked))]
        waiting = set(tasks)
        try:
            while waiting and not self.is_over:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await ended(tasks)
        raise_first([error for task in tasks if not task.cancelled() and (error := task.exception()) is not None])
        return tuple([self._candidate(place, task) for place, task in enumerate(tasks)])

    async def _one(self, place: int, input: str) -> Outcome:
        async with self.gate:
            if self.is_over:
                raise asyncio.CancelledError  # there is no need to begin any more
            clock = asyncio.get_running_loop().time
            began = clock()
            try:
                outcome = await self.asked[place].run(input)
            except Exception:
                self.is_over = True
                raise
            finally:
                self.seconds[place] = clock() - began
            self._note(place, outcome)
            return outcome

    def _note(self, place: int, outcome: Outcome) -> None:
        status = _status(outcome)
        self.context.tell("candidate", number=place + 1, agent=self.asked[place].name, status=status)
        if status == "completed" and self.first is None:
            self.first = place
            self.is_over = self.is_over or self.tool.merge == "first_success"
        if self._is_spent(outcome):
            self.is_over = True
            for each in self.asked:
                each.stopped = "limit"

    def _is_spent(self, outcome: Outcome) -> bool:
        error = outcome.error
        return self.budget is not None and isinstance(error, LimitExceeded) and error.budget is self.budget

    def _candidate(self, place: int, task: "asyncio.Task[Outcome]") -> Candidate:
        each = self.asked[place]
        known: dict[str, Any] = {"agent": each.name, "usage": each.usage, "seconds": self.seconds[place]}
        if task.cancelled():
            if each.stopped == "limit":
                return Candidate(status="limit", error=f"{each.name} was stopped at the common budget.", **known)
            return Candidate(status="cancelled", error=f"{each.name} was stopped.", **known)
        outcome = task.result()
        status = _status(outcome)
        known["text" if status == "completed" else "error"] = outcome.text
        return Candidate(status=status, sensitivity=outcome.label, **known)


def _status(outcome: Outcome) -> Literal["completed", "failed", "timeout", "limit"]:
    return "failed" if outcome.is_silent else outcome.status
