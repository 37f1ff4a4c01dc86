"""What a model call cost, and what the record says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from handrail.agent.introducing import unlike
from handrail.agent.kernel.requests import ChatRequest
from handrail.filters import Message, digest
from handrail.sessions import ModelCallRecord, Usage

if TYPE_CHECKING:
    from handrail.agent.loop import Turn


def spent_on(
    turn: Turn,
    request: ChatRequest,
    message_id: str,
    usage: Usage,
    finish_reason: str,
    error: str | None,
    answer: Message | None = None,
    named: Message | None = None,
) -> Usage:
    """Counts what a request cost, and records its call; gives the usage with the request counted.

    `answer` is what the model gave, `named` that as the run has it; where layers stand around the call they may not
    accept it, so what is recorded of it waits until they have (`tell_calls`).
    """
    run, model = turn.run, request.model.name
    spent = turn.budget.spend(model, usage)
    turn.spent.append(spent)
    if turn.scope.outer is not None:
        turn.scope.spend(spent)
    if run.log.on:
        bound = turn.bound
        record = ModelCallRecord(
            path=turn.path,
            step=turn.context.step,
            attempt=request.run.tries,
            model=model,
            message_id=message_id,
            usage=spent,
            finish_reason=finish_reason,
        )
        if not (
            # Most calls are for an answer, sent the view as it stands, and asked as the agent's own record says.
            request.purpose == "answer"
            and error is None
            and request.messages is turn.history
            and request.instructions is turn.instructions
            and request.tools is bound.specs
            and request.settings is bound.settings
            and request.model is bound.model
            and request.output is (bound.output.schema if bound.output is not None else None)
        ):
            record = _telling_more(record, turn, request, error, answer)
        if error is not None:
            tell_calls(turn, None)
            run.log.write(record)
        elif not bound.around_chat or answer is None or named is None or request.purpose != "answer":
            run.log.stage(record)
        else:
            turn.unsettled = [*(turn.unsettled or ()), (record, answer, named)]
    return spent


def _telling_more(
    record: ModelCallRecord, turn: Turn, request: ChatRequest, error: str | None, answer: Message | None
) -> ModelCallRecord:
    is_answer = request.purpose == "answer"
    record = msgspec.structs.replace(
        record,
        purpose=request.purpose,
        request="" if request.messages is turn.history else digest(request.messages),
        error=error,
        answer=None if is_answer else answer,
    )
    return unlike(record, turn, request) if is_answer else record


Unsettled: TypeAlias = tuple[ModelCallRecord, Message, Message]
"""A call whose answer may still be changed or not be accepted: its record, what the model gave, and that as it was
named."""


def tell_calls(turn: Turn, accepted: Message | None) -> None:
    """Records the calls that layers have looked at; what the model gave too, where it is not what they accepted."""
    calls, turn.unsettled = turn.unsettled, None
    for record, answer, named in calls or ():
        same = accepted is named or (accepted is not None and accepted == named)
        turn.run.log.stage(record if same else msgspec.structs.replace(record, answer=answer))
