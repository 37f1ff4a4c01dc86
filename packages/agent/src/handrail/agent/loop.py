"""The loop: ask the model, say what it said, answer its calls, hand over, or stop when it only talks."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from handrail.agent.asking import ask
from handrail.agent.calling import answer_calls
from handrail.agent.contexts import RunContext
from handrail.agent.errors import HandoffRefused, InvalidAnswer, UnknownTarget
from handrail.agent.events import StepEnd, StepStart, TurnEnd, TurnStart
from handrail.agent.handing import Asked
from handrail.agent.handoffs import handoff
from handrail.agent.kernel.privates import PrivateState
from handrail.agent.kernel.requests import TurnRequest, TurnResult
from handrail.agent.limits import Budget
from handrail.filters import History, Message, ToolCall, View
from handrail.filters.messages import Messages, id_given_twice, is_empty
from handrail.filters.repairs import restore
from handrail.filters.sensitivity import Tier, highest
from handrail.sessions import MessageRecord, TurnRecord, Usage

if TYPE_CHECKING:
    from handrail.agent.graphs import Bound
    from handrail.agent.runs import Run
    from handrail.agent.scopes import Scope


async def converse(
    run: "Run",
    scope: "Scope",
    bound: "Bound",
    entered: Messages,
    *,
    seeded: bool = False,
    base: View | None = None,
    budget: Budget | None = None,
    said: list[Message] | None = None,
) -> "tuple[TurnResult, Turn]":
    """Turns, one agent after the other, until one answers; the last turn comes back with its result.

    `seeded` says that `entered` came over a boundary, and stands already in the scope's view of the agent, which was
    `base` before; `said` is given what the turns say.
    """
    while True:
        if scope.depth == 0:
            run.way.append(bound.name)
        turn = Turn(run, scope, bound, entered, seeded, base, budget or run.budget)
        result = await turn.take()
        if said is not None:
            said.extend(turn.history[turn.begun :])
        if turn.passed is None:
            return result, turn
        (bound, entered, base), seeded = turn.passed, True


NO_HISTORY = History()
"""What stands before the first message; it is never extended."""


def _teller(scope: "Scope", path: str) -> Callable[..., None]:
    """What tells those who listen of an event of the agent at this path: `tell(kind, *about)`."""
    emit, run_id, outer, depth = scope.emit, scope.run_id, scope.outer, scope.depth
    if emit is None:
        return lambda event, *about: None
    if outer is None:
        return lambda event, *about: emit(event(run_id, path, *about))
    return lambda event, *about: emit(event(run_id, path, *about, parent_id=outer.run_id, depth=depth))


class Turn:
    """One agent's turn: its view as it grows, and what the turn cost."""

    __slots__ = (
        "answered",
        "base",
        "begun",
        "bound",
        "budget",
        "calls",
        "context",
        "delivered",
        "drawn",
        "emit",
        "entered",
        "highest",
        "history",
        "instructions",
        "labelled",
        "passed",
        "path",
        "played",
        "removed",
        "requested",
        "run",
        "scope",
        "seeded",
        "start",
        "tell",
        "usage",
    )

    def __init__(
        self,
        run: "Run",
        scope: "Scope",
        bound: "Bound",
        entered: Messages,
        seeded: bool,
        base: View | None,
        outer: Budget,
    ) -> None:
        self.run = run
        self.scope = scope
        self.bound = bound
        self.path = scope.path(bound.name)
        limits = bound.agent.limits
        self.budget = outer if limits is None or limits == outer.limits else Budget(limits, outer)
        self.emit = scope.emit
        self.tell = _teller(scope, self.path)
        deps = scope.deps_of(self.path)
        self.context: RunContext[Any] = RunContext(scope.run_id, self.path, bound.name, deps, self.budget, self)
        self.instructions = {**bound.instructions, "run": run.instructions} if run.instructions else bound.instructions
        view = base if seeded else scope.views.get(self.path)
        self.removed = view.removed if view is not None else frozenset()
        self.base = view.history if view is not None else NO_HISTORY
        if not seeded and view is not None and not run.fresh:
            entered = tuple([message for message in entered if not view.held(message.id)])
        self.entered = entered
        self.seeded = seeded
        if seeded:
            self.history = scope.views[self.path].history
        else:
            self.history = History(entered) if not self.base else self.base.extend(entered)
        self.start = len(self.base)
        self.begun = len(self.history)
        self.requested: Asked | None = None
        self.highest: Tier | None = None
        self.labelled = 0
        self.usage = Usage()
        self.calls: list[ToolCall] = []
        self.answered: dict[str, str] = {}
        self.delivered: tuple[str, ...] = ()
        self.drawn: tuple[str, ...] = ()
        self.passed: tuple[Bound, Messages, View | None] | None = None
        self.played = False
        self._begin(seeded)

    def _begin(self, seeded: bool) -> None:
        run, log = self.run, self.run.log
        if self.emit is not None:
            self.tell(TurnStart, self.bound.name)
        if not seeded and self.scope.depth == 0:
            run.entered = self.entered
        if log.on:
            if log.first_met(self.bound.name):
                log.stage(self.bound.introduction())
            log.stage(TurnRecord(path=self.path, run=run.id, event="start", at=run.clock()))
            if not seeded:
                log.write(*[MessageRecord(path=self.path, message=message) for message in self.entered])

    async def take(self) -> TurnResult:
        """The turn, through its chain. However it ends, what was said stays in the view."""
        status, problem = "cancelled", None
        try:
            request = TurnRequest(run=self.context, messages=self.entered)
            result = await self.bound.turn(request)
            if type(result) is not TurnResult:
                raise InvalidAnswer(f"a turn of {self.bound.name} gave {type(result).__name__}, not a TurnResult")
            self._check(result)
            if not self.played and result.message is not None:
                self._say_unplayed(result.message)
            status = result.status
            return result
        except Exception as error:
            status, problem = "failed", type(error).__name__
            raise
        finally:
            self._end(status, problem)

    def _check(self, result: TurnResult) -> None:
        if (self.passed is not None) != (result.status == "handed_over"):
            raise InvalidAnswer(
                f"a turn of {self.bound.name} ended as {result.status!r}, but control "
                f"{'has passed to another agent' if self.passed is not None else 'has not passed to another agent'}"
            )
        message = result.message
        if message is not None and result.status == "completed" and (message.role != "assistant" or message.tool_calls):
            raise InvalidAnswer(
                f"a turn of {self.bound.name} ended with a message that is no answer: of role {message.role}, "
                f"with {len(message.tool_calls)} open calls"
            )

    def _say_unplayed(self, message: Message) -> None:
        # A hook answered in the loop's place: what it says is said all the same.
        self.say(message if message.id else self._named(message, self.bound.name))

    def _named(self, message: Message, agent: str | None = None) -> Message:
        return message.replace(id=self.scope.ids.next(), agent=agent or message.agent, created_at=self.run.clock())

    def _end(self, status: str, problem: str | None) -> None:
        run = self.run
        self.scope.views[self.path] = View(self.history, self.removed)
        if run.log.on:
            run.log.stage(
                TurnRecord(
                    path=self.path,
                    run=run.id,
                    event="end",
                    at=run.clock(),
                    status=status,
                    steps=self.context.step,
                    usage=self.usage,
                    error=problem,
                )
            )
            if self.scope.depth == 0:
                # Where another turn follows, its first write takes the end of this one along.
                run.log.sync() if status == "handed_over" else run.log.end_turn()
        if self.emit is not None:
            self.tell(TurnEnd, status)

    async def play(self, request: TurnRequest) -> TurnResult:
        """Steps until the agent answers or hands over."""
        if self.passed is not None:
            raise InvalidAnswer(f"a hook around the turn of {self.bound.name} re-enters it after it handed over")
        self._enter(request)
        run, context, emit = self.run, self.context, self.emit
        while True:
            self.budget.take_step()
            context.step += 1
            run.steps += 1
            if emit is not None:
                self.tell(StepStart, context.step)
            message = await ask(self)
            calls = message.tool_calls
            handed_over = bool(calls or self.requested) and await answer_calls(self, calls)
            if emit is not None:
                self.tell(StepEnd, context.step)
                if run.crowded():
                    await run.throttle()
            if handed_over or not calls:
                return self._result("handed_over" if handed_over else "completed", message)

    def _enter(self, request: TurnRequest) -> None:
        self.played = True
        if request.messages is self.entered and request.load_history:
            return
        before = self.history
        messages = [message if message.id else self._named(message) for message in request.messages]
        self._refuse_twice([*self.base, *messages] if request.load_history else messages)
        after = restore([*self.base, *messages] if request.load_history else messages, "drop").messages
        after = after if isinstance(after, History) else History(after)
        kept = {message.id for message in after}
        self.removed |= {message.id for message in before if message.id not in kept}
        self.run.log.edit(self.path, before, after, "changed by a hook around the turn")
        self.history = after

    def _refuse_twice(self, messages: Messages) -> None:
        if (twice := id_given_twice(messages)) is not None:
            raise InvalidAnswer(f"a hook around the turn of {self.bound.name} gives the message id {twice!r} twice")

    def _result(self, status: Any, message: Message) -> TurnResult:
        return TurnResult(
            status=status,
            message=message,
            output=message.text,
            messages=self.history,
            new_messages=self.history[min(self.start, len(self.history)) :],
            tool_calls=tuple(self.calls),
            steps=self.context.step,
            usage=self.usage,
        )

    def say(self, message: Message) -> None:
        """Puts an answer into the view and the record; one that says nothing is recorded only."""
        aside = is_empty(message)
        if not aside:
            self.history = self.history.append(message)
            if self.scope.depth == 0:
                self.run.said.append(message)
        if self.run.log.on:
            self.run.log.stage(MessageRecord(path=self.path, message=message, aside=aside))

    def hear(self, results: Messages) -> None:
        """Puts the results of calls into the view; they are in the record already."""
        self.history = self.history.extend(results)
        if self.scope.depth == 0:
            self.run.said.extend(results)

    def tell_from_anywhere(self, event: Any, *about: Any) -> None:
        """The same, from the thread of a sync tool too: who listens is told on the loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            with contextlib.suppress(RuntimeError):  # the loop has closed, and nobody listens any more
                self.run.loop.call_soon_threadsafe(self.tell, event, *about)
        else:
            self.tell(event, *about)

    def label(self) -> Tier | None:
        """The label of what this agent writes now: none, or for an agent that inherits the highest tier of its view."""
        if self.bound.agent.labels == "own":
            return None
        for message in self.history[self.labelled :]:
            self.highest = highest(self.highest, message.sensitivity, *[part.sensitivity for part in message.content])
        self.labelled = len(self.history)
        return self.highest

    def request_handoff(self, target: str, reason: str, input: Any, call_id: str) -> None:
        """A handoff by code: the first of a step wins.

        Raises `UnknownTarget`, `HandoffRefused` or `InvalidArguments`.
        """
        if target not in self.run.graph.agents or target == self.bound.name:
            others = sorted(set(self.run.graph.agents) - {self.bound.name})
            raise UnknownTarget(target, self.bound.name, others)
        if self.scope.path(target) in self.scope.waiting:
            raise HandoffRefused(f"{target} waits for an answer; answer it in place of handing over")
        edges = [edge for name, edge in self.bound.handoffs.items() if self.bound.targets[name] == target]
        edge = edges[0] if edges else handoff(target)
        if self.requested is None:
            tools = [self.bound.tools.get(call.name) for call in self.calls if call_id and call.id == call_id]
            label = highest(*[tool.output_sensitivity for tool in tools if tool is not None])
            self.requested = Asked(edge, target, edge.given(reason, input, input is not None), label=label)

    def first_state(self, layer: int) -> PrivateState:
        """The private state of a layer at the start of a turn. Raises `TypeError` for a layer that declares none."""
        if layer < 0:
            raise TypeError("this middleware has no private state; it declares one by defining init_state()")
        return PrivateState(self.bound.agent.middleware[layer].init_state())
