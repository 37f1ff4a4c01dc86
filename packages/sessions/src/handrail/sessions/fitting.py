"""Whether the records around a boundary fit each other: its names, its call, and the answer that came back."""

from handrail.filters.edges import Edge
from handrail.filters.errors import FilterError
from handrail.filters.histories import History
from handrail.filters.messages import Message
from handrail.filters.registry import from_descriptor
from handrail.filters.seals import Seal
from handrail.sessions.paths import name_of, sibling_path, sub_path
from handrail.sessions.records import HandoffRecord, SubagentRecord, ToolResultRecord, ViewRecord
from handrail.sessions.views import Views

# How far back a call is looked for that is not waiting any more: something was said since it was made.
_NEAR = 64


class Fitting:
    """Looks at what surrounds the boundaries of a session. Each answer says what does not fit, and is empty where
    everything does."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._handed: set[tuple[str, str | None]] = set()
        self._open: set[tuple[str, str | None, int]] = set()
        self._answers: dict[tuple[str, str | None], str] = {}

    def boundary(self, record: HandoffRecord | SubagentRecord, edge: Edge) -> str:
        """The names of a boundary, and its call; to be asked when the record was taken in."""
        if isinstance(record, SubagentRecord):
            self._open.add((record.path, record.call_id, record.part))
            path = sub_path(record.path, record.target, record.call_id or "", record.part)
        else:
            self._handed.add((record.path, record.call_id))
            path = sibling_path(record.path, record.target)
        if name_of(record.path) != record.source:
            return f"it names {record.source} as its source, and stands in the view of {name_of(record.path)}"
        if record.target_path != path:
            return f"it leads to {record.target_path}, and {record.target} is at {path}"
        # A handoff that waits for its answer is made by a call that stays in the view, like a sub-agent's.
        transfer = isinstance(record, HandoffRecord) and not record.returns
        if record.call_id is None or self._is_called(record.path, record.call_id, edge.view, transfer=transfer):
            return ""
        return f"nothing called for it: no response holds the call {record.call_id!r}"

    def _is_called(self, path: str, call_id: str, view: History, *, transfer: bool) -> bool:
        call = self._views.called(path, call_id)
        if call is not None:
            return call.transfer == transfer
        near = [call for message in view[-_NEAR:] for call in message.tool_calls]
        return any([call.id == call_id and call.transfer == transfer for call in near])

    def result(self, record: ToolResultRecord) -> str:
        """A transfer's result needs its handoff, and a sub-agent's holds the answer; to be asked before the record is
        taken in."""
        message, key = record.message, (record.path, record.message.call_id)
        answer = self._answers.pop(key, "")
        if key in self._handed:
            self._handed.discard(key)
        elif not message.is_error and (call := self._views.called(*key)) is not None and call.transfer:
            return f"the transfer call {call.id!r} was answered, and no handoff is recorded"
        if answer and not record.edited and not message.synthetic and answer not in message.text:
            return "the call's result holds another answer than the one that was given"
        return ""

    def edited(self, record: ViewRecord) -> None:
        """A call that a crash left open has the result that an edit of the view gave it: no answer is awaited."""
        for _, message in record.inserted:
            if message.role == "tool":
                self._answers.pop((record.path, message.call_id), None)
                self._handed.discard((record.path, message.call_id))

    def end(self, record: SubagentRecord) -> str:
        """The end of a sub-agent's call needs its start, and an answer that was said; to be asked before the record is
        taken in."""
        key = record.path, record.call_id, record.part
        if key not in self._open:
            return "its end is recorded, and its start is not"
        self._open.discard(key)
        if record.answer and not record.part:
            self._answers[record.path, record.call_id] = record.answer
        if record.status != "completed":
            return ""
        if not record.answer:
            return "it was completed, and its answer is missing"
        return "" if record.reworded or self._was_said(record) else "its answer is not what was said last"

    def _was_said(self, record: SubagentRecord) -> bool:
        lasts = [last for view in self._views.scope(record) if (last := _last_answer(view)) is not None]
        try:
            returns = from_descriptor(record.returns) if record.returns else None
            said = [returns.back((last,)) if isinstance(returns, Seal) else (last,) for last in lasts]
        except FilterError:
            return True  # what cannot run here cannot be told from what was said
        texts = ["\n\n".join([each.text for each in messages if each.role == "assistant"]) for messages in said]
        return not texts or any([text in record.answer for text in texts])


def _last_answer(view: History) -> Message | None:
    return next((message for message in reversed(view[-_NEAR:]) if message.role == "assistant"), None)
