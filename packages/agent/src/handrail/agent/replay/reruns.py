"""Rerun: a session's runs once more through the kernel, with today's agents and the recorded answers."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from handrail.agent.agents import Agent
from handrail.agent.errors import BuildError, ReplayRefused
from handrail.agent.events import Event
from handrail.agent.graphs import Graph
from handrail.agent.kernel.middlewares import Middleware, layer_name
from handrail.agent.limits import DEFAULT_LIMITS, Budget, Limits
from handrail.agent.replay.allowing import allowed
from handrail.agent.replay.divergences import Divergence
from handrail.agent.replay.failures import said_of
from handrail.agent.replay.playback import Playback, Stopped
from handrail.agent.replay.recorded import RecordedRun, runs_of
from handrail.agent.replay.sources import RecordedIds
from handrail.agent.replay.watching import Watching
from handrail.agent.runs import Run, RunResult, conduct
from handrail.agent.scopes import Scope
from handrail.agent.stating import check_reachable, kept_channels
from handrail.agent.teams import TeamTool
from handrail.agent.telling import Emit
from handrail.filters import Message
from handrail.sessions import Session
from handrail.sessions.places import Given

if TYPE_CHECKING:
    from handrail.filters.policies import Policy

Recorded: TypeAlias = Session | Given
"""A session, or where one is: a path, or a place in a store."""
Status: TypeAlias = Literal["same", "diverged", "cut off"]


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One run that was replayed: `same` as it was recorded, `diverged` from it, or `cut off`: as it was recorded up to
    where the record ends by a crash, or by a cancel."""

    number: int
    id: str
    agent: str
    status: Status
    model_calls: int
    tool_calls: int


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of running a session again, up to the first divergence. `lacks` is what the records do not tell, and
    what was therefore not compared."""

    path: str
    runs: tuple[Ran, ...]
    divergence: Divergence | None = None
    lacks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing diverged."""
        return self.divergence is None

    @property
    def model_calls(self) -> int:
        """How many model calls were asked for again."""
        return sum([run.model_calls for run in self.runs])

    @property
    def tool_calls(self) -> int:
        """How many tool calls were asked for again."""
        return sum([run.tool_calls for run in self.runs])

    def __str__(self) -> str:
        counts = ((len(self.runs), "run"), (self.model_calls, "model call"), (self.tool_calls, "tool call"))
        counted = ", ".join([f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts])
        lines = [f"{counted}: {'no divergence' if self.ok else 'a divergence'}"]
        lines += [f"run {run.number} ends where its record is cut off" for run in self.runs if run.status == "cut off"]
        if self.divergence is not None:
            lines.append(str(self.divergence))
        return "\n".join([*lines, *[f"not compared: {each}" for each in self.lacks]])


async def rerun(
    session: Recorded,
    agent: Agent | TeamTool,
    *,
    run: int | str | None = None,
    deps: Any = None,
    allow: Collection[str] = (),
    middleware: Sequence[Middleware] = (),
    policy: "Policy | None" = None,
    on_event: Callable[[Event], None] | None = None,
) -> Replay:
    """Runs a session again, each run from what stood when it began, up to the first divergence.

    `agent` is the one that `run` was called on, as it is today; `middleware` and `policy` are those that the runs were
    given. `run` chooses one, by its number (from 1) or id. Models answer from the record, and so do tools, but for
    those that `allow` names, or whose class (`pure`, `read_only`) it names: they run, with the idempotency key that
    they had or not at all. `on_event` hears each run. Nothing is written.

    Raises `OSError`, `NotASession`, `UnsupportedVersion`, `DamagedSession` for a session that is not whole, and
    `ReplayRefused` where there is nothing to run again.
    """
    path, runs = runs_of(session)
    permitted = allowed(allow, tools_of(graph_of(agent, ())))
    done: list[Ran] = []
    lacks: dict[str, None] = {}
    divergence: Divergence | None = None
    for recorded in chosen(runs, run):
        play = Playback(recorded, permitted)
        graph = graph_of(agent, middleware)
        await perform(play, graph, deps=deps, policy=policy, on_event=on_event)
        lacks |= play.comparing.lacks | dict(_unlike_given(recorded, middleware, policy))
        divergence = play.divergence
        done.append(_ran(play))
        if divergence is not None:
            break
    return Replay(path=path, runs=tuple(done), divergence=divergence, lacks=tuple(lacks))


def rerun_sync(session: Recorded, agent: Agent | TeamTool, **options: Any) -> Replay:
    """`rerun` for code that is not async; `options` are those of `rerun`. Raises `RuntimeError` inside a running event
    loop."""
    return asyncio.run(rerun(session, agent, **options))


def chosen(runs: Sequence[RecordedRun], run: int | str | None) -> Sequence[RecordedRun]:
    """All runs, or the one of this number or id. Raises `ReplayRefused`."""
    if run is None:
        return runs
    found = [each for each in runs if run in (each.number, each.id)]
    if not found:
        known = ", ".join([f"{each.number} ({each.id})" for each in runs])
        raise ReplayRefused(f"there is no run {run!r}; the runs are {known}")
    return found


def graph_of(agent: Agent | TeamTool, middleware: Sequence[Middleware]) -> Graph:
    """The agents that are run again, with these layers outside their own."""
    if isinstance(agent, TeamTool):
        from handrail.agent.carrying import Carrier

        # One that carries a team serves one run.
        return Carrier(agent).agent().graph().layered(middleware)
    if not isinstance(agent, Agent):
        raise BuildError(f"what is run again is an agent, or a team of agents, not {agent!r}")
    return agent.graph().layered(middleware)


def tools_of(graph: Graph) -> list[str]:
    """The names of all tools and transfer tools."""
    return [name for bound in graph.agents.values() for name in (*bound.tools, *bound.handoffs)]


def _unlike_given(
    run: RecordedRun, middleware: Sequence[Middleware], policy: "Policy | None"
) -> Iterator[tuple[str, None]]:
    then, now = list(run.given.get("layers", [])), [layer_name(layer) for layer in middleware]
    if then != now:
        was, stands = [", ".join(names) or "none" for names in (then, now)]
        yield f"run {run.number} as it was given: layers {was}, now {stands}", None
    # Where its file lies may be another place today.
    files = [str(run.given.get("policy", "")), str(policy.file) if policy is not None else ""]
    was, stands = [PurePath(each).name or "none" for each in files]
    if was != stands:
        yield f"run {run.number} as it was given: policy {was}, now {stands}", None


def _ran(play: Playback) -> Ran:
    run = play.run
    status: Status = "diverged" if play.divergence is not None else "cut off" if play.cut_off else "same"
    return Ran(
        number=run.number,
        id=run.id,
        agent=run.agent,
        status=status,
        model_calls=play.model_calls,
        tool_calls=play.tool_calls,
    )


async def perform(
    play: Playback,
    graph: Graph,
    *,
    deps: Any,
    policy: "Policy | None",
    on_event: Callable[[Event], None] | None = None,
    limits: Limits | None = None,
) -> RunResult | None:
    """Plays one run through the kernel, and gives its result where it has one; what is found is in `play`."""
    run = play.run
    root = str(run.given.get("root", run.agent))
    if run.agent not in graph.agents or root not in graph.agents:
        gone = run.agent if run.agent not in graph.agents else root
        known = ", ".join(sorted(graph.agents))
        problem = f"is of an agent {gone!r}, which is not among those of today: {known}"
        play.divergence = Divergence(what="run", run=run.number, path=run.agent, line=run.line, problem=problem)
        return None
    if root != graph.root:
        graph = Graph(root, graph.agents)
    log = Watching(play, graph)
    play.clock.see(_began(run))
    bounds = limits or _limits(run) or graph.agents[root].agent.limits or DEFAULT_LIMITS
    again = Run(graph, run.id, log, play.clock, Budget(bounds))
    again.world, again.policy = play, policy
    again.emit = emit = Emit(on_event) if on_event is not None else None
    again.instructions, log.run = str(run.given.get("instructions", "")), again
    scope = Scope(play.ids, run.id, dict(run.views), emit, deps)
    scope.channels, scope.privates = kept_channels(graph.channels, run.state), dict(run.privates)
    first = graph.agents[run.agent]
    result = None
    task = asyncio.current_task()
    cancels = task.cancelling() if task is not None else 0
    try:
        if graph.requires:
            check_reachable(graph, first, deps)
        result = await conduct(again, scope, first, _entered(run, play), run.values or None)
    except Stopped:
        result = None
    except asyncio.CancelledError:
        if not play.stopped:
            raise
    except Exception as error:  # noqa: BLE001  # whatever ends a run is compared with how it ended
        with suppress(Stopped):
            play.failed(said_of(error))
    if task is not None and task.cancelling() > cancels:
        # Whoever waits for the replay has stopped it; how the run ended by that is no finding.
        raise asyncio.CancelledError
    if not play.stopped:
        play.end()
    return result


def _began(run: RecordedRun) -> int:
    return run.entered[0].created_at or 0 if run.entered else 0


def _limits(run: RecordedRun) -> Limits | None:
    given = run.given.get("limits")
    # Time does not pass as it did.
    return Limits(**{**given, "max_seconds": None}) if given is not None else None


def _entered(run: RecordedRun, play: Playback) -> list[Message]:
    # The ids that the run gave to its input are left for it to give again.
    ids = play.ids
    coming = set(ids.foretell(len(run.entered))) if isinstance(ids, RecordedIds) else set()
    return [message.replace(id="") if message.id in coming else message for message in run.entered]
