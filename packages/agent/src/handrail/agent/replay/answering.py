"""What answers in the place of a model or a tool: a recorded answer, in the shape that the kernel expects."""

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.errors import BuildError, RunError
from handrail.agent.in_place import InPlaceOf
from handrail.agent.kernel.requests import ChatRequest, ToolResponse
from handrail.agent.models import ChatResponse, Delta, Model
from handrail.agent.replay.failures import recorded_failure
from handrail.agent.replay.recorded import RecordedCall
from handrail.agent.replay.sources import RecordedIds
from handrail.agent.scripted import pieces
from handrail.agent.tools import InvalidArguments
from handrail.agent.wanting import request_handoff
from handrail.filters import IdSource, Message, Text, ToolCall
from handrail.filters.messages import Part
from handrail.sessions import Gave, ToolResultRecord

if TYPE_CHECKING:
    from handrail.agent.replay.playback import Playback
    from handrail.agent.turns import TurnState


def shown_by(content: tuple[Part, ...]) -> Any:
    """What a tool that gave this content returned: mostly a text."""
    (first,) = content if len(content) == 1 else (None,)
    bare = type(first) is Text and first.sensitivity is None and first.extra is None
    return first.text if bare and isinstance(first, Text) else content


def hand_over(turn: "TurnState", call_id: str, asked: Mapping[str, str]) -> None:
    """Asks once more for the handoff that a tool asked for by code."""
    edges = [edge for name, edge in turn.bound.handoffs.items() if turn.bound.targets[name] == asked["target"]]
    typed = edges[0].input_type if edges else None
    given: Any = asked["input"] or None
    if typed is not None and typed is not str and given is not None:
        given = msgspec.json.decode(given)
    try:
        request_handoff(turn, asked["target"], asked["reason"], given, call_id, turn.batch)
    except (RunError, BuildError, InvalidArguments):
        return  # what it asked for is not possible any more; that it does not happen is the difference


class Answering(InPlaceOf):
    """A model in name and kind, whose one answer is in the record."""

    def __init__(self, model: Model, playback: "Playback", call: RecordedCall, turn: "TurnState") -> None:
        super().__init__(model)
        self._playback = playback
        self._call = call
        self._turn = turn

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """The recorded answer."""
        return await self._playback.given(self._call, self._turn)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        """The same, word by word: how it was cut into pieces is not in the record."""
        response = await self._playback.given(self._call, self._turn)
        for piece in pieces(response.message):
            yield piece
        yield response


def undrawn(message: Message, ids: IdSource) -> Message:
    """The message without the ids that the run gave to calls which had none: it gives them again."""
    if not isinstance(ids, RecordedIds) or not message.tool_calls:
        return message
    coming = ids.foretell(len(message.tool_calls))
    if not any([call.id in coming for call in message.tool_calls]):
        return message
    content = [
        msgspec.structs.replace(part, id="") if type(part) is ToolCall and part.id in coming else part
        for part in message.content
    ]
    return message.replace(content=tuple(content))


def given_by(turn: "TurnState", call_id: str, record: ToolResultRecord, ended_with: str | None) -> ToolResponse:
    """What a tool gave, as far as the record has it; `ended_with` is the error that the turn ended with."""
    message, gave = record.message, record.gave or _AS_SHOWN
    own = gave.changed
    shown = shown_by(gave.content if own else message.content)
    is_error = gave.is_error if own else message.is_error
    if gave.handoff:
        hand_over(turn, call_id, gave.handoff)
    raised = is_error and ended_with not in (None, "ToolFailed")
    return ToolResponse(
        shown,
        shown if is_error else None,
        is_error,
        gave.error_class or ("failed" if is_error else ""),
        gave.sensitivity if own else message.sensitivity,
        writes=msgspec.json.decode(gave.writes),
        error=recorded_failure(str(ended_with), turn.budget) if raised else None,
    )


_AS_SHOWN = Gave()
