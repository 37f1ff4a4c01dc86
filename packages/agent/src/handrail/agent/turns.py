"""A turn: one agent's share of a run, from getting control to answering or handing over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.asking import fitted
from handrail.agent.contexts import RunContext
from handrail.agent.editing import feedback_record, leave_rejected
from handrail.agent.errors import CancelSwallowed
from handrail.agent.events import TurnEnd, TurnStart
from handrail.agent.handing import Asked
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import layer_name
from handrail.agent.kernel.privates import PrivateState
from handrail.agent.kernel.requests import ToolResponse, TurnResult, Verdict
from handrail.agent.kernel.states import State, as_json
from handrail.agent.limits import Budget
from handrail.agent.models import ToolSpec
from handrail.agent.repeats import Repeats
from handrail.agent.spending import Unsettled
from handrail.agent.stating import NO_CONTEXTS, Contexts, first_state
from handrail.agent.telling import teller
from handrail.filters import History, Message, ToolCall, View
from handrail.filters.messages import Messages, is_empty
from handrail.filters.sensitivity import Tier, highest
from handrail.sessions import AuditRecord, MessageRecord, TurnRecord, Usage

if TYPE_CHECKING:
    from handrail.agent.accepting import Acceptance
    from handrail.agent.bounds import Bound
    from handrail.agent.runs import Run
    from handrail.agent.scopes import Scope
    from handrail.agent.strategies import Plan


NO_HISTORY = History()
"""What stands before the first message; it is never extended."""
NOTHING_REMOVED: frozenset[str] = frozenset()


NO_LOOKS: Mapping[int, State] = MappingProxyType({})
"""Where nobody has looked at the state."""


def _acceptance(turn: TurnState, plan: Plan) -> Acceptance:
    # Loaded where an agent has an output type.
    from handrail.agent.accepting import Acceptance

    return Acceptance(turn, plan)


class TurnState:
    """One agent's turn as far as it has come: its view as it grows, and what it cost."""

    __slots__ = (
        "acceptance",
        "answer",
        "answered",
        "asked",
        "at_entry",
        "base",
        "batch",
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
        "finished",
        "gave",
        "highest",
        "history",
        "idle",
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
        "spent",
        "start",
        "task",
        "tell",
        "unsettled",
        "wanted",
        "writes",
    )

    def __init__(
        self,
        run: Run,
        scope: Scope,
        bound: Bound,
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
        self.budget = outer
        if limits is not None and limits is not outer.limits and limits != outer.limits:
            self.budget = Budget(limits, outer)
            self.budget.owner = f"the turn of {bound.name}"
        self.emit = scope.emit
        self.tell = teller(scope, self.path)
        deps = scope.deps_of(self.path)
        self.context: RunContext[Any] = RunContext(scope.run_id, self.path, bound.name, deps, self.budget, self)
        self.contexts: Contexts = NO_CONTEXTS
        self.instructions = {**bound.instructions, "run": run.instructions} if run.instructions else bound.instructions
        self.shown: Sequence[ToolSpec] = bound.specs
        self._look_at(base if seeded else scope.views.get(self.path), entered, seeded)
        self.requested: Asked | None = None
        # Made when there is something to put in: most turns need none of them, and a thousand may run at once.
        self.wanted: dict[str, Asked] | None = None
        self.answered: dict[str, str] | None = None
        self.writes: dict[str, Mapping[str, Any]] | None = None
        self.looks: Mapping[int, State] = NO_LOOKS
        self.finished: Container[str] = ()
        self.highest: Tier | None = None
        self.labelled = 0
        self.spent: list[Usage] = []
        self.idle = self.batch = 0
        self.calls: list[ToolCall] = []
        self.delivered: tuple[str, ...] = ()
        self.gave: dict[str, ToolResponse] | None = None
        self.unsettled: list[Unsettled] | None = None
        self.drawn: tuple[str, ...] = ()
        self.passed: tuple[Bound, Messages, View | None] | None = None
        self.played = self.edited = self.asked = False
        self.acceptance = _acceptance(self, bound.output) if bound.output is not None else None
        self.answer: Message | None = None
        self.last_answer: Message | None = None
        self.rejected: tuple[str, ...] = ()
        self.jump: Target | None = None
        self.ended_as = ""
        self.finish_reason = ""
        self.repeats = Repeats.of(self.budget)
        self.result: TurnResult | None = None
        self.task = asyncio.current_task(run.loop)
        self.cancels = self.task.cancelling() if self.task is not None else 0
        self._begin(seeded)

    def _look_at(self, view: View | None, entered: Messages, seeded: bool) -> None:
        """The view that the turn begins with: what stood before, and what is new."""
        if view is None:
            self.removed, self.base, self.start = NOTHING_REMOVED, NO_HISTORY, 0
        else:
            self.removed, self.base, self.start = view.removed, view.history, len(view.history)
            if not seeded and not self.run.fresh:
                entered = tuple([message for message in entered if not view.held(message.id)])
        self.entered, self.seeded = entered, seeded
        if seeded:
            self.history = self.scope.views[self.path].history
        else:
            self.history = self.base.extend(entered) if self.start else History(entered)
        self.begun = len(self.history)
        self.at_entry = self.history

    def _begin(self, seeded: bool) -> None:
        run, log = self.run, self.run.log
        if self.emit is not None:
            self.tell(TurnStart, self.bound.name)
        if not seeded and self.scope.depth == 0:
            run.entered = self.entered
        if log.on:
            if log.first_met(self.bound.name):
                log.stage(self.bound.introduction())
            given, run.given = run.given, {}
            log.stage(TurnRecord(path=self.path, run=run.id, event="start", at=run.clock(), given=given))
            if not seeded:
                log.write(*[MessageRecord(path=self.path, message=message) for message in self.entered])

    def named(self, message: Message) -> Message:
        """The message with an id, a time, and for an answer the agent's name."""
        agent = message.agent or (self.bound.name if message.role == "assistant" else message.agent)
        return message.replace(id=self.scope.ids.next(), agent=agent, created_at=self.run.clock())

    def fitted(self, message: Message) -> Message:
        """The message with calls that can be answered: each with an id of its own, and known as transfer or not."""
        return fitted(self, message)

    def end(self, status: str, problem: str | None) -> None:
        """However the turn ended: its view is where the next one finds it, and who listens is told."""
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
                    usage=self.cost(),
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

    def count_step(self) -> None:
        """A model call is about to be made. Raises `LimitExceeded` before it."""
        if self.budget.metered:
            self.budget.check_call(self.bound.model.name)
        self.budget.take_step()
        self.run.steps += 1
        self.asked = True

    def count_idle(self) -> None:
        """A jump went past the model. It is no step, but no circle of jumps is endless either: as many as steps may be
        taken. Raises `LimitExceeded`."""
        self.idle += 1
        self.budget.check_idle(self.idle)

    def refuse_swallowed_cancel(self) -> None:
        """A cancel that a layer or tool kept to itself still ends the run. Raises `CancelSwallowed`."""
        if self.task is not None and self.task.cancelling() > self.cancels:
            raise CancelSwallowed(self.bound.name, [layer_name(layer) for layer in self.bound.layers])

    def last_open(self) -> Message | None:
        """The message whose calls are still to be answered, which is then the view's last."""
        last = self.history.last
        return last if last is not None and last.role == "assistant" and last.tool_calls else None

    def _open_calls(self) -> Sequence[ToolCall]:
        last = self.last_open()
        return last.tool_calls if last is not None else ()

    def _new(self) -> Messages:
        if not self.edited:
            return self.history[min(self.start, len(self.history)) :] if self.start else self.history
        return tuple([message for message in self.history if self.base.position(message.id) is None])

    def said(self) -> Messages:
        """What this turn has said and heard, as its view holds it."""
        if not self.edited:
            return self.history[self.begun :]
        return tuple([message for message in self.history if self.at_entry.position(message.id) is None])

    def cost(self) -> Usage:
        """What the turn's model calls cost so far."""
        if len(self.spent) > 1:
            # Whoever asks next need not add them up again.
            self.spent[:] = [Usage.total(self.spent)]
        return Usage.total(self.spent)

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
            usage=self.cost(),
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

    def look(self, place: int) -> State:
        """The state as the layer at this place may read it; -1 for who is no layer."""
        state = self.looks.get(place)
        if state is None:
            state = State(self, place)
            self.looks = {**self.looks, place: state}
        return state

    def first_state(self, place: int) -> PrivateState:
        """The private state of a layer at the start of a turn, or as the session left it."""
        return first_state(self, place)

    def note(self, name: str, data: Mapping[str, object], call_id: str) -> None:
        """Writes something of a layer's or a tool's own into the record."""
        if self.run.log.on:
            text = as_json(dict(data), name, "data")
            record = AuditRecord(
                path=self.path, name=name, call_id=call_id, at=self.run.clock(), data=msgspec.Raw(text)
            )
            self.run.log.stage(record)

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
