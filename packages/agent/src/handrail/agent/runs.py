"""One run: what everything in it shares, the doors to it, and what comes out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence, Sized
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from handrail.agent.ended import let_go
from handrail.agent.entering import Input, entering
from handrail.agent.errors import ActiveAgentUnknown, BuildError, LimitExceeded, tell
from handrail.agent.events import Failed, LimitReached, Recovered, RunEnd, RunStart
from handrail.agent.handing import hand_back
from handrail.agent.handoffs import Handoff, check_policy
from handrail.agent.introducing import given_to
from handrail.agent.journals import NO_LOG, Log
from handrail.agent.kernel.blame import blame
from handrail.agent.kernel.middlewares import Middleware
from handrail.agent.kernel.requests import Verdict
from handrail.agent.limits import DEFAULT_LIMITS, NOTHING, Budget, Limits, total
from handrail.agent.loop import converse
from handrail.agent.reports import Crossing
from handrail.agent.scopes import Scope, UnheldIds
from handrail.agent.stating import begin_with, check_reachable, kept_channels
from handrail.agent.telling import Emit
from handrail.filters import Clock, HandrailError, History, IdSource, Message
from handrail.filters.messages import Messages
from handrail.sessions import BudgetRecord, Session, Usage
from handrail.sessions.paths import top_path

if TYPE_CHECKING:
    from handrail.agent.bounds import Bound
    from handrail.agent.graphs import Graph
    from handrail.agent.kernel.requests import TurnResult
    from handrail.agent.loop import Turn
    from handrail.agent.worlds import World
    from handrail.filters.policies import Policy


Throttle: TypeAlias = tuple[Sized, Callable[[], Awaitable[None]]]
"""The events that a run's listener has not heard yet, and what waits, where they are too many, until they are not."""


async def _at_once() -> None:
    pass


NOBODY_LISTENS: Throttle = ((), _at_once)
CLOCK = Clock()


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    `output` is the answer's text, or the value of an agent with an `output_type`; `agent` the name of who gave it;
    `messages` that agent's whole view, ready to be passed to another run; `handoffs` each boundary that was crossed,
    with what crossed and what stayed.
    """

    status: str
    output: Any
    message: Message | None
    agent: str
    messages: History
    entered: Messages
    said: Sequence[Message]
    handoffs: Sequence[Crossing]
    usage: Usage
    usage_by_model: dict[str, Usage]
    usage_by_call: Mapping[str, Sequence[Usage]]
    """What each model call cost, by model."""
    steps: int
    run_id: str
    state: dict[str, Any] = {}
    """The shared state at the end, by channel, without what is private."""
    verdict: Verdict | None = None
    """What the output type, or a validating layer, found of the answer."""
    finish_reason: str = ""
    recovered: str = ""
    """What a crash had left at the end of the session's file and was cut; empty where nothing was."""

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """All that was said in the run, in order: what it was given (`entered`), then what came of it (`said`)."""
        return (*self.entered, *self.said)

    @property
    def cost(self) -> Decimal | None:
        """What the run cost in US dollars, by the price list that is installed; None where the price of a model that it
        asked is not known."""
        from handrail.agent.prices import price_of

        return price_of(self.usage_by_call)


class Run:
    """What one run shares with everything below it."""

    __slots__ = (
        "budget",
        "caller",
        "clock",
        "counter",
        "crossings",
        "emit",
        "entered",
        "fresh",
        "given",
        "graph",
        "id",
        "instructions",
        "log",
        "loop",
        "next_turn",
        "policy",
        "recovered",
        "said",
        "steps",
        "throttle",
        "unheard",
        "way",
        "world",
    )

    def __init__(self, graph: Graph, run_id: str, log: Log, clock: Clock, budget: Budget) -> None:
        self.graph = graph
        self.id = run_id
        self.log = log
        self.clock = clock
        self.budget = budget
        self.emit: Emit | None = None
        self.unheard, self.throttle = NOBODY_LISTENS
        self.instructions = ""
        self.policy: Policy | None = None
        self.counter: str | None = None
        self.loop = asyncio.get_running_loop()
        self.next_turn: Handoff | None = None
        self.caller = ""
        self.recovered = ""
        self.crossings: list[Crossing] = []
        self.given: dict[str, Any] = {}
        self.world: World | None = None
        self.entered: Messages = ()
        self.fresh = False
        self.said: list[Message] = []
        self.way: tuple[str, ...] = ()
        self.steps = 0

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """What the run was given, and what came of it."""
        return (*self.entered, *self.said)

    @property
    def usage(self) -> Usage:
        """What the run cost so far, sub-agents and failed calls included."""
        return total(self.budget.by_model)


def execute(
    graph: Graph,
    input: Input,
    session: Session | str | os.PathLike[str] | None,
    *,
    deps: Any,
    limits: Limits | None,
    session_limits: Limits | None = None,
    start: Literal["active", "self"],
    instructions: str,
    ids: IdSource | None,
    clock: Clock | None,
    policy: Policy | None = None,
    counter: str | None = None,
    middleware: Sequence[Middleware] = (),
    state: Mapping[str, Any] | None = None,
    emit: Emit | None = None,
    throttle: Throttle | None = None,
    crossings: list[Crossing] | None = None,
) -> Coroutine[Any, Any, RunResult]:
    """One run, whatever door it came through, made ready here and awaited by who called. A session given by its path is
    closed at the end."""
    if limits is not None and not isinstance(limits, Limits):
        raise BuildError(f"the limits of a run are Limits(…), not {limits!r}")
    if state is not None and not isinstance(state, Mapping):
        raise BuildError(f"the state of a run is values by channel, not {state!r}")
    if session is not None and not isinstance(session, Session | str | os.PathLike):
        raise BuildError(f"the session of a run is a Session or a path, not {session!r}")
    if middleware != ():
        graph = graph.layered(middleware)
    own = Session(session) if session is not None and not isinstance(session, Session) else None
    kept = own if own is not None else session if isinstance(session, Session) else None
    try:
        root = graph.agents[graph.root]
        around = _budget_of(kept, session_limits) if session_limits is not None else None
        budget = Budget(limits if limits is not None else root.agent.limits or DEFAULT_LIMITS, around)
        check_policy(policy, "a run")
        source = ids or IdSource()
        if ids is not None and kept is not None:
            source = UnheldIds(ids, list(kept.views.values()))
        run = Run(
            graph, source.next(), Log(kept, graph.descriptors) if kept is not None else NO_LOG, clock or CLOCK, budget
        )
        run.emit, run.instructions = emit, instructions
        run.unheard, run.throttle = throttle or NOBODY_LISTENS
        run.policy, run.counter = policy, counter
        if crossings is not None:
            run.crossings = crossings
        first = _first(graph, kept, start)
        if kept is not None:
            run.given = given_to(graph, first, limits, instructions, counter, policy, middleware)
        if graph.requires:
            check_reachable(graph, first, deps)
        if kept is not None and kept.torn is not None:
            run.recovered = str(kept.torn)
            if emit is not None:
                emit(Recovered(run.id, top_path(first.name), run.recovered))
        scope = Scope(source, run.id, {} if kept is None else kept.views, emit, deps)
    except BaseException:
        if own is not None:
            own.close()
        raise
    conducted = conduct(run, scope, first, input, state)
    return conducted if kept is None else _in_session(kept, own, run, scope, conducted)


async def _in_session(
    session: Session, own: Session | None, run: Run, scope: Scope, conducted: Coroutine[Any, Any, RunResult]
) -> RunResult:
    try:
        with session.in_use():
            scope.channels, scope.privates = kept_channels(run.graph.channels, session.state), session.private_states
            return await conducted
    finally:
        conducted.close()
        if own is not None:
            own.close()


def _budget_of(session: Session | None, limits: Limits) -> Budget:
    # What bounds the whole session: all that its earlier runs used is used up.
    if session is None or limits.max_seconds is not None:
        found = "this run has none" if session is None else "max_seconds is of a run; give it as one of its limits"
        raise BuildError(f"session_limits bound all runs of a session, and {found}")
    spent = session.spent
    if limits.max_cost is not None and spent.cost is None:
        from handrail.agent.prices import price_of_records

        cost, whole = price_of_records(session.records())
        spent = msgspec.structs.replace(spent, cost=cost if whole or limits.on_unpriced == "ignore" else None)
    return Budget.resumed(limits, spent)


def _first(graph: Graph, session: Session | None, start: str) -> Bound:
    if start not in ("active", "self"):
        raise BuildError(f"start is 'active' or 'self', not {start!r}")
    active = session.active_agent if session is not None and start == "active" else None
    if active is None:
        return graph.agents[graph.root]
    if active not in graph.agents:
        raise ActiveAgentUnknown(active, sorted(graph.agents))
    return graph.agents[active]


async def conduct(
    run: Run, scope: Scope, first: Bound, input: Input, state: Mapping[str, Any] | None = None
) -> RunResult:
    """The run from its input to its result, when all that it shares has been put together."""
    emit = run.emit
    path = top_path(first.name)
    scope.first = path
    if emit is not None:
        emit(RunStart(run.id, path, first.name))
    try:
        if state is not None:
            begin_with(run, scope, path, state)
        entered = entering(run, scope, path, input)
        if run.budget.timed:
            result, last = await run.budget.in_time(_answered(run, scope, first, entered))
        else:
            result, last = await converse(run, scope, first, entered)
            if run.next_turn is not None:
                await hand_back(last)
    except BaseException as error:
        _fail(run, scope, first, error)
        raise
    finally:
        if run.log.on and (spent := run.budget.used) != NOTHING:
            run.log.stage(BudgetRecord(path=path, run=run.id, spent=spent))
        run.log.end_turn()
    let_go(last)
    by_model = run.budget.by_model
    usage = total(by_model)
    if emit is not None:
        emit(RunEnd(run.id, last.path, result.status, usage))
    return RunResult(
        status=result.status,
        output=result.output,
        message=result.message,
        agent=last.bound.name,
        messages=scope.views[last.path].history,
        entered=run.entered,
        said=run.said,
        handoffs=tuple(run.crossings),
        usage=usage,
        usage_by_model=by_model,
        usage_by_call=run.budget.calls,
        steps=run.steps,
        run_id=run.id,
        recovered=run.recovered,
        state=scope.channels.public(run.graph.channels) if run.graph.channels else {},
        verdict=result.verdict,
        finish_reason=result.finish_reason,
    )


async def _answered(run: Run, scope: Scope, first: Bound, entered: Messages) -> tuple[TurnResult, Turn]:
    result, last = await converse(run, scope, first, entered)
    await hand_back(last)
    return result, last


def _fail(run: Run, scope: Scope, first: Bound, error: BaseException) -> None:
    # The last agent to have control in the outermost scope: what it holds can be continued.
    name = run.way[-1] if run.way else first.name
    view = scope.views.get(top_path(name))
    layers = [layer for bound in run.graph.agents.values() for layer in bound.layers]
    late = error.__cause__ if isinstance(error, LimitExceeded) else None
    if (hook := blame(error, layers)) is not None:
        error.add_note(f"raised in {hook}")
    elif isinstance(late, asyncio.CancelledError) and (hook := blame(late, layers)) is not None:
        error.add_note(f"the time ran out in {hook}")
    if isinstance(error, HandrailError):
        error.agent = name
        error.messages = view.history if view is not None else History()
        error.new_messages = run.new_messages
        error.usage = run.usage
    if run.emit is not None:
        path = top_path(name)
        if isinstance(error, LimitExceeded):
            run.emit(LimitReached(run.id, path, error.limit, error.value))
        if isinstance(error, Exception):
            run.emit(Failed(run.id, path, **tell(error)))
        status = "failed" if isinstance(error, Exception) else "cancelled"
        run.emit(RunEnd(run.id, path, status, run.usage))
