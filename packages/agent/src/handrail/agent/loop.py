"""The loop: ask the model, say what it said, answer its calls, hand over, or stop when it only talks."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from handrail.agent.asking import ask
from handrail.agent.calling import GOES_ON, HANDED_OVER, STOPPED, Upshot, answer_calls, close_calls, cut_off
from handrail.agent.editing import apply, enter, leave_rejected, rewrite
from handrail.agent.ended import let_go
from handrail.agent.errors import HandoffRefused, InvalidAnswer, InvalidJump, StateError
from handrail.agent.events import Discard, MessageDone, StepEnd, StepStart
from handrail.agent.kernel.blame import wrong_return
from handrail.agent.kernel.jumps import Target
from handrail.agent.kernel.middlewares import Middleware
from handrail.agent.kernel.requests import STATUSES, TurnRequest, TurnResult
from handrail.agent.limits import Budget
from handrail.agent.stating import check_deps, keep_lasting, keep_private
from handrail.agent.telling import LEAD
from handrail.agent.turns import TurnState
from handrail.filters import Message, ToolCall, View
from handrail.filters.messages import Messages
from handrail.sessions import SessionError

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.runs import Run
    from handrail.agent.scopes import Scope


async def converse(
    run: Run,
    scope: Scope,
    bound: Bound,
    entered: Messages,
    *,
    seeded: bool = False,
    base: View | None = None,
    budget: Budget | None = None,
    said: list[Message] | None = None,
) -> tuple[TurnResult, Turn]:
    """Turns, one agent after the other, until one answers; the last turn comes back with its result. However a turn
    ends, what was said stays in the view.

    `seeded` says that `entered` came over a boundary, and stands already in the scope's view of the agent, which was
    `base` before; `said` is given what the turns say.
    """
    while True:
        if scope.depth == 0:
            run.way += bound.names
        turn = Turn(run, scope, bound, entered, seeded, base, budget or run.budget)
        status, problem = "cancelled", None
        try:
            if bound.requires:
                check_deps(bound, turn.context.deps)
            whole = bound.whole(turn)
            result = await (turn.budget.in_time(whole) if turn.budget.timed else whole)
            turn.keep()
            status = result.status
        except BaseException as error:
            turn.cut_off(error)
            if isinstance(error, Exception):
                status, problem = "failed", type(error).__name__
            raise
        finally:
            turn.end(status, problem)
        if said is not None:
            said.extend(turn.said())
        if turn.passed is None:
            return result, turn
        (bound, entered, base), seeded = turn.passed, True
        let_go(turn)


class Turn(TurnState):
    """One agent's turn, as the loop takes it."""

    __slots__ = ()

    def keep(self) -> None:
        """The turn has come through its chain: nothing is left over, and what its layers remember is kept."""
        self.refuse_swallowed_cancel()
        if self.requested is not None:
            late = f"{self.requested.target} was handed the conversation by code after the last step of the turn"
            raise HandoffRefused(f"{late}, where nothing takes it up")
        if self.context.states:
            keep_lasting(self)
            keep_private(self)

    def cut_off(self, error: BaseException) -> None:
        """An error ended the turn: calls that are open are answered, and what its layers remember is kept."""
        cut_off(self, self._open_calls(), error)
        with contextlib.suppress(StateError, SessionError, OSError):
            keep_lasting(self)

    async def enter_at(self, jump: Target) -> TurnResult:
        """The turn chain, entered where a hook of the whole turn jumped to."""
        if jump == "tools" and not self._open_calls():
            raise InvalidJump(f"a hook of {self.bound.name} jumps to 'tools', and no call of its last message is open")
        self.jump = jump
        return await self.enter_turn()

    def enter_turn(self) -> Coroutine[Any, Any, TurnResult]:
        """The turn, through the layers around it."""
        if self.bound.alone:
            self.played = True
            return self.play()
        return self._enter_through_layers()

    async def _enter_through_layers(self) -> TurnResult:
        # Entered once more after its answer was accepted, the turn goes on with its view.
        if self.played:
            request = TurnRequest(run=self.context, messages=self.history, load_history=False, keep_attempts=True)
        else:
            request = TurnRequest(run=self.context, messages=self.entered)
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
        if result.status not in STATUSES:
            raise InvalidAnswer(
                f"a turn of {self.bound.name} ended as {result.status!r}, which is none of {', '.join(STATUSES)}"
            )
        if result.message is not None and type(result.message) is not Message:
            raise InvalidAnswer(
                f"a turn of {self.bound.name} ended with {type(result.message).__name__}, which is no message"
            )
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

    def play_on(self, request: TurnRequest) -> Coroutine[Any, Any, TurnResult]:
        """Steps, as the layers around the turn have it entered."""
        enter(self, request)
        return self.play()

    async def play(self) -> TurnResult:
        """Steps until the agent answers, hands over, or a hook ends its turn."""
        run, context, emit, stepped = self.run, self.context, self.emit, self.bound.step
        jump, self.jump = self.jump, None
        while True:
            if self.task is not None and self.task.cancelling() > self.cancels:
                self.refuse_swallowed_cancel()
            self.answer, self.asked, begun = None, False, jump != "tools"
            if begun:
                context.step += 1
                context.tries = 0
                if emit is not None:
                    self.tell(StepStart, context.step)
                if stepped is None:
                    self.count_step()
                    await ask(self)
                    jump = None
                else:
                    jump = await stepped(self)
                    if not self.asked and jump != "end":
                        self.count_idle()
            if self.task is not None and self.task.cancelling() > self.cancels:
                self.refuse_swallowed_cancel()  # before what was asked for begins
            answer = self.answer
            calls = answer.tool_calls if jump is None and answer is not None else self._calls_to_answer(jump)
            outcome = await answer_calls(self, calls) if calls or self.requested else GOES_ON
            if emit is not None and begun:
                self.tell(StepEnd, context.step)
                if len(run.unheard) > LEAD:
                    await run.throttle()
            if begun and not self.asked:
                context.step -= 1
            if self.bound.lasting:
                keep_lasting(self)
            if outcome is not GOES_ON:
                return self._ended_by(outcome)
            if jump is not None or not calls or self.acceptance is not None:
                result = self._settled(jump, calls)
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

    def ask(self) -> Coroutine[Any, Any, None]:
        """The innermost part of a step: the model is asked, through the chat chain."""
        self.count_step()
        return ask(self)

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

    def apply(self, layer: Middleware, hook: str, update: Any) -> Target | None:
        """Writes what a state hook returned, and gives where it jumps to, if it does."""
        return apply(self, layer, hook, update)
