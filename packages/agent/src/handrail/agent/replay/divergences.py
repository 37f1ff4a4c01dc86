"""Where a run that is replayed is not as it was recorded."""

import msgspec

from handrail.agent.replay.differences import Difference, told


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is not as it was recorded.

    `what` is a `request` (a model call), `answer` (what layers made of it), `call` or `result` of a tool, `boundary`,
    or `end` of a turn; `run` counts from 1, `line` is that of the record (0: there is none), `step` the model call of
    the turn, from 1. `problem` says it in words where there is nothing to put side by side.
    """

    what: str
    run: int
    path: str
    step: int = 0
    line: int = 0
    problem: str = ""
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        step, line = f", step {self.step}" if self.step else "", f" (line {self.line})" if self.line else ""
        how = self.problem or "differs"
        head = f"run {self.run}, {self.path}{step}: the {self.what}{line} {how}"
        lines = [f"  {line}" for line in told(self.differences).splitlines()]
        return "\n".join([head, *lines])
