"""Evaluate and retry: an agent answers, an evaluator says how good that is, and the agent tries again."""

import asyncio
from typing import TYPE_CHECKING, TypeGuard

from handrail.agent.delegating import Delegation, Outcome
from handrail.agent.errors import LimitExceeded
from handrail.agent.evaluations import (
    Evaluated,
    Evaluation,
    Evaluator,
    Iteration,
    Pick,
    Reason,
    as_evaluation,
    asked_of,
    best,
    passes,
    read_evaluation,
)
from handrail.agent.kernel.requests import ToolResponse
from handrail.agent.limits import Budget, Limits
from handrail.agent.subagents import AgentTool
from handrail.agent.teams import TeamTool
from handrail.agent.threads import called
from handrail.filters import ToolCall
from handrail.filters.sensitivity import Tier, highest

if TYPE_CHECKING:
    from handrail.agent.loop import Turn


class EvaluateAndRetry(TeamTool, frozen=True, kw_only=True, dict=True, eq=False):
    """An agent that tries until its answer will do, as one tool; see `evaluate_and_retry`."""

    evaluate: Evaluator | None = None
    """The evaluating function; without one the second of the team evaluates what the first answers."""
    max_iterations: int
    threshold: float | None = None
    patience: int | None = None
    min_delta: float = 0.0
    pick: Pick = "best"
    budget: Limits | None = None
    seconds: float | None = None

    async def answer(self, turn: "Turn", call: ToolCall, input: str) -> ToolResponse:
        """Has the agent answer until it will do. Raises what ends the run."""
        rounds = _Rounds(self, turn, call)
        try:
            return await rounds.run(input)
        except asyncio.CancelledError:
            rounds.tell("cancelled")
            raise


class _Rounds:
    """The iterations of one call."""

    def __init__(self, tool: EvaluateAndRetry, turn: "Turn", call: ToolCall) -> None:
        self.tool = tool
        self.turn = turn
        self.call = call
        self.context = turn.context.for_call(call.id)
        self.budget = Budget(tool.budget, turn.budget) if tool.budget is not None else None
        self.iterations: list[Iteration] = []
        self.is_spent = False
        self.is_expected = tool.threshold is not None
        self.is_verdict = False
        """Whether the latest evaluation says yes or no, and not how good the answer is."""
        self.reference: float | None = None
        self.since = 0

    async def run(self, task: str) -> ToolResponse:
        """The result. Its value is an `Evaluated`. Raises what ends the run."""
        tool = self.tool
        input, label = task, None
        for number in range(1, tool.max_iterations + 1):
            asked = self._delegation(tool.team[0], 2 * number - 1)
            outcome = await self._asked(asked, input, label)
            if outcome.status != "completed" or outcome.is_silent:
                return self._ended("budget") if self.is_spent and self.iterations else self._failed(outcome)
            iteration = await self._evaluated(number, task, outcome, asked)
            self.iterations.append(iteration)
            self.context.tell(
                "evaluation",
                iteration=number,
                score=iteration.score,
                passed=iteration.passed,
                critique=iteration.critique,
                error=iteration.error,
            )
            if iteration.passed:
                return self._ended("pass")
            if self.is_spent:
                return self._ended("budget")
            if self._is_level(iteration) and number < tool.max_iterations:
                return self._ended("plateau")
            input, label = iteration.input(task), highest(iteration.sensitivity, iteration.found)
        return self._ended("max_iterations")

    def _delegation(self, edge: AgentTool, part: int) -> Delegation:
        return Delegation(self.turn, edge, self.call, part=part, budget=self.budget)

    async def _asked(self, asked: Delegation, input: str, label: Tier | None) -> Outcome:
        outcome = await asked.run(input, label)
        self.is_spent = self._spends(outcome.error)
        return outcome

    def _spends(self, error: Exception | None) -> TypeGuard[LimitExceeded]:
        return self.budget is not None and isinstance(error, LimitExceeded) and error.budget is self.budget

    async def _evaluated(self, number: int, task: str, outcome: Outcome, asked: Delegation) -> Iteration:
        usage, label = asked.usage, None
        self.is_verdict = False
        if self.tool.evaluate is not None:
            found = await self._by_function(self.tool.evaluate, outcome.text, number)
        else:
            evaluator = self._delegation(self.tool.team[1], 2 * number)
            said = await self._asked(evaluator, asked_of(task, outcome.text), outcome.label)
            found, label = _read(said), said.label
            usage += evaluator.usage
        failed = isinstance(found, str)
        evaluation = Evaluation() if isinstance(found, str) else found
        self.is_verdict = self.is_verdict or (evaluation.score is None and not failed)
        self.is_expected = self.is_expected or evaluation.passed is not None
        return Iteration(
            number=number,
            text=outcome.text,
            score=evaluation.score,
            passed=passes(evaluation, self.tool.threshold),
            critique=evaluation.critique,
            error=str(found) if failed else "",
            usage=usage,
            sensitivity=outcome.label,
            found=label,
        )

    async def _by_function(self, evaluate: Evaluator, text: str, number: int) -> Evaluation | str:
        asked = called(evaluate, text, number)
        try:
            async with asyncio.timeout(self.tool.seconds) as deadline:
                found = await (asked if self.budget is None else self.budget.in_time(asked))
            if not deadline.expired():
                self.is_verdict = isinstance(found, bool)
                return as_evaluation(found)
        except Exception as error:  # noqa: BLE001  # an evaluator that raises has found nothing
            if self._spends(error):
                self.is_spent = True
                return f"the budget reached {error.limit}={error.value}"
            if not deadline.expired():
                return f"{type(error).__name__}: {error}"
        return f"the evaluator did not end within {self.tool.seconds} seconds"

    def _is_level(self, iteration: Iteration) -> bool:
        if self.is_verdict:
            return False
        score = iteration.score
        if score is not None and (self.reference is None or score - self.reference > self.tool.min_delta):
            self.reference, self.since = score, 0
            return False
        self.since += 1
        return self.tool.patience is not None and self.since >= self.tool.patience

    def _ended(self, reason: Reason) -> ToolResponse:
        last = self.iterations[-1]
        picked = last if reason == "pass" or self.tool.pick == "last" else best(self.iterations) or last
        report = Evaluated(text=picked.text, reason=reason, iterations=tuple(self.iterations), picked=picked)
        self.tell(reason, picked)
        note, label = self._note(reason, picked)
        text = f"{picked.text}\n\n[{note}]" if note else picked.text
        return ToolResponse(report, text, sensitivity=highest(picked.sensitivity, label))

    def _note(self, reason: Reason, picked: Iteration) -> tuple[str, Tier | None]:
        # What is shown beside an answer that was to be found good enough and was not; a mere score needs no words.
        count = len(self.iterations)
        tries = f"{count} answer{'s' if count != 1 else ''}"
        if best(self.iterations) is None and reason != "pass":
            errors = [each for each in self.iterations if each.error]
            if errors:
                return f"not evaluated ({reason}, {tries}): {errors[-1].error}", errors[-1].found
        if reason == "pass" or not (self.is_expected or reason == "budget"):
            return "", None
        score = f", score {picked.score:g}" if picked.score is not None else ""
        return f"not accepted ({reason}, {tries}): this is answer {picked.number}{score}", None

    def _failed(self, outcome: Outcome) -> ToolResponse:
        reason: Reason = "budget" if self.is_spent else "failed"
        report = Evaluated(text=outcome.text, reason=reason, iterations=tuple(self.iterations), error=outcome.error)
        self.tell(reason)
        failed = outcome.response
        return failed.replace(
            value=report, content=outcome.text, is_error=True, error_class=failed.error_class or "failed"
        )

    def tell(self, reason: str, picked: Iteration | None = None) -> None:
        """Tells those who listen how it ended."""
        number = picked.number if picked is not None else 0
        self.context.tell("evaluated", reason=reason, iterations=len(self.iterations), picked=number)


def _read(said: Outcome) -> Evaluation | str:
    if said.status != "completed" or said.is_silent:
        return said.text
    try:
        return read_evaluation(said.text)
    except ValueError as error:
        return f"the evaluation cannot be read: {error}"
