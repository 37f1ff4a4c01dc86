"""What layers share that judge a turn's answer and have a bad one given again."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from handrail.agent.errors import BuildError, InvalidAnswer, InvalidOutput
from handrail.agent.kernel.middlewares import CallTurn, Middleware, layer_name
from handrail.agent.kernel.requests import TurnRequest, TurnResult, Verdict
from handrail.filters import Message, assistant
from handrail.filters.messages import is_empty

OnExhausted: TypeAlias = Literal["raise", "return", "fallback"]
Fallback: TypeAlias = str | Message | Callable[[TurnResult], str | Message | Awaitable[str | Message]]
Feedback: TypeAlias = str | Callable[[TurnResult, str], str | Message | Awaitable[str | Message]]

FEEDBACK = "Your answer was not accepted: {reason}\nGive the whole answer again, with that put right."


class Options(TypedDict, total=False):
    """The options that every such layer has; see `Validating`."""

    retries: int
    on_exhausted: OnExhausted
    fallback: Fallback | None
    keep_attempts: bool
    feedback: Feedback | None
    name: str


class Judged(msgspec.Struct, frozen=True):
    """Whether an answer holds, or why not; what it was read as, and what the judge raised in place of judging."""

    reason: str | None = None
    value: Any = None
    error: Exception | None = None


class Validating(Middleware):
    """Judges the answer of a completed turn. One that does not hold is fed back with the reason, and the agent answers
    again, `retries` times a turn at the most, however often the turn is entered; then `on_exhausted` says what happens.

    `raise`: `InvalidOutput`. `return`: the last answer, its verdict not valid. `fallback`: the answer that `fallback`
    is or gives (text, an assistant message, or a function of the result), its verdict not valid. `feedback` is a text
    in which `{reason}` stands for the reason, or a function of the result and the reason that gives a text or message.
    `keep_attempts` leaves what was rejected, and the feedback, in the agent's view. Two of one kind in a list are told
    apart by `name`. Raises `BuildError` for what is none of this.
    """

    def __init__(
        self,
        *,
        retries: int = 2,
        on_exhausted: OnExhausted = "raise",
        fallback: Fallback | None = None,
        keep_attempts: bool = False,
        feedback: Feedback | None = None,
        name: str = "",
    ) -> None:
        self.name = name
        self.retries = retries
        self.on_exhausted = on_exhausted
        self.fallback = fallback
        self.keep_attempts = keep_attempts
        self.feedback = FEEDBACK if feedback is None else feedback
        self._check_options(layer_name(self))

    def _check_options(self, name: str) -> None:
        if type(self.retries) is not int or self.retries < 0:
            raise BuildError(f"the retries of {name} are a number from 0 on, not {self.retries!r}")
        if self.on_exhausted not in ("raise", "return", "fallback"):
            raise BuildError(f"on_exhausted of {name} is 'raise', 'return' or 'fallback', not {self.on_exhausted!r}")
        if (self.fallback is not None) != (self.on_exhausted == "fallback"):
            raise BuildError(f"{name} is given a fallback and on_exhausted='fallback' together, or neither")
        if self.fallback is not None and not callable(self.fallback):
            _answer(self.fallback, f"the fallback of {name}", BuildError)
        if type(self.keep_attempts) is not bool:
            raise BuildError(f"keep_attempts of {name} is True or False, not {self.keep_attempts!r}")
        if not isinstance(self.feedback, str) and not callable(self.feedback):
            raise BuildError(f"the feedback of {name} is text with {{reason}} in it, or a function")

    def init_state(self) -> dict[str, Any]:
        """How many answers were judged in the turn, and how many were asked for again."""
        return {"answers": 0, "retried": 0}

    async def judge(self, result: TurnResult) -> Judged:
        """What is to be said of a completed turn's answer. What it raises counts as a no."""
        raise NotImplementedError

    def read(self, message: Message) -> Any:
        """The output of a turn that ends with the fallback."""
        return message.text

    async def around_turn(self, request: TurnRequest, call_next: CallTurn) -> TurnResult:
        """Judges each answer that comes back, and has the turn entered again while it may."""
        counts = request.state
        result = await call_next(request)
        while result.status == "completed":
            counts["answers"] += 1
            judged = await self._judged(request, result)
            if judged.reason is None:
                return self._accepted(result, judged, counts["answers"])
            if counts["retried"] >= self.retries:
                return await self._exhausted(result, judged, counts["answers"])
            counts["retried"] += 1
            said = await self._feedback(result, judged.reason)
            result = await call_next(request.again(result, said, keep_attempts=self.keep_attempts))
        return result

    async def _judged(self, request: TurnRequest, result: TurnResult) -> Judged:
        try:
            judged = await self.judge(result)
        except Exception as error:  # noqa: BLE001  # a judge that cannot say yes says no
            judged = Judged(f"it could not be checked ({type(error).__name__})", error=error)
        if judged.reason is not None:
            error_class = type(judged.error).__name__ if judged.error is not None else ""
            request.run.tell("rejected", by=layer_name(self), reason=judged.reason, error=error_class)
        return judged

    def _accepted(self, result: TurnResult, judged: Judged, answers: int) -> TurnResult:
        if result.verdict is not None and not result.verdict.valid:
            return result  # the no of a layer inside stands
        verdict = Verdict(valid=True, attempts=answers, by=layer_name(self), value=judged.value)
        return result.replace(verdict=verdict, output=judged.value)

    async def _exhausted(self, result: TurnResult, judged: Judged, answers: int) -> TurnResult:
        name, reason = layer_name(self), judged.reason or ""
        if self.on_exhausted == "raise":
            text = result.message.text if result.message is not None else ""
            raise InvalidOutput(name, answers, reason, text) from judged.error
        result = result.replace(verdict=Verdict(valid=False, reason=reason, attempts=answers, by=name))
        if self.fallback is None:
            return result
        given = await _called(self.fallback, result) if callable(self.fallback) else self.fallback
        message = _answer(given, f"the fallback of {name}", InvalidAnswer)
        rejected = result.message
        if rejected is not None and not is_empty(rejected):
            # It stands where the rejected answer stood: so that leaves the view.
            message = message.replace(id=rejected.id, agent=rejected.agent, created_at=rejected.created_at)
        return result.replace(message=message, output=self.read(message))

    async def _feedback(self, result: TurnResult, reason: str) -> str | Message:
        if isinstance(self.feedback, str):
            return self.feedback.replace("{reason}", reason)
        said = await _called(self.feedback, result, reason)
        if not isinstance(said, str | Message) or (isinstance(said, Message) and said.role != "user"):
            raise InvalidAnswer(f"the feedback of {layer_name(self)} gave {said!r}, not a text or a user message")
        return said


async def _called(function: Callable[..., Any], *given: Any) -> Any:
    value = function(*given)
    return await value if inspect.isawaitable(value) else value


def _answer(given: object, what: str, error: type[BuildError] | type[InvalidAnswer]) -> Message:
    message = assistant(given) if isinstance(given, str) else given
    if not isinstance(message, Message) or message.role != "assistant" or message.tool_calls or is_empty(message):
        raise error(f"{what} is text or an assistant message without calls that says something, not {given!r}")
    return message
