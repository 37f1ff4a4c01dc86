"""One recorded run, played again: every model and tool answers from the record, and what is written is compared."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, NoReturn, TypeVar

from handrail.agent.kernel.requests import ChatRequest, ToolRequest, ToolResponse
from handrail.agent.models import ChatResponse, Model
from handrail.agent.replay.allowing import Allowed
from handrail.agent.replay.answering import Answering, given_by, undrawn
from handrail.agent.replay.differences import Difference, like, of_mappings, of_messages, of_notes
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.failures import recorded_failure
from handrail.agent.replay.recorded import RecordedBoundary, RecordedCall, RecordedRun
from handrail.agent.replay.requests import Comparing, digest_of
from handrail.agent.replay.sources import RecordedClock, RecordedIds
from handrail.filters import Filter, FilterError, IdSource, Message, Seal, from_descriptor, seal
from handrail.filters.canonical import canonical
from handrail.filters.messages import Messages
from handrail.sessions import HandoffRecord, SubagentRecord, ToolResultRecord, TurnRecord
from handrail.sessions.crossings import BoundaryRecord

if TYPE_CHECKING:
    from handrail.agent.turns import TurnState

_T = TypeVar("_T")
_PATIENCE = 1000
"""How often others get their turn while a call waits to be cancelled."""
_TRACELESS = ("LimitExceeded", "LoopDetected", "UnknownPrice", "ScriptError", "InvalidAnswer")


class Stopped(BaseException):
    """The replay ends here: a difference was found, or the record ends. No layer and no agent may take it up."""


class Playback:
    """What stands in for the world in one run. It stops at the first difference, which is in `divergence` then; where
    a crash cut the record off it stops at its end (`cut_off`)."""

    def __init__(self, run: RecordedRun, allowed: Allowed) -> None:
        self.run = run
        self.allowed = allowed
        self.comparing = Comparing(run)
        self.clock = RecordedClock(0)
        self.ids: IdSource = IdSource()
        if run.prefix is not None:
            self.ids = RecordedIds(*run.prefix, list(run.views.values()), run.branches)
        self.divergence: Divergence | None = None
        self.cut_off = self.stopped = False
        self.model_calls = self.tool_calls = 0

    def stop(self) -> NoReturn:
        """Ends the run."""
        self.stopped = True
        raise Stopped

    def differs(self, divergence: Divergence) -> None:
        """A difference was found."""
        self.divergence = self.divergence or divergence
        self.stop()

    def missing(self, what: str, path: str, step: int, problem: str) -> None:
        """The record has not what is asked of it: a crash cut it off, or more happens than did."""
        if not self.run.finished and not self.goes_on(path):
            self.cut_off = True
            self.stop()
        self.differs(Divergence(what=what, run=self.run.number, path=path, step=step, problem=problem))

    def goes_on(self, path: str) -> bool:
        """Whether the record has more of this path: then what is missing before that did not happen."""
        end = self.first(self.run.ends.get(path))
        return bool(self.run.calls.get((path, "answer"))) or (end is not None and end[1].status != "cancelled")

    def first(self, queue: "deque[_T] | None") -> _T | None:
        """What comes next, left where it is."""
        return queue[0] if queue else None

    def model(self, request: ChatRequest) -> Model:
        """A model that gives the recorded answer, when its request is as it was."""
        turn = request.run.turn
        call = self._call(turn, request)
        self.asked(call, turn, request, self._differences(call, turn, request))
        return Answering(request.model, self, call, turn)

    def asked(
        self, call: RecordedCall, turn: "TurnState", request: ChatRequest, differences: tuple[Difference, ...]
    ) -> None:
        """A model is asked what it was asked, or something else."""
        if differences:
            step, line = turn.context.step, call.line
            at = Divergence(
                what="request", run=self.run.number, path=turn.path, step=step, line=line, differences=differences
            )
            self.differs(at)

    def _call(self, turn: "TurnState", request: ChatRequest) -> RecordedCall:
        queue = self.run.calls.get((turn.path, request.purpose)) or deque()
        end = self.first(self.run.ends.get(turn.path))
        if not queue or (end is not None and end[0] < queue[0].line):
            if end is not None:
                self._as_it_ended(turn, end[1])
            kind = "model call" if request.purpose == "answer" else f"call for a {request.purpose}"
            self.missing("request", turn.path, turn.context.step, f"is one {kind} more than the record has there")
            raise Stopped
        place = 0
        if request.purpose != "answer":
            # Calls of layers around tools that run side by side come in any order.
            step, sent = turn.context.step, digest_of(request.messages)
            alike = [n for n, each in enumerate(queue) if each.record.step == step and each.record.request == sent]
            place = alike[0] if alike else 0
        call = queue[place]
        del queue[place]
        self.model_calls += 1
        return call

    def _as_it_ended(self, turn: "TurnState", end: TurnRecord) -> None:
        """One more model call than there was: a cancel came then, or something that leaves no trace but the end."""
        if end.status == "cancelled":
            self.cut_off = True
            self.stop()
        if end.error in _TRACELESS:
            self.comparing.lacks[f"whether run {self.run.number} would end with {end.error} again"] = None
            raise recorded_failure(end.error, turn.budget)

    def _differences(self, call: RecordedCall, turn: "TurnState", request: ChatRequest) -> tuple[Difference, ...]:
        record = call.record
        now = {"step": str(turn.context.step), "attempt": str(request.run.attempt)}
        then = {"step": str(record.step), "attempt": str(record.attempt)}
        if then != now:
            return tuple(of_mappings("model call by", then, now))
        return self.comparing.differences(call, turn, request)

    async def given(self, call: RecordedCall, turn: "TurnState") -> ChatResponse:
        """What the model gave, when it is asked for."""
        return self.answer(call, turn)

    def answer(self, call: RecordedCall, turn: "TurnState") -> ChatResponse:
        """What the model gave. Raises what it raised."""
        record = call.record
        if record.error is not None:
            if record.error == "cancelled":
                # By time, or from outside: neither comes again by itself.
                if self.run.left() is not None:
                    number, line = self.run.number, call.line
                    self.comparing.lacks[f"run {number} after its cancelled model call (line {line})"] = None
                self.cut_off = True
                self.stop()
            raise recorded_failure(record.error, turn.budget, record.usage)
        message = record.answer
        if message is None:
            message = self.run.answers.get((record.path, record.message_id))
            message = undrawn(message, turn.scope.ids) if message is not None else None
        if message is None:
            self.missing("answer", record.path, record.step, "is not in the record, as it was not accepted")
            raise Stopped
        said = self.run.answers.get((record.path, record.message_id))
        self.clock.see(said.created_at if said is not None else None)
        return ChatResponse(message, record.usage, record.finish_reason)  # type: ignore[arg-type]  # it was one

    async def tool(self, request: ToolRequest, arguments: str, key: str | None) -> ToolResponse | None:
        """What the tool gave, or None where it may run and would do the same."""
        turn = request.run.turn
        recorded = self.first(self.run.results.get((turn.path, request.call.id)))
        self.tool_calls += 1
        if recorded is None:
            self.missing("result", turn.path, turn.context.step, f"of {request.tool.name} is not in the record")
            raise Stopped
        if recorded[1].message.synthetic:
            # It was not answered, since the run ended first; what ended it does so again meanwhile.
            for _ in range(_PATIENCE):
                await asyncio.sleep(0)
            end = self.first(self.run.ends.get(turn.path))
            if end is not None and end[1].status == "cancelled":
                self.cut_off = True
                self.stop()
            self.missing("result", turn.path, turn.context.step, f"of {request.tool.name} never came")
        mark = self.first(self.run.marks.get((turn.path, request.call.id)))
        if self.allowed.permits(request.tool, key, mark[1].key if mark is not None else None):
            return None
        return self.result(turn, request, recorded)

    def result(self, turn: "TurnState", request: ToolRequest, recorded: tuple[int, ToolResultRecord]) -> ToolResponse:
        """The recorded result, as the tool itself gave it."""
        self.clock.see(recorded[1].message.created_at)
        end = self.first(self.run.ends.get(turn.path))
        return given_by(turn, request.call.id, recorded[1], end[1].error if end is not None else None)

    def filter(self, asked_by: str, filter: Filter) -> Filter | None:
        """What the resolvers of a boundary gave when it was crossed, where they are those that were asked then."""
        boundary = self.first(self.run.boundaries.get(asked_by))
        if boundary is None:
            path = asked_by.partition("\0")[0]
            self.missing("boundary", path, 0, "is not in the record, which has to say what its filter became")
            raise Stopped
        if differences := self.other_resolvers(boundary, filter):
            self.differs(self.at_boundary(boundary, "has another filter, which would have to be asked", differences))
            raise Stopped
        try:
            found = from_descriptor(boundary.record.filter)
        except FilterError as error:
            self.differs(self.at_boundary(boundary, f"has a filter that cannot run here: {error}"))
            raise Stopped from None
        return found.filter if isinstance(found, Seal) else found

    def other_resolvers(self, boundary: RecordedBoundary, filter: Filter) -> tuple[Difference, ...]:
        """How a filter that asks is not the one that was asked at this boundary."""
        record = boundary.record
        if not isinstance(record, HandoffRecord):
            ends = f"from {record.source} to {record.target}"
            self.comparing.lacks[f"what the filter {ends} would be today, as it asks"] = None
            return ()
        then = self.run.agents[record.source].handoffs if record.source in self.run.agents else {}
        now = seal(filter).descriptor
        if not then or now in then.values():
            return ()
        was = dict(record.filter)
        return (Difference("filter", canonical(was).decode(), canonical(now).decode()),)

    def at_boundary(
        self, boundary: RecordedBoundary, problem: str, differences: tuple[Difference, ...] = ()
    ) -> Divergence:
        """A divergence at a boundary."""
        record = boundary.record
        return Divergence(
            what="boundary",
            run=self.run.number,
            path=record.path,
            step=record.step,
            line=boundary.line,
            problem=problem,
            differences=differences,
        )

    def refusal(self, request: ToolRequest) -> tuple[str, str] | None:
        """What was said instead of a yes; None where the call ran."""
        key = request.run.turn.path, request.call.id
        mark, recorded = self.first(self.run.marks.get(key)), self.first(self.run.results.get(key))
        if mark is not None and (recorded is None or mark[0] < recorded[0]):
            return None
        if recorded is None:
            path, step = key[0], request.run.turn.context.step
            self.missing("call", path, step, f"of {request.tool.name}: the record does not say whether it was approved")
            raise Stopped
        return recorded[1].message.text, self.run.denied.get(key, "no")

    def may_tell(self, tool: str) -> bool:
        """Whether `on_handoff` is called: where the transfer tool was permitted by name."""
        return tool in self.allowed.names

    def failed(self, said: str) -> None:
        """The run failed; where it did before any turn of it ended, the recorded one did not."""
        run = self.run
        if (run.ends.get(run.agent) or run.left() is not None) and not self.stopped:
            problem = f"was not reached: {said}"
            self.differs(Divergence(what="end", run=run.number, path=run.agent, line=run.line, problem=problem))

    def end(self) -> None:
        """The run has come to its end, so it has asked for all that the record has."""
        run, left = self.run, self.run.left()
        if left is None:
            return
        record = left.record
        gone = Difference(f"model call at step {record.step}", f"{record.purpose} by {record.model}", "")
        self.divergence = Divergence(
            what="end",
            run=run.number,
            path=record.path,
            step=record.step,
            line=left.line,
            problem="comes before all that was recorded was asked for",
            differences=(gone,),
        )

    def came_back(self, record: SubagentRecord) -> None:
        """A sub-agent's call has ended."""

    def cross(self, boundary: RecordedBoundary, now: BoundaryRecord, seed: Messages) -> None:
        """A boundary is crossed that was crossed before, with what it holds now."""
        if differences := self.crossed(boundary, now, seed):
            ends = f"from {boundary.record.source} to {boundary.record.target}"
            self.differs(self.at_boundary(boundary, f"{ends} differs", differences))

    def crossed(self, boundary: RecordedBoundary, now: BoundaryRecord, seed: Messages) -> tuple[Difference, ...]:
        """What of a boundary is not as it was: its ends, its notes, or what crosses."""
        then = boundary.record
        names = ("source", "target", "step")
        ends = [{name: str(getattr(each, name)) for name in names} for each in (then, now)]
        found = [*of_mappings("the", *ends), *of_notes(then.notes, now.notes)]
        if not self.comparing.alike(boundary.seed, seed):
            found += of_messages(boundary.seed, seed, by_id=self.comparing.by_id)
        return tuple(found)

    def alike(self, then: Message, now: Message) -> bool:
        """Whether two messages are one."""
        return like(then, now, self.comparing.by_id)
