"""The loop: ask the model, say what it said, answer its calls, hand over, or stop when it only talks."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.accepting import Acceptance
from handrail.agent.asking import ask, fitted
from handrail.agent.calling import GOES_ON, HANDED_OVER, STOPPED, Upshot, answer_calls, close_calls, cut_off
from handrail.agent.contexts import RunContext
from handrail.agent.editing import apply, enter, feedback_record, leave_rejected, rewrite
from handrail.agent.ended import let_go
from handrail.agent.errors import CancelSwallowed, HandoffRefused, InvalidAnswer, InvalidJump, RunError, UnknownTarget
from handrail.agent.events import Discard, MessageDone, StepEnd, StepStart, TurnEnd, TurnStart
from handrail.agent.handing import Asked
from handrail.agent.handoffs import handoff
from handrail.agent.kernel.blame import wrong_return
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.kernel.privates import PrivateState
from handrail.agent.kernel.requests import TurnRequest, TurnResult, Verdict
from handrail.agent.kernel.states import State
from handrail.agent.limits import Budget
from handrail.agent.models import ToolSpec
from handrail.agent.repeats import Repeats
from handrail.agent.stating import NO_CONTEXTS, Contexts, check_deps, first_state, keep_private
from handrail.filters import History, Message, ToolCall, View
from handrail.filters.messages import Messages, is_empty
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
            said.extend(turn.said())
        if turn.passed is None:
            return result, turn
        (bound, entered, base), seeded = turn.passed, True
        let_go(turn)


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
        "acceptance",
        "answer",
        "answered",
        "asked",
        "at_entry",
        "base",
        "begun",
        "bound",
        "budget",
        "calls",
        "cancels",
        "context",
        "contexts",
        "delivered",
        "drawn",
        "edited",
        "emit",
        "ended_as",
        "entered",
        "finish_reason",
        "highest",
        "history",
        "instructions",
        "jump",
        "labelled",
        "last_answer",
        "looks",
        "passed",
        "path",
        "played",
        "rejected",
        "removed",
        "repeats",
        "requested",
        "result",
        "run",
        "scope",
        "seeded",
        "shown",
        "start",
        "task",
        "tell",
        "usage",
        "writes",
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
        self.contexts: Contexts = NO_CONTEXTS
        self.instructions = {**bound.instructions, "run": run.instructions} if run.instructions else bound.instructions
        view = base if seeded else scope.views.get(self.path)
        self.removed = view.removed if view is not None else frozenset()
        self.base = view.history if view is not None else NO_HISTORY
        if not seeded and view is not None and not run.fresh:
            entered = tuple([message for message in entered if not view.held(message.id)])
        self.entered = entered
        self.seeded = seeded
        self.shown: Sequence[ToolSpec] = bound.specs
        if seeded:
            self.history = scope.views[self.path].history
        else:
            self.history = History(entered) if not self.base else self.base.extend(entered)
        self.start = len(self.base)
        self.begun = len(self.history)
        self.at_entry = self.history
        self.requested: Asked | None = None
        self.highest: Tier | None = None
        self.labelled = 0
        self.usage = Usage()
        self.calls: list[ToolCall] = []
        self.answered: dict[str, str] = {}
        self.delivered: tuple[str, ...] = ()
        self.drawn: tuple[str, ...] = ()
        self.passed: tuple[Bound, Messages, View | None] | None = None
        self.played = self.edited = self.asked = False
        self.looks: dict[int, State] = {}
        self.acceptance = Acceptance(self, bound.output) if bound.output is not None else None
        self.answer: Message | None = None
        self.last_answer: Message | None = None
        self.rejected: tuple[str, ...] = ()
        self.writes: dict[str, Mapping[str, Any]] = {}
        self.jump: Target | None = None
        self.ended_as = ""
        self.finish_reason = ""
        self.repeats = Repeats.of(self.budget)
        self.result: TurnResult | None = None
        self.task = asyncio.current_task()
        self.cancels = self.task.cancelling() if self.task is not None else 0
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
            if self.bound.requires:
                check_deps(self.bound, self.context.deps)
            result = await self.budget.in_time(self.bound.whole(self))
            self.refuse_swallowed_cancel()
            if self.requested is not None:
                late = f"{self.requested.target} was handed the conversation by code after the last step of the turn"
                raise HandoffRefused(f"{late}, where nothing takes it up")
            if self.context.states:
                keep_private(self)
            status = result.status
            return result
        except BaseException as error:
            cut_off(self, self._open_calls(), error)
            if isinstance(error, Exception):
                status, problem = "failed", type(error).__name__
            raise
        finally:
            self._end(status, problem)

    async def enter_at(self, jump: Target) -> TurnResult:
        """The turn chain, entered where a hook of the whole turn jumped to."""
        if jump == "tools" and not self._open_calls():
            raise InvalidJump(f"a hook of {self.bound.name} jumps to 'tools', and no call of its last message is open")
        self.jump = jump
        return await self.enter_turn()

    async def enter_turn(self) -> TurnResult:
        """The turn, through the layers around it."""
        # Entered once more after its answer was accepted, the turn goes on with its view.
        again = TurnRequest(run=self.context, messages=self.history, load_history=False, keep_attempts=True)
        request = again if self.played else TurnRequest(run=self.context, messages=self.entered)
        result = await self.bound.turn(request)
        self.refuse_swallowed_cancel()
        if type(result) is not TurnResult:
            raise InvalidAnswer(wrong_return(self.bound.layers, self.bound.name, "around_turn", result, "TurnResult"))
        self._check(result)
        close_calls(self, self._open_calls())
        if result.message is not None and result.message is not self.last_answer:
            result = self._say_rewritten(result, result.message)
        if self.rejected:
            # What comes after the turn sees what was accepted, and no attempt before it.
            leave_rejected(self)
            result = result.replace(messages=self.history, new_messages=self._new())
        return result

    async def end_at_once(self) -> TurnResult:
        """The turn's result where a hook ends it before it was entered."""
        self.played = True
        close_calls(self, self._open_calls())
        handed_over = self.requested is not None and await answer_calls(self, ()) is HANDED_OVER
        return self._result("handed_over", None) if handed_over else self._ended()

    def refreshed(self, result: TurnResult) -> TurnResult:
        """The result after a hook has edited the view: an answer that was given other words is the new one."""
        place = self.history.position(result.message.id) if result.message is not None else None
        if place is not None and self.history[place] is not result.message:
            result = self._reworded(result, self.history[place])
        return result.replace(messages=self.history, new_messages=self._new())

    def _reworded(self, result: TurnResult, message: Message) -> TurnResult:
        self.last_answer = message
        same = result.message is not None and result.output == result.message.text
        return result.replace(message=message, output=message.text if same else result.output)

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

    def _say_rewritten(self, result: TurnResult, message: Message) -> TurnResult:
        # A hook answered in the loop's place, or put other words into the answer: the view has what it says.
        last = self.last_answer
        place = self.history.position(message.id) if message.id else None
        if place is not None and last is not None and message.id == last.id:
            if self.history[place] != message:
                edited = [*self.history[:place], message, *self.history[place + 1 :]]
                rewrite(self, edited, "the answer, changed by a hook")
                self.run.said[:] = [message if said.id == message.id else said for said in self.run.said]
                if self.emit is not None:
                    self.tell(Discard, message.id, "the answer was given other words")
                    self.tell(MessageDone, message)
            return self._reworded(result, message)
        if last is not None:
            # The loop's answer was not accepted, and leaves.
            self.rejected += (last.id,)
            if self.emit is not None:
                self.tell(Discard, last.id, "another answer was given")
        if not message.id or place is not None or message.id in self.removed or (last and message.id == last.id):
            message = self.named(message)
        self.say(message)
        if self.emit is not None:
            self.tell(MessageDone, message)
        return self._reworded(result, message)

    def named(self, message: Message) -> Message:
        """The message with an id, a time, and for an answer the agent's name."""
        agent = message.agent or (self.bound.name if message.role == "assistant" else message.agent)
        return message.replace(id=self.scope.ids.next(), agent=agent, created_at=self.run.clock())

    def fitted(self, message: Message) -> Message:
        """The message with calls that can be answered: each with an id of its own, and known as transfer or not."""
        return fitted(self, message)

    def _end(self, status: str, problem: str | None) -> None:
        run = self.run
        try:
            if self.rejected:
                leave_rejected(self)
        finally:
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
            # Where another turn follows, its first write takes the end of this one along; else the run's end does.
            if self.scope.depth == 0 and status == "handed_over":
                run.log.sync()
            elif self.scope.depth == 0 and self.scope.waiting:
                run.log.end_turn()
        if self.emit is not None:
            self.tell(TurnEnd, status)

    async def play(self, request: TurnRequest) -> TurnResult:
        """Steps until the agent answers, hands over, or a hook ends its turn."""
        enter(self, request)
        run, context, emit, stepped = self.run, self.context, self.emit, self.bound.step
        jump, self.jump = self.jump, None
        while True:
            if self.task is not None and self.task.cancelling() > self.cancels:
                self.refuse_swallowed_cancel()
            self.answer, self.asked, begun = None, False, jump != "tools"
            if begun:
                context.step += 1
                if emit is not None:
                    self.tell(StepStart, context.step)
                if stepped is None:
                    self.count_step()
                    self.answer = self.last_answer = await ask(self)
                    jump = None
                else:
                    jump = await stepped(self)
                    if not self.asked and jump != "end":
                        self.budget.take_step()  # no circle of jumps is endless
            calls = self._calls_to_answer(jump)
            outcome = await answer_calls(self, calls) if calls or self.requested else GOES_ON
            if emit is not None and begun:
                self.tell(StepEnd, context.step)
                if run.crowded():
                    await run.throttle()
            if begun and not self.asked:
                context.step -= 1
            result = self._settled(jump, calls) if outcome is GOES_ON else self._ended_by(outcome)
            if result is not None:
                return result
            jump = None

    def _ended_by(self, outcome: Upshot) -> TurnResult:
        return self._result(outcome.status, None if outcome is STOPPED else outcome.message or self.answer)

    def _settled(self, jump: Target | None, calls: Sequence[ToolCall]) -> TurnResult | None:
        # An agent that only talks has answered, and one with an output type when what it gave fits.
        if jump == "end":
            return self._ended()
        if self.acceptance is not None and jump != "model":
            return self.acceptance.settle(self.answer)
        return None if calls or jump else self._result("completed", self.answer)

    def _calls_to_answer(self, jump: Target | None) -> Sequence[ToolCall]:
        """The calls of the answer, if they are to run; those that a hook jumped past are answered with "not run"."""
        if jump == "tools" and self.answer is None:
            self.answer = self.last_open()
        calls = self.answer.tool_calls if self.answer is not None else ()
        if jump == "tools" and not calls:
            raise InvalidJump(f"a hook of {self.bound.name} jumps to 'tools', and no call is open there")
        if jump is None or jump == "tools":
            return calls
        close_calls(self, calls)
        return ()

    async def ask(self) -> None:
        """The innermost part of a step: the model is asked, through the chat chain."""
        self.count_step()
        self.answer = self.last_answer = await ask(self)

    def count_step(self) -> None:
        """A model call is about to be made. Raises `LimitExceeded` before it."""
        self.budget.take_step()
        self.run.steps += 1
        self.asked = True

    def refuse_swallowed_cancel(self) -> None:
        """A cancel that a layer or tool kept to itself still ends the run. Raises `CancelSwallowed`."""
        if self.task is not None and self.task.cancelling() > self.cancels:
            raise CancelSwallowed(self.bound.name, [layer_name(layer) for layer in self.bound.layers])

    def last_open(self) -> Message | None:
        """The message whose calls are still to be answered, which is then the view's last."""
        last = self.history[-1] if len(self.history) else None
        return last if last is not None and last.role == "assistant" and last.tool_calls else None

    def _open_calls(self) -> Sequence[ToolCall]:
        last = self.last_open()
        return last.tool_calls if last is not None else ()

    def _ended(self) -> TurnResult:
        # A hook ended the turn: what it or the model said last in it, if anything, is the answer.
        found = None
        for message in reversed(self.history):
            if message.role == "user" or self.base.position(message.id) is not None:
                break
            if message.role == "assistant" and not message.tool_calls:
                found = message
                break
        return self._result("completed", found) if self.acceptance is None else self.acceptance.ended(found)

    def _new(self) -> Messages:
        if not self.edited:
            return self.history[min(self.start, len(self.history)) :]
        return tuple([message for message in self.history if self.base.position(message.id) is None])

    def said(self) -> Messages:
        """What this turn has said and heard, as its view holds it."""
        if not self.edited:
            return self.history[self.begun :]
        return tuple([message for message in self.history if self.at_entry.position(message.id) is None])

    def _result(self, status: Any, message: Message | None) -> TurnResult:
        self.last_answer = message
        return TurnResult(
            status=status,
            message=message,
            output=message.text if message is not None else "",
            messages=self.history,
            new_messages=self._new(),
            tool_calls=tuple(self.calls),
            steps=self.context.step,
            usage=self.usage,
            finish_reason=self.finish_reason,
        )

    def completed(self, message: Message | None, output: Any, verdict: Verdict) -> TurnResult:
        """The result of a turn whose answer is a value, or has none."""
        return self._result("completed", message).replace(output=output, verdict=verdict)

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

    def hear_feedback(self, messages: Sequence[Message], rejected: str | None) -> None:
        """Puts what was said to a rejected answer into the view and the record."""
        self.history = self.history.extend(messages)
        if self.scope.depth == 0:
            self.run.said.extend(messages)
        if self.run.log.on:
            self.run.log.write(*[feedback_record(self, message, rejected) for message in messages])

    def apply(self, layer: Middleware, hook: str, update: Any) -> Target | None:
        """Writes what a state hook returned, and gives where it jumps to, if it does."""
        return apply(self, layer, hook, update)

    def look(self, place: int) -> State:
        """The state as the layer at this place may read it; -1 for who is no layer."""
        state = self.looks.get(place)
        if state is None:
            state = self.looks[place] = State(self, place)
        return state

    def first_state(self, place: int) -> PrivateState:
        """The private state of a layer at the start of a turn, or as the session left it."""
        return first_state(self, place)

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
        if self.context.turn is not self:
            raise RunError(f"the turn of {self.bound.name} has ended; nothing takes up a handoff to {target} any more")
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
