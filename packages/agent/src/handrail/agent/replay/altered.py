"""One recorded run with something otherwise: what it would ask is noted, and goes on as the answers allow."""

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from handrail.agent.kernel.requests import ChatRequest, HandoffRequest, ToolRequest, ToolResponse
from handrail.agent.limits import Budget, Limits
from handrail.agent.models import ChatResponse, Model
from handrail.agent.replay.allowing import Allowed
from handrail.agent.replay.branches import Branches
from handrail.agent.replay.changes import At
from handrail.agent.replay.comparisons import Comparison, count
from handrail.agent.replay.differences import Difference
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.living import Metered
from handrail.agent.replay.playback import Playback
from handrail.agent.replay.recorded import RecordedBoundary, RecordedCall, RecordedRun
from handrail.filters import Filter
from handrail.filters.canonical import canonical_text
from handrail.filters.messages import Messages
from handrail.sessions import SubagentRecord, ToolResultRecord
from handrail.sessions.crossings import BoundaryRecord

if TYPE_CHECKING:
    from handrail.agent.runs import RunResult
    from handrail.agent.turns import TurnState

_QUIET = 50
"""How many rounds nothing may happen before every branch counts as ended."""


class Answers(msgspec.Struct, frozen=True):
    """What an agent is told whose request differs: nothing, what was recorded, or what a model says within limits."""

    kind: Literal["none", "recorded", "live"]
    model: Model | None
    limits: Limits


class Altered(Playback):
    """What stands in for the world in a run that is otherwise from some place on. Up to there a difference ends it, as
    in any replay; from there on differences are noted."""

    def __init__(self, run: RecordedRun, allowed: Allowed, answers: Answers, at: At) -> None:
        super().__init__(run, Allowed())
        self._permitted = allowed
        self.comparisons: list[Comparison] = []
        self.others: list[Divergence] = []
        self.notes: list[str] = []
        self.ended: RunResult | None = None
        self.live_calls = 0
        self._answers = answers
        self._at = at
        self._begun = at is None
        self._live = False
        self._branches = Branches()
        self._budget = Budget(answers.limits)
        self._moves = 0

    def begun(self, request: Any) -> bool:
        """Whether the place of this request is at or after the one from which on things are otherwise."""
        if not self._begun:
            if isinstance(request, HandoffRequest):
                boundary = self.first(self.run.boundaries.get(request.boundary.asked_by))
                place: int | str = boundary.number if boundary is not None else 0
            elif isinstance(request, ChatRequest):
                call = self.first(self.run.calls.get((request.run.path, "answer")))
                place = f"step:{call.number}" if call is not None and request.purpose == "answer" else 0
            else:
                place = 0
            self._begun = place == self._at
        return self._begun

    def differs(self, divergence: Divergence) -> None:
        """Before anything is otherwise, the end; after that it is noted. A tool that would have been called otherwise
        gives what it gave, so what is asked from there is not proven."""
        if not self._begun:
            super().differs(divergence)
        elif not self._live and divergence.what not in ("request", "boundary"):
            self.others.append(divergence)
            if divergence.what == "call":
                self._branches.doubt(divergence.path)

    def missing(self, what: str, path: str, step: int, problem: str) -> None:
        """The record has no such place."""
        if self._live and what != "boundary":
            return
        if self._begun and self.run.finished and not self.stopped:
            self.notes.append(f"run {self.run.number} ends at {path}: the {what} {problem}")
            self.stop()
        super().missing(what, path, step, problem)

    def model(self, request: ChatRequest) -> Model:
        """The recorded answer, or where the run is live the model."""
        self._moves += 1
        live = self._answers.model
        if live is not None and (self._live or (self._at is not None and self.begun(request))):
            if not self._live:
                self._compare(request)
            return self._alive(live)
        answering = super().model(request)
        return self._alive(live) if self._live and live is not None else answering

    def _compare(self, request: ChatRequest) -> None:
        # The first request that is answered live is the last that has a counterpart.
        turn = request.run.turn
        if request.purpose == "answer" and self.run.calls.get((turn.path, "answer")):
            call = self._call(turn, request)
            self.asked(call, turn, request, self._differences(call, turn, request))

    def _alive(self, live: Model) -> Model:
        self._live, self.allowed = True, self._permitted
        return Metered(live, self._budget, self._counted)

    def _counted(self) -> None:
        self.live_calls += 1

    def asked(
        self, call: RecordedCall, turn: "TurnState", request: ChatRequest, differences: tuple[Difference, ...]
    ) -> None:
        """Notes what a model would be asked, and whether it was."""
        if not self._begun:
            super().asked(call, turn, request, differences)
        proven = self._branches.is_proven(turn.path)
        if request.purpose == "answer" and self._begun:
            self._note(call, turn, request, differences, proven)
        if differences and proven:
            self._live = self._live or self._answers.kind == "live"
            self._branches.doubt(turn.path)

    def _note(
        self,
        call: RecordedCall,
        turn: "TurnState",
        request: ChatRequest,
        differences: tuple[Difference, ...],
        proven: bool,
    ) -> None:
        known = not call.record.request
        noted = Comparison(
            what="request",
            number=call.number,
            run=self.run.number,
            path=turn.path,
            step=turn.context.step,
            line=call.line,
            then=tuple(call.messages) if known else None,
            now=tuple(request.messages),
            tokens_then=count(call.messages) if known else None,
            tokens_now=count(request.messages),
            differences=differences,
            proven=proven,
        )
        self.comparisons.append(noted)

    async def given(self, call: RecordedCall, turn: "TurnState") -> ChatResponse:
        """The recorded answer; where it was given to something else and no such answer is to be used, the end."""
        if self._answers.kind == "none" and not self._branches.is_proven(turn.path):
            await self._others()
            self.stop()
        return self.answer(call, turn)

    async def _others(self) -> None:
        # Other branches go on until each of them has come to its end.
        seen = -1
        while seen != self._moves:
            seen = self._moves
            for _ in range(_QUIET):
                await asyncio.sleep(0)

    async def tool(self, request: ToolRequest, arguments: str, key: str | None) -> ToolResponse | None:
        """What the tool gave; in a live run what it gave for the same arguments, or that it was not permitted."""
        self._moves += 1
        if not self._live:
            return await super().tool(request, arguments, key)
        self.tool_calls += 1
        if self.allowed.permits(request.tool, None, None):
            return None
        if (recorded := self._for(request.tool.name, arguments)) is not None:
            return self.result(request.run.turn, request, recorded)
        self.notes.append(f"{request.tool.name}({arguments}) was not permitted")
        said = f"{request.tool.name} did not run: this is a replay, in which it was not permitted."
        return ToolResponse(content=said, is_error=True, error_class="denied")

    def _for(self, name: str, arguments: str) -> tuple[int, ToolResultRecord] | None:
        wanted = canonical_text(arguments)
        for key, marks in self.run.marks.items():
            results = self.run.results.get(key)
            if marks and results and (marks[0][1].name, canonical_text(marks[0][1].arguments)) == (name, wanted):
                return results[0]
        return None

    def filter(self, asked_by: str, filter: Filter) -> Filter | None:
        """What resolvers gave; in a live run, and where there is another filter, they are asked."""
        boundary = self.first(self.run.boundaries.get(asked_by))
        if self._live or (self._begun and (boundary is None or self.other_resolvers(boundary, filter))):
            return None
        return super().filter(asked_by, filter)

    def failed(self, said: str) -> None:
        """How a run ended that is otherwise is told."""
        if self._begun:
            self.notes.append(f"run {self.run.number} ended with {said}")
        else:
            super().failed(said)

    def end(self) -> None:
        """An end that comes earlier is no divergence where things are otherwise."""
        if not self._begun:
            super().end()

    def came_back(self, record: SubagentRecord) -> None:
        """A sub-agent's call has ended."""
        self._moves += 1
        self._branches.end(record)

    def cross(self, boundary: RecordedBoundary, now: BoundaryRecord, seed: Messages) -> None:
        """Notes what would cross, and what did."""
        self._moves += 1
        if not self._begun:
            return super().cross(boundary, now, seed)
        if not self._live:
            self._note_boundary(boundary, now, seed)
        return None

    def _note_boundary(self, boundary: RecordedBoundary, now: BoundaryRecord, seed: Messages) -> None:
        record = boundary.record
        noted = Comparison(
            what="boundary",
            number=boundary.number,
            run=self.run.number,
            path=record.path,
            step=record.step,
            line=boundary.line,
            target=record.target,
            then=tuple(boundary.seed),
            now=tuple(seed),
            tokens_then=count(boundary.seed),
            tokens_now=count(seed),
            differences=self.crossed(boundary, now, seed),
            proven=self._branches.is_proven(record.path),
        )
        self.comparisons.append(noted)
