"""Accepting an answer: one that does not fit the output type is given back with what is wrong, a bounded number of
times; one that fits ends the turn as a value."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import InvalidOutput
from handrail.agent.events import Discard, MessageDone
from handrail.agent.json_texts import NotJson, read_json
from handrail.agent.kernel.requests import TurnResult, Verdict
from handrail.agent.outputs import BY, Shape, Unfit
from handrail.agent.strategies import Plan
from handrail.filters import Message, ToolCall, assistant, tool_result, user
from handrail.filters.messages import Refusal
from handrail.filters.sensitivity import highest
from handrail.sessions import ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.turns import TurnState

ACCEPTED = "Accepted."
NOT_TAKEN = "Not taken: the conversation was handed over in the same response."


class Accepted(msgspec.Struct, frozen=True):
    """A value that fits, with its words, and the message that brought it where those are its words already."""

    value: Any
    text: str
    message: Message | None = None


class Acceptance:
    """How far a turn is with its answer: how many did not fit, what was wrong with the last, and the one that fits."""

    __slots__ = ("accepted", "cause", "plan", "reason", "rejections", "text", "turn")

    def __init__(self, turn: "TurnState", plan: Plan) -> None:
        self.turn = turn
        self.plan = plan
        self.begin()

    def begin(self) -> None:
        """Starts anew: each entry of the turn has all its attempts."""
        self.rejections = 0
        self.reason = self.text = ""
        self.cause: Unfit | None = None
        self.accepted: Accepted | None = None

    def answer_calls(
        self, calls: Sequence[ToolCall], ids: Mapping[str, str], results: dict[str, Message], *, handed_over: bool
    ) -> None:
        """Gives calls of output tools their results: one that fits is taken, of several none is, and none beside a
        handoff that took place."""
        if handed_over:
            text, fits = NOT_TAKEN, False
        else:
            text, fits = self._taken(calls)
        turn = self.turn
        for call in calls:
            results[call.id] = tool_result(
                call,
                text,
                id=ids[call.id],
                agent=turn.bound.name,
                created_at=turn.run.clock(),
                is_error=not fits,
                sensitivity=turn.label(),
            )
        turn.run.log.write(*[ToolResultRecord(path=turn.path, message=results[call.id]) for call in calls])

    def _taken(self, calls: Sequence[ToolCall]) -> tuple[str, bool]:
        if len(calls) > 1:
            self._reject(Unfit(f"there can be one answer, and this response gives {len(calls)}"), calls[0].arguments)
        else:
            (call,) = calls
            try:
                self._accept(self.plan.tools[call.name], call.arguments or "{}")
            except Unfit as problem:
                self._reject(problem, call.arguments)
            else:
                return ACCEPTED, True
        return f"Not accepted: {self.reason}. Answer again with one call of {self._names()}.", False

    def settle(self, message: Message | None) -> TurnResult | None:
        """The turn's result, where the model's last message ends it; None where it goes on.

        Raises `InvalidOutput` where no attempt is left and nothing else was asked for.
        """
        calls = message.tool_calls if message is not None else ()
        if not calls:
            self._hear_words(message)
        if self.accepted is not None:
            verdict = Verdict(valid=True, attempts=self.rejections + 1, by=BY, value=self.accepted.value)
            return self._end(self.accepted, verdict, message)
        if self.rejections > self.plan.prepared.output.retries:
            return self._exhausted(message)
        if not calls:
            feed_back(self.turn, message, self._feedback())
        return None

    def ended(self, message: Message | None) -> TurnResult:
        """The result of a turn that a hook ended: the words that stand there are the answer if they fit."""
        prepared, text = self.plan.prepared, message.text if message is not None else ""
        try:
            value = prepared.whole.read(_json_in(text)) if prepared.whole is not None else text
        except Unfit:
            if not (prepared.words and text):
                reason = "a hook ended the turn before it had an answer that fits"
                return self.turn.completed(message, None, Verdict(valid=False, reason=reason, attempts=0, by=BY))
            value = text
        return self.turn.completed(message, value, Verdict(valid=True, by=BY, value=value))

    def _hear_words(self, message: Message | None) -> None:
        text = message.text if message is not None else ""
        try:
            self._read_words(message, text)
        except Unfit as problem:
            self._reject(problem, text)

    def _read_words(self, message: Message | None, text: str) -> None:
        prepared = self.plan.prepared
        refused = message is not None and any([type(part) is Refusal for part in message.content])
        if self.plan.mode == "native" and prepared.whole is not None and text:
            try:
                self._accept(prepared.whole, _json_in(text), message)
            except Unfit:
                # Where plain words are an answer, all is that does not look like a value.
                if not prepared.words or text.lstrip()[:1] in ("{", "[", "`"):
                    raise
            else:
                return
        if prepared.words and not refused and message is not None:
            self.accepted = Accepted(text, text, message)
        elif refused:
            raise Unfit("it is a refusal")
        elif not text:
            raise Unfit("it is empty")
        else:
            raise Unfit("it is words, and not a call")

    def _accept(self, shape: Shape, text: str, message: Message | None = None) -> None:
        value = shape.read(text)
        try:
            words = shape.write(value)
        except ValueError:
            words = text  # a value that JSON cannot carry was given as this
        self.accepted = Accepted(value, words, message)

    def _reject(self, problem: Unfit, text: str) -> None:
        cut = {"length": "it was cut off at its length limit", "content_filtered": "a content filter cut it off"}
        told = cut.get(self.turn.finish_reason)
        self.rejections += 1
        self.reason = f"{told} ({problem})" if told else str(problem)
        self.cause, self.text = problem, text

    def _feedback(self) -> str:
        shorter = " Give a shorter answer." if self.turn.finish_reason == "length" else ""
        if self.plan.mode == "native":
            how = "Answer again, with nothing but JSON that fits the schema."
        else:
            how = f"Give your answer by calling {self._names()}."
        return f"Your last answer was not accepted: {self.reason}.{shorter} {how}"

    def _names(self) -> str:
        return " or ".join(self.plan.tools)

    def _end(self, accepted: Accepted, verdict: Verdict, last: Message | None) -> TurnResult:
        message = accepted.message or self._closing(accepted.text, last)
        return self.turn.completed(message, accepted.value, verdict)

    def _closing(self, text: str, last: Message | None) -> Message:
        # Whoever reads the conversation later finds the answer in words, whatever way it came.
        turn = self.turn
        labels = [last.sensitivity, *[part.sensitivity for part in last.content]] if last is not None else []
        message = turn.named(assistant(text, sensitivity=highest(turn.label(), *labels)))
        turn.say(message)
        turn.run.log.write()
        if turn.emit is not None:
            turn.tell(MessageDone, message)
        return message

    def _exhausted(self, last: Message | None) -> TurnResult:
        output = self.plan.prepared.output
        words = last if last is not None and not last.tool_calls else None
        verdict = Verdict(valid=False, reason=self.reason, attempts=self.rejections, by=BY)
        if output.on_exhausted == "raise":
            by = f"the output type of {self.turn.bound.name}"
            raise InvalidOutput(by, self.rejections, self.reason, self.text) from self.cause
        if output.on_exhausted == "return":
            return self.turn.completed(words, None, verdict)
        if words is not None:
            withdraw(self.turn, words, ())
        return self._end(Accepted(output.fallback, self.plan.prepared.fallback_text), verdict, last)


def _json_in(text: str) -> str:
    try:
        return read_json(text).text
    except NotJson as problem:
        raise Unfit(str(problem)) from None


def feed_back(turn: "TurnState", message: Message | None, text: str) -> None:
    """Tells the model what was wrong with what it said. Both leave the view when the turn ends, and the log keeps
    them."""
    said = turn.named(user(text, sensitivity=turn.label()))
    withdraw(turn, message, (said,))
    turn.hear_feedback([said], message.id if message is not None else "")


def withdraw(turn: "TurnState", message: Message | None, said: Sequence[Message]) -> None:
    """Takes an answer back, with what is said to it: from who listens now, and from the view when the turn ends."""
    if message is not None and turn.emit is not None:
        turn.tell(Discard, message.id, "the answer was rejected")
    turn.rejected += tuple([each.id for each in ((message,) if message is not None else ()) + tuple(said)])
