"""What if: the same session with other filters, instructions, layers or another model, beside what it was."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from handrail.agent.agents import Agent
from handrail.agent.errors import ReplayRefused
from handrail.agent.kernel.middlewares import Middleware
from handrail.agent.limits import Limits
from handrail.agent.models import Model
from handrail.agent.replay.allowing import allowed
from handrail.agent.replay.altered import Altered, Answers
from handrail.agent.replay.changes import At, Otherwise, changes, from_there
from handrail.agent.replay.comparisons import Comparison
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.recorded import RecordedRun, runs_of
from handrail.agent.replay.reruns import Recorded, graph_of, perform, tools_of
from handrail.agent.teams import TeamTool

if TYPE_CHECKING:
    from handrail.filters.policies import Policy

LIVE = Limits.only(max_steps=20, max_tokens=200_000)
"""How far a live what-if goes where nothing else is said."""
Kind: TypeAlias = Literal["none", "recorded", "live"]


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been: each boundary and request of the session as it was and as it would be.

    With `answers` `none` up to the first request in each branch that differs; with `recorded` beyond it, `proven` False
    from there on; `live` up to where a model was asked (`live_calls` times, with `output` in the end). `divergence` is
    where the session does not replay before anything is otherwise; `others` is what else would not have been as it was:
    calls and results of tools, answers and ends that no later request shows; `notes` say what ended a run early.
    """

    path: str
    answers: Kind
    comparisons: tuple[Comparison, ...]
    divergence: Divergence | None = None
    others: tuple[Divergence, ...] = ()
    notes: tuple[str, ...] = ()
    live_calls: int = 0
    output: str = ""

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """What would not have been as it was."""
        return tuple([each for each in self.comparisons if each.differences])

    @property
    def same(self) -> bool:
        """Whether all would have been as it was."""
        return self.divergence is None and not self.differing and not self.others

    def __str__(self) -> str:
        counts = f"{len(self.comparisons)} boundaries and requests, {len(self.differing)} otherwise"
        lines = [f"{counts} (answers: {self.answers})", *[str(each) for each in self.differing]]
        lines += [str(each) for each in self.others]
        lines += [f"it diverges before that: {self.divergence}"] if self.divergence is not None else []
        lines += [f"{self.live_calls} live model calls: {self.output}"] if self.live_calls else []
        return "\n".join([*lines, *self.notes])


async def what_if(
    session: Recorded,
    agent: Agent | TeamTool,
    *,
    answers: Literal["none", "recorded"] | Model = "none",
    at: At = None,
    filters: Mapping[str, Any] | None = None,
    middleware: Sequence[Middleware] = (),
    model: Model | None = None,
    instructions: str | Mapping[str, str] | None = None,
    limits: Limits | None = None,
    allow: Collection[str] = (),
    deps: Any = None,
    policy: "Policy | None" = None,
) -> WhatIf:
    """The session with something otherwise, each boundary and each request beside what it was.

    `filters` are by edge (`triage->billing`), `instructions` those of `agent` or by agent's name; `middleware` stands
    outside every agent's own layers. They hold from `at` on: a boundary by its number in the session, or a model call
    as `step:7`; then only the run in which it is is played. Without `at` every run is, from what stood when it began.

    `answers` says what an agent is told whose request is not the recorded one. `none`: nothing, it stops there.
    `recorded`: what was answered in the same place, and all that follows is marked as not proven. A model: that one
    answers from `at` on (without `at` from the first request that differs), in one live run, bounded by `limits`
    (default: 20 calls and 200,000 tokens). Tools answer from the record; from where a
    run is live those run that `allow` names, and of the others a call that was not made is refused.

    Raises what `rerun` raises, and `ReplayRefused` for a place, an edge or an agent that is not there.
    """
    kind: Kind = answers if answers in ("none", "recorded") else "live"
    live = answers if not isinstance(answers, str) else None
    if isinstance(answers, str) and kind == "live":
        raise ReplayRefused(f"answers are 'none', 'recorded' or a model, not {answers!r}")
    path, runs = runs_of(session)
    plain = graph_of(agent, ())
    changed = changes(plain, filters, instructions, model)
    permitted = allowed(allow, tools_of(plain))
    plays: list[Altered] = []
    for recorded in _with(runs, at):
        play = Altered(recorded, permitted, Answers(kind, live, limits or LIVE), at)
        layers = [Otherwise(changed, play.begun), *from_there(middleware, play.begun, at)]
        bounds = Limits.only() if live is not None else None
        play.ended = await perform(play, graph_of(agent, layers), deps=deps, policy=policy, limits=bounds)
        plays.append(play)
        if play.live_calls or play.divergence is not None:
            break
    return _whole(path, kind, plays)


def what_if_sync(session: Recorded, agent: Agent | TeamTool, **options: Any) -> WhatIf:
    """`what_if` for code that is not async; `options` are those of `what_if`. Raises `RuntimeError` inside a running
    event loop."""
    return asyncio.run(what_if(session, agent, **options))


def _with(runs: Sequence[RecordedRun], at: At) -> Sequence[RecordedRun]:
    """The runs that are played. Raises `ReplayRefused` for a place that no run has."""
    if at is None:
        return runs
    found = [run for run in runs if at in run.places()]
    if not found:
        places = {place for run in runs for place in run.places()}
        calls = len([place for place in places if isinstance(place, str)])
        has = f"its boundaries are 1 to {len(places) - calls}, its model calls step:1 to step:{calls}"
        raise ReplayRefused(f"the session has no place {at!r}; {has}")
    return found


def _whole(path: str, kind: Kind, plays: Sequence[Altered]) -> WhatIf:
    output = next((str(play.ended.output) for play in plays if play.ended is not None and play.live_calls), "")
    return WhatIf(
        path=path,
        answers=kind,
        comparisons=tuple([each for play in plays for each in play.comparisons]),
        divergence=next((play.divergence for play in plays if play.divergence is not None), None),
        others=tuple([other for play in plays for other in play.others]),
        notes=tuple([note for play in plays for note in play.notes]),
        live_calls=sum([play.live_calls for play in plays]),
        output=output,
    )
