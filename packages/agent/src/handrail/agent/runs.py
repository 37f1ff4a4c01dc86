"""One run: what everything in it shares, the doors to it, and what comes out."""

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from handrail.agent.errors import ActiveAgentUnknown, BuildError, InvalidInput, LimitExceeded, RunError, tell
from handrail.agent.events import Event, Failed, LimitReached, Recovered, RunEnd, RunStart
from handrail.agent.handing import hand_back
from handrail.agent.handoffs import Handoff
from handrail.agent.journals import Log
from handrail.agent.limits import DEFAULT_LIMITS, Budget, Limits
from handrail.agent.loop import converse
from handrail.agent.reports import Crossing
from handrail.agent.scopes import Emit, Scope, UnheldIds
from handrail.agent.threads import ended
from handrail.filters import Clock, HandrailError, History, IdSource, Message, View, user
from handrail.filters.messages import Messages, id_given_twice, is_empty
from handrail.filters.repairs import lawful, restore
from handrail.sessions import Session, Usage
from handrail.sessions.paths import top_path

if TYPE_CHECKING:
    from handrail.agent.graphs import Bound, Graph
    from handrail.filters.policies import Policy

Input: TypeAlias = str | Message | Sequence[Message]


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    `output` is the answer's text; `agent` the name of who gave it; `messages` that agent's whole view, ready to be
    passed to another run; `handoffs` each boundary that was crossed, with what crossed and what stayed.
    """

    status: str
    output: str
    message: Message | None
    agent: str
    messages: History
    entered: Messages
    said: Sequence[Message]
    handoffs: Sequence[Crossing]
    usage: Usage
    usage_by_model: dict[str, Usage]
    steps: int
    run_id: str
    recovered: str = ""
    """What a crash had left at the end of the session's file and was cut; empty where nothing was."""

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """All that was said in the run, in order: what it was given (`entered`), then what came of it (`said`)."""
        return (*self.entered, *self.said)


class Run:
    """What one run shares with everything below it."""

    __slots__ = (
        "budget",
        "by_model",
        "caller",
        "clock",
        "counter",
        "crossings",
        "emit",
        "entered",
        "fresh",
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
        "way",
    )

    def __init__(self, graph: "Graph", run_id: str, log: Log, clock: Clock, budget: Budget) -> None:
        self.graph = graph
        self.id = run_id
        self.log = log
        self.clock = clock
        self.budget = budget
        self.emit: Emit | None = None
        self.throttle: Callable[[], Awaitable[None]] | None = None
        self.instructions = ""
        self.policy: Policy | None = None
        self.counter: str | None = None
        self.loop = asyncio.get_running_loop()
        self.next_turn: Handoff | None = None
        self.caller = ""
        self.recovered = ""
        self.by_model: dict[str, Usage] = {}
        self.crossings: list[Crossing] = []
        self.entered: Messages = ()
        self.fresh = False
        self.said: list[Message] = []
        self.way: list[str] = []
        self.steps = 0

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """What the run was given, and what came of it."""
        return (*self.entered, *self.said)

    @property
    def usage(self) -> Usage:
        """What the run cost so far, sub-agents and failed calls included."""
        total = Usage()
        for usage in self.by_model.values():
            total += usage
        return total

    def spend(self, model: str, usage: Usage) -> Usage:
        """Adds one request's cost, and gives it with the request counted."""
        spent = Usage(
            usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens, usage.requests or 1
        )
        known = self.by_model.get(model)
        self.by_model[model] = spent if known is None else known + spent
        return spent


async def execute(
    graph: "Graph",
    input: Input,
    session: Session | str | os.PathLike[str] | None,
    *,
    deps: Any,
    limits: Limits | None,
    start: Literal["active", "self"],
    instructions: str,
    ids: IdSource | None,
    clock: Clock | None,
    policy: "Policy | None" = None,
    counter: str | None = None,
    emit: Emit | None = None,
    throttle: Callable[[], Awaitable[None]] | None = None,
) -> RunResult:
    """One run, whatever door it came through. A session given by its path is closed at the end."""
    own = Session(session) if session is not None and not isinstance(session, Session) else None
    kept = own if own is not None else session if isinstance(session, Session) else None
    try:
        root = graph.agents[graph.root]
        budget = Budget(limits or root.agent.limits or DEFAULT_LIMITS)
        source = ids or IdSource()
        if ids is not None and kept is not None:
            source = UnheldIds(ids, list(kept.views.values()))
        run = Run(graph, source.next(), Log(kept), clock or Clock(), budget)
        run.emit, run.throttle, run.instructions = emit, throttle, instructions
        run.policy, run.counter = policy, counter
        first = _first(graph, kept, start)
        if kept is not None and kept.torn is not None:
            run.recovered = str(kept.torn)
            if emit is not None:
                emit(Recovered(run.id, top_path(first.name), run.recovered))
        if kept is None:
            return await _conduct(run, Scope(source, run.id, {}, emit, deps), first, input)
        with kept.in_use():
            scope = Scope(source, run.id, kept.views, emit, deps)
            return await _conduct(run, scope, first, input)
    finally:
        if own is not None:
            own.close()


def _first(graph: "Graph", session: Session | None, start: str) -> "Bound":
    if start not in ("active", "self"):
        raise BuildError(f"start is 'active' or 'self', not {start!r}")
    active = session.active_agent if session is not None and start == "active" else None
    if active is None:
        return graph.agents[graph.root]
    if active not in graph.agents:
        raise ActiveAgentUnknown(active, sorted(graph.agents))
    return graph.agents[active]


async def _conduct(run: Run, scope: Scope, first: "Bound", input: Input) -> RunResult:
    emit = run.emit
    path = top_path(first.name)
    scope.deps[path] = scope.deps[""]
    if emit is not None:
        emit(RunStart(run.id, path, first.name))
    try:
        entered = _entering(run, scope, path, input)
        result, last = await converse(run, scope, first, entered)
        await hand_back(last)
    except BaseException as error:
        _fail(run, scope, first, error)
        raise
    finally:
        run.log.end_turn()
    if emit is not None:
        emit(RunEnd(run.id, last.path, result.status, run.usage))
    return RunResult(
        status=result.status,
        output=result.output,
        message=result.message,
        agent=last.bound.name,
        messages=scope.views[last.path].history,
        entered=run.entered,
        said=run.said,
        handoffs=tuple(run.crossings),
        usage=run.usage,
        usage_by_model=dict(run.by_model),
        steps=run.steps,
        run_id=run.id,
        recovered=run.recovered,
    )


def _fail(run: Run, scope: Scope, first: "Bound", error: BaseException) -> None:
    # The last agent to have control in the outermost scope: what it holds can be continued.
    name = run.way[-1] if run.way else first.name
    view = scope.views.get(top_path(name))
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


def _entering(run: Run, scope: Scope, path: str, input: Input) -> Messages:
    """The messages that a run adds to its first agent's view, each with an id, the view made lawful before them."""
    view = scope.views.get(path)
    if view is not None:
        repaired = restore(view.history, "answer")
        if repaired.messages is not view.history:
            fixed = History([_named(run, scope, message) for message in repaired.messages])
            run.log.edit(path, view.history, fixed, "the transcript laws, when the conversation went on")
            scope.views[path] = View(fixed, view.removed)
    if isinstance(input, str) and input:
        run.fresh = True
        return (user(input, id=scope.ids.next(), created_at=run.clock()),)
    messages = _messages(input)
    run.fresh = len(messages) == 1 and not messages[0].id
    if not isinstance(messages, History) or run.log.on:
        _refuse_twice(messages, scope.views.get(path))
    if not lawful(messages):
        messages = restore(messages, "answer").messages
    if not isinstance(messages, History) or messages.survey().unnamed_at is not None:
        messages = History([_named(run, scope, message) for message in messages])
    _refuse_silence(messages if len(messages) else scope.views.get(path, View(History())).history)
    return messages


def _messages(input: Input) -> Messages:
    if isinstance(input, History):
        return input
    messages = (user(input),) if isinstance(input, str) else (input,) if isinstance(input, Message) else input
    if not isinstance(messages, list | tuple) or not all([type(message) is Message for message in messages]):
        raise InvalidInput(f"the input of a run is text, a message, or messages, not {type(input).__name__}")
    if any([message.role == "user" and is_empty(message) for message in messages]):
        raise InvalidInput("the input of a run has an empty user message, which no model can answer")
    return messages


def _refuse_twice(messages: Messages, view: View | None) -> None:
    # A message that the view holds already may be given again as it is; other words under its id would be lost.
    if (twice := id_given_twice(messages)) is not None:
        raise InvalidInput(f"the input of a run gives the message id {twice!r} twice")
    if view is None:
        return
    for message in messages:
        place = view.history.position(message.id) if message.id else None
        if place is not None and view.history[place].digest != message.digest:
            raise InvalidInput(f"the conversation holds another message with the id {message.id!r}; leave the id empty")


def _refuse_silence(messages: Messages) -> None:
    last = next((message for message in reversed(messages) if message.role != "system"), None)
    if last is None:
        raise InvalidInput("there is nothing to answer: the run was given no message but system messages")


def _named(run: Run, scope: Scope, message: Message) -> Message:
    if message.id:
        return message
    return msgspec.structs.replace(message, id=scope.ids.next(), created_at=message.created_at or run.clock())


class Stream:
    """A run that is heard as it goes. Use it with `async with`, and iterate over its events."""

    LEAD = 1000
    """How many events a run may be ahead of its listener before it waits."""

    def __init__(self, begin: Callable[..., Awaitable[RunResult]]) -> None:
        self._begin = begin
        self._events: deque[Event] = deque()
        self._heard: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._task: asyncio.Task[RunResult] | None = None

    @property
    def result(self) -> RunResult:
        """The run's result, once its events have ended. Raises what the run raised, or `RunError` before the end."""
        if self._task is None or not self._task.done():
            raise RunError("the run has not ended yet; its result is there when its events have ended")
        if self._task.cancelled():
            raise RunError("the run was cancelled before it ended, so it has no result")
        return self._task.result()

    async def __aenter__(self) -> "Stream":
        if self._task is not None:
            raise RunError("a stream is one run; call stream() again for another")
        self._task = asyncio.ensure_future(self._begin(self._emit, self._wait_for_room))
        self._task.add_done_callback(self._wake)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        task = self._task
        if task is None:
            return
        if not task.done():
            task.cancel()
            await ended([task])
        if not task.cancelled():
            task.exception()  # taken note of: it was raised to whoever listened to the end

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Event:
        events = self._events
        while not events:
            if self._task is None:
                raise RunError("a stream is used with `async with`")
            if self._task.done():
                await self._task
                raise StopAsyncIteration
            self._heard = asyncio.get_running_loop().create_future()
            await self._heard
        if self._room is not None and len(events) <= self.LEAD // 2:
            _resolve(self._room)
        return events.popleft()

    def _emit(self, event: Event) -> None:
        self._events.append(event)
        heard = self._heard
        if heard is not None:
            _resolve(heard)
            self._heard = None

    async def _wait_for_room(self) -> None:
        while len(self._events) > self.LEAD:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
            self._room = None

    def _wake(self, _: "asyncio.Task[RunResult]") -> None:
        if self._heard is not None:
            _resolve(self._heard)


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
