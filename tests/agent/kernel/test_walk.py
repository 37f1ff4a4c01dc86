"""Every hook, and everything a layer may do in it: what becomes of the order, the state, the record and the events.

The walk: A adds two numbers and asks B, in one response; B says what it heard, and so does A. Around what the table
tries out stand two layers that watch every hook, one outside it and one inside.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agent.desks import ids, tasks, texts
from handrail.agent import Agent, ChatResponse, FunctionModel, RunResult, handoff
from handrail.agent.events import (
    Discard,
    Event,
    Failed,
    MessageDone,
    RunEnd,
    RunStart,
    StepEnd,
    StepStart,
    Text,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from handrail.agent.kernel import (
    ChatRequest,
    HandoffResponse,
    Middleware,
    Token,
    TokenTransform,
    ToolResponse,
    TurnResult,
    jump,
    replace,
)
from handrail.filters import FixedClock, FixedIds, assistant, breaches, call, full, last_user, user
from handrail.sessions import MessageRecord, Session, StateRecord, ToolResultRecord, TurnRecord, read, verify

AROUND = ("around_turn", "around_chat", "around_tool", "around_handoff")
STATE = ("before_agent", "before_model", "after_model", "after_agent")
DOES = ("passes", "changes the request", "changes the response", "short-circuits", "calls twice", "raises", "cancels")
WHOLE = "A(go + 3 + B(go + 3))"
"""What the walk answers when nothing interferes: who heard what."""


class Boom(Exception):
    """What a layer raises."""


async def passes(request: Any, call_next: Any) -> Any:
    return await call_next(request)


async def calls_twice(request: Any, call_next: Any) -> Any:
    await call_next(request)
    return await call_next(request)


async def raises(*_: Any) -> Any:
    raise Boom("no")


async def cancels(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def asks(**changes: Any) -> Any:
    """Calls on with a changed request."""

    async def act(request: Any, call_next: Any) -> Any:
        return await call_next(request.replace(**changes))

    return act


def answers(change: Callable[[Any], Any]) -> Any:
    """Changes what came back."""

    async def act(request: Any, call_next: Any) -> Any:
        return change(await call_next(request))

    return act


def instead(response: Any) -> Any:
    """Answers by itself."""

    async def act(request: Any, call_next: Any) -> Any:
        return response

    return act


async def hears_more(request: ChatRequest, call_next: Any) -> Any:
    return await call_next(request.replace(messages=(*request.messages, user("now"))))


def louder(response: ChatResponse) -> ChatResponse:
    message = response.message
    return response if message.tool_calls else response.replace(message=message.replace(content=f"{message.text}!"))


def one_more(response: HandoffResponse) -> HandoffResponse:
    return response.replace(seed=(*response.seed, user("more")))


async def nothing(state: Any, run: Any) -> Any:
    return None


async def rewords_question(state: Any, run: Any) -> Any:
    return {"messages": replace(state.messages[0].replace(content="go on"))}


async def rewords_answer(state: Any, run: Any) -> Any:
    last = state.messages[-1]
    return None if last.tool_calls else {"messages": replace(last.replace(content="other words"))}


async def ends(state: Any, run: Any) -> Any:
    return jump("end")


class Row(NamedTuple):
    """What a layer does in its hook, and what is to come of it."""

    act: Callable[..., Awaitable[Any]]
    then: str
    says: str = WHOLE
    fails: type[BaseException] | None = None
    outer: int = 1
    """How often the layer outside it passes the hook, in and out again."""
    inner: int = 1
    """How often the one inside it does."""
    tools: tuple[str, ...] = ("3",)
    """What the tool gives each time it really runs."""


class Heard(NamedTuple):
    """What a transform makes of a token, and what is then heard of the last answer."""

    step: Callable[[Token], Sequence[Token]]
    then: str
    heard: str
    fails: type[BaseException] | None = None


def fails(token: Token) -> Sequence[Token]:
    raise Boom("no")


TWICE = "".join([word * 2 for word in re.findall(r"\S+\s*", WHOLE)])
NO_REQUEST = "it stands after the call, so there is no request left to change"
NO_RESPONSE = "it stands before the call, so there is no response yet to change"
NO_CALL = "a state hook is told, and calls nothing on; a jump to the model is its way to have it called again"
NOTHING_LEFT = "it stands after the call, so there is nothing left to leave out but what a jump passes over"

TABLE: Mapping[tuple[str, str], Row | str] = {
    ("around_turn", "passes"): Row(passes, "the run goes as it does without it"),
    ("around_turn", "changes the request"): Row(
        asks(messages=(user("go on"),)), "the agent is asked something else", "A(go on + 3 + B(go on + 3))"
    ),
    ("around_turn", "changes the response"): Row(
        answers(lambda result: result.replace(output="mine")), "the run's output is another", "mine"
    ),
    ("around_turn", "short-circuits"): Row(
        instead(TurnResult(status="completed", message=assistant("mine"), output="mine")),
        "the layer answers, and no model is asked",
        "mine",
        inner=0,
        tools=(),
    ),
    ("around_turn", "calls twice"): Row(
        calls_twice,
        "the turn is begun again, and what came of it before leaves the view",
        "A(go + 3 + B(go + 3 + 3))",
        inner=2,
        tools=("3", "3"),
    ),
    ("around_turn", "raises"): Row(raises, "the run fails", fails=Boom, inner=0, tools=()),
    ("around_turn", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0, tools=()),
    ("around_chat", "passes"): Row(passes, "the run goes as it does without it", outer=2, inner=2),
    ("around_chat", "changes the request"): Row(
        hears_more, "the model hears what the view does not hold", "A(go + 3 + B(go + 3) + now)", outer=2, inner=2
    ),
    ("around_chat", "changes the response"): Row(
        answers(louder), "the view holds the changed answer", f"{WHOLE}!", outer=2, inner=2
    ),
    ("around_chat", "short-circuits"): Row(
        instead(ChatResponse(assistant("mine"))), "the layer answers, and no model is asked", "mine", inner=0, tools=()
    ),
    ("around_chat", "calls twice"): Row(
        calls_twice, "the model is asked twice a step, and its second answer counts", outer=2, inner=4
    ),
    ("around_chat", "raises"): Row(raises, "the run fails", fails=Boom, inner=0, tools=()),
    ("around_chat", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0, tools=()),
    ("around_tool", "passes"): Row(passes, "the run goes as it does without it"),
    ("around_tool", "changes the request"): Row(
        asks(arguments={"a": 10, "b": 2}),
        "the tool runs with other arguments",
        "A(go + 12 + B(go + 12))",
        tools=("12",),
    ),
    ("around_tool", "changes the response"): Row(
        answers(lambda response: response.replace(content="three")),
        "the model is shown another result",
        "A(go + three + B(go + three))",
    ),
    ("around_tool", "short-circuits"): Row(
        instead(ToolResponse("mine")),
        "the layer gives the result, and the tool does not run",
        "A(go + mine + B(go + mine))",
        inner=0,
        tools=(),
    ),
    ("around_tool", "calls twice"): Row(
        calls_twice, "the tool runs twice, and there is one result", inner=2, tools=("3", "3")
    ),
    ("around_tool", "raises"): Row(raises, "the run fails", fails=Boom, inner=0, tools=()),
    ("around_tool", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0, tools=()),
    ("around_handoff", "passes"): Row(passes, "the run goes as it does without it"),
    ("around_handoff", "changes the request"): Row(
        asks(filter=last_user()), "another filter decides what crosses", "A(go + 3 + B(go))"
    ),
    ("around_handoff", "changes the response"): Row(
        answers(one_more), "the target starts from another seed", "A(go + 3 + B(go + 3 + more))"
    ),
    ("around_handoff", "short-circuits"): Row(
        instead(HandoffResponse((user("mine"),))),
        "the layer gives the seed, and the filter does not run",
        "A(go + 3 + B(mine))",
        inner=0,
    ),
    ("around_handoff", "calls twice"): Row(
        calls_twice, "the filter runs twice, and the boundary is crossed once", inner=2
    ),
    ("around_handoff", "raises"): Row(raises, "the run fails, and the target never starts", fails=Boom, inner=0),
    ("around_handoff", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0),
    ("before_agent", "passes"): Row(nothing, "the run goes as it does without it"),
    ("before_agent", "changes the request"): Row(
        rewords_question, "the agent sees other words than were said", "A(go on + 3 + B(go on + 3))"
    ),
    ("before_agent", "changes the response"): NO_RESPONSE,
    ("before_agent", "short-circuits"): Row(ends, "the turn ends before it began", "", inner=0, tools=()),
    ("before_agent", "calls twice"): NO_CALL,
    ("before_agent", "raises"): Row(raises, "the run fails", fails=Boom, inner=0, tools=()),
    ("before_agent", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0, tools=()),
    ("before_model", "passes"): Row(nothing, "the run goes as it does without it", outer=2, inner=2),
    ("before_model", "changes the request"): Row(
        rewords_question, "the agent sees other words than were said", "A(go on + 3 + B(go on + 3))", outer=2, inner=2
    ),
    ("before_model", "changes the response"): NO_RESPONSE,
    ("before_model", "short-circuits"): Row(ends, "the turn ends and the model is not asked", "", inner=0, tools=()),
    ("before_model", "calls twice"): NO_CALL,
    ("before_model", "raises"): Row(raises, "the run fails", fails=Boom, inner=0, tools=()),
    ("before_model", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, inner=0, tools=()),
    ("after_model", "passes"): Row(nothing, "the run goes as it does without it", outer=2, inner=2),
    ("after_model", "changes the request"): NO_REQUEST,
    ("after_model", "changes the response"): Row(
        rewords_answer, "the view holds the changed answer", "other words", outer=2, inner=2
    ),
    ("after_model", "short-circuits"): NOTHING_LEFT,
    ("after_model", "calls twice"): NO_CALL,
    ("after_model", "raises"): Row(raises, "the run fails, and the calls are not run", fails=Boom, outer=0, tools=()),
    ("after_model", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, outer=0, tools=()),
    ("after_agent", "passes"): Row(nothing, "the run goes as it does without it"),
    ("after_agent", "changes the request"): NO_REQUEST,
    ("after_agent", "changes the response"): Row(rewords_answer, "the run's answer is the changed one", "other words"),
    ("after_agent", "short-circuits"): NOTHING_LEFT,
    ("after_agent", "calls twice"): NO_CALL,
    ("after_agent", "raises"): Row(raises, "the run fails after its answer", fails=Boom, outer=0),
    ("after_agent", "cancels"): Row(cancels, "the run is cancelled", fails=asyncio.CancelledError, outer=0),
}
# What a transform does is done to what is heard, and to nothing else; `run` does not know of it.
TOKENS: Mapping[str, Heard | str] = {
    "passes": Heard(lambda token: (token,), "what is heard is what was said", WHOLE),
    "changes the request": "it is shown the request of its model call, and calls nothing on",
    "changes the response": Heard(
        lambda token: (token.replace(token.text.upper()),), "other words are heard", WHOLE.upper()
    ),
    "short-circuits": Heard(lambda token: (), "nothing is heard of the answer until it is whole", ""),
    "calls twice": Heard(lambda token: (token, token), "every token is heard twice", TWICE),
    "raises": Heard(fails, "the stream fails, and a run that nobody hears does not", "", Boom),
    "cancels": "it is a plain function that waits for nothing, so no cancel can come in the middle of it",
}
ROWS = [(*where, row) for where, row in TABLE.items() if isinstance(row, Row)]
rows = pytest.mark.parametrize(
    ("hook", "does", "row"), ROWS, ids=[f"{hook} {does}: {row.then}" for hook, does, row in ROWS]
)


def test_the_table_says_something_of_every_hook_and_everything_a_layer_may_do_in_it() -> None:
    assert set(TABLE) == {(hook, does) for hook in (*AROUND, *STATE) for does in DOES}
    assert all(isinstance(row, Row) or row.startswith(("it stands", "a state hook")) for row in TABLE.values())
    assert set(TOKENS) == set(DOES)


class Watch(Middleware):
    """Marks every hook as it is passed, in the order and in its own private state."""

    jumps = {"before_agent": ["end"], "before_model": ["end"]}  # noqa: RUF012  # nobody changes it

    def __init__(self, name: str, order: list[str]) -> None:
        self.name = name
        self.order = order

    def init_state(self) -> dict[str, Any]:
        return {"seen": []}

    def _mark(self, mark: str, memory: Any) -> None:
        self.order.append(f"{self.name} {mark}")
        memory["seen"] = [*memory["seen"], mark]

    async def _around(self, hook: str, request: Any, call_next: Any) -> Any:
        self._mark(f"{hook}(", request.state)
        try:
            return await self.act(hook, request, call_next)
        finally:
            self._mark(f"){hook}", request.state)

    async def act(self, hook: str, request: Any, call_next: Any) -> Any:
        return await call_next(request)

    async def act_on(self, hook: str, state: Any, run: Any) -> Any:
        return None

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        return await self._around("around_turn", request, call_next)

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await self._around("around_chat", request, call_next)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        return await self._around("around_tool", request, call_next)

    async def around_handoff(self, request: Any, call_next: Any) -> Any:
        return await self._around("around_handoff", request, call_next)

    async def before_agent(self, state: Any, run: Any) -> Any:
        self._mark("before_agent", state.private)
        return await self.act_on("before_agent", state, run)

    async def before_model(self, state: Any, run: Any) -> Any:
        self._mark("before_model", state.private)
        return await self.act_on("before_model", state, run)

    async def after_model(self, state: Any, run: Any) -> Any:
        self._mark("after_model", state.private)
        return await self.act_on("after_model", state, run)

    async def after_agent(self, state: Any, run: Any) -> Any:
        self._mark("after_agent", state.private)
        return await self.act_on("after_agent", state, run)


class Act(Watch):
    """Does what the table says in one hook."""

    def __init__(self, order: list[str], hook: str, does: Callable[..., Awaitable[Any]]) -> None:
        super().__init__("acting", order)
        self.hook, self.does = hook, does

    async def act(self, hook: str, request: Any, call_next: Any) -> Any:
        return await (self.does(request, call_next) if hook == self.hook else call_next(request))

    async def act_on(self, hook: str, state: Any, run: Any) -> Any:
        return await self.does(state, run) if hook == self.hook else None


class Walked:
    """A walk that was made, and all that is left of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order: list[str] = []
        self.events: list[Event] = []
        self.ran: list[str] = []
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self.first: list[Middleware] = []
        self.more: list[Middleware] = []

    def agent(self, hook: str, does: Callable[..., Awaitable[Any]]) -> Agent:
        def say(request: ChatRequest) -> Any:
            if request.run.agent == "A" and not any(message.tool_calls for message in request.messages):
                return [call("add", call_id="c1", a=1, b=2), call("transfer_to_b", call_id="h1")]
            heard = [message.text for message in request.messages if message.role in ("user", "tool")]
            return f"{request.run.agent}({' + '.join(heard)})"

        def add(a: int, b: int) -> int:
            self.ran.append(str(a + b))
            return a + b

        watching = [Watch("outer", self.order), Act(self.order, hook, does), Watch("inner", self.order)]
        model = FunctionModel(say)
        b = handoff(Agent("B", model=model), filter=full(), returns=full())
        return Agent("A", model=model, tools=[add], handoffs=[b], middleware=[*self.first, *watching, *self.more])

    async def run(self, agent: Agent, session: Session) -> None:
        self.result = await agent.run("go", session=session, **fixed())

    async def stream(self, agent: Agent, session: Session) -> None:
        async with agent.stream("go", session=session, **fixed()) as run:
            async for event in run:
                self.events.append(event)
            self.result = run.result

    async def make(self, door: str, hook: str, does: Callable[..., Awaitable[Any]]) -> "Walked":
        with Session(self.path, fsync="never", **fixed()) as session:
            try:
                await getattr(self, door)(self.agent(hook, does), session)
            except (Boom, asyncio.CancelledError) as error:
                self.error = error
            self.views = {path: tuple(view.history) for path, view in session.views.items()}
        return self

    @property
    def end(self) -> tuple[str, str]:
        """What it ended with: an answer, or an error."""
        if self.result is not None:
            return "answered", self.result.output
        return "failed", f"{type(self.error).__name__}: {self.error} {getattr(self.error, '__notes__', '')}"

    def marks(self, layer: str) -> list[str]:
        """The hooks that a layer passed, in order."""
        return [mark.removeprefix(f"{layer} ") for mark in self.order if mark.startswith(f"{layer} ")]

    def of(self, *kinds: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]


def fixed() -> dict[str, Any]:
    return {"ids": FixedIds("m"), "clock": FixedClock(0, 0)}


async def walked(path: Path, hook: str, does: Callable[..., Awaitable[Any]], door: str = "stream") -> Walked:
    return await Walked(path / f"{door}.jsonl").make(door, hook, does)


async def test_the_layers_of_a_walk_nest_in_list_order_and_after_parts_run_from_the_last_to_the_first(
    tmp_path: Path,
) -> None:
    made = await walked(tmp_path, "around_turn", passes)
    names = ["outer", "acting", "inner"]

    def before(hook: str) -> list[str]:
        return [f"{name} {hook}" for name in names]

    def after(hook: str) -> list[str]:
        return [f"{name} {hook}" for name in reversed(names)]

    def around(hook: str, *within: str) -> list[str]:
        return [*before(f"{hook}("), *within, *after(f"){hook}")]

    step = [*before("before_model"), *around("around_chat"), *after("after_model")]
    turn = around("around_turn", *step, *around("around_tool"), *around("around_handoff"), *step)
    assert made.order == [*before("before_agent"), *turn, *after("after_agent")]


@rows
async def test_a_walk_ends_as_the_table_says(hook: str, does: str, row: Row, tmp_path: Path) -> None:
    made = await walked(tmp_path, hook, row.act, "run")
    if row.fails is None:
        assert made.end == ("answered", row.says)
    else:
        assert type(made.error) is row.fails
        assert f"raised in acting.{hook}" in getattr(made.error, "__notes__", [])
    assert (tuple(made.ran), tasks()) == (row.tools, set())


@rows
async def test_outer_layers_are_passed_in_and_out_and_inner_ones_as_often_as_they_are_called(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    made = await walked(tmp_path, hook, row.act)
    opening = f"{hook}(" if hook in AROUND else hook
    assert (made.marks("outer").count(opening), made.marks("inner").count(opening)) == (row.outer, row.inner)
    open_layers: list[str] = []
    for mark in made.order:
        layer, _, part = mark.partition(" ")
        if part.endswith("("):
            open_layers.append(f"{layer} ){part[:-1]}")
        elif part.startswith(")"):
            assert open_layers.pop() == mark
    assert open_layers == []


@rows
async def test_each_layer_has_a_private_state_of_its_own_and_the_record_holds_it(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    made = await walked(tmp_path, hook, row.act)
    records = [record for record in read(made.path).records() if isinstance(record, StateRecord)]
    kept = {record.layer: decoded(record) for record in records}
    if row.fails is None:
        passed = [layer for layer in ("outer", "acting", "inner") if made.marks(layer)]
        assert kept == {layer: {"seen": made.marks(layer)} for layer in passed}
    else:
        assert kept == {}


def decoded(record: StateRecord) -> Any:
    return json.loads(bytes(record.values))


@rows
async def test_the_record_is_intact_and_holds_every_message_once_and_the_views_as_they_were(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    made = await walked(tmp_path, hook, row.act)
    verdict = verify(made.path)
    assert verdict.state == "intact", str(verdict)
    records = [*read(made.path).records()]
    stored = [record.message.id for record in records if isinstance(record, MessageRecord | ToolResultRecord)]
    assert len(set(stored)) == len(stored)
    views = {path: tuple(view.history) for path, view in Session(made.path).views.items()}
    assert views == made.views
    assert all(breaches(view) == [] for view in views.values())
    if made.result is not None:
        assert views["A"] == tuple(made.result.messages)
    status = "completed" if row.fails is None else "cancelled" if row.fails is asyncio.CancelledError else "failed"
    (end,) = [
        each.status for each in records if isinstance(each, TurnRecord) and (each.path, each.event) == ("A", "end")
    ]
    assert end == status


@rows
async def test_what_is_told_begins_and_ends_and_what_was_delivered_is_said_or_withdrawn(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    made = await walked(tmp_path, hook, row.act)
    assert type(made.events[0]) is RunStart
    assert len(made.of(TurnStart)) == len(made.of(TurnEnd))
    if row.fails is None:
        assert type(made.events[-1]) is RunEnd
        assert len(made.of(StepStart)) == len(made.of(StepEnd))
        assert len(made.of(ToolStart)) == len(made.of(ToolEnd))
    else:
        # What it happened in begins and does not end; all that came before it did.
        in_step = hook not in ("around_turn", "before_agent", "after_agent")
        assert len(made.of(StepStart)) - len(made.of(StepEnd)) == in_step
        assert len(made.of(ToolStart)) - len(made.of(ToolEnd)) == (hook == "around_tool")
    if row.fails is Boom:
        assert [type(event) for event in made.events[-3:]] == [TurnEnd, Failed, RunEnd]
    if row.fails is asyncio.CancelledError:
        assert [getattr(event, "status", "") for event in made.events[-2:]] == ["cancelled", "cancelled"]
        assert ([type(event) for event in made.events[-2:]], made.of(Failed)) == ([TurnEnd, RunEnd], [])
    delivered = {event.message_id for event in made.of(Text)}
    said = {event.message.id for event in made.of(MessageDone)}
    withdrawn = {event.message_id for event in made.of(Discard)}
    assert delivered <= said | withdrawn
    if made.result is not None:
        again = (
            {
                event.message.id
                for event in made.events[made.events.index(made.of(Discard)[0]) :]
                if type(event) is MessageDone
            }
            if withdrawn
            else set()
        )
        assert (withdrawn - again).isdisjoint(ids(made.result.messages))


@rows
async def test_both_doors_end_alike_and_leave_the_same_order_and_the_same_record(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    by_run, by_stream = [await walked(tmp_path, hook, row.act, door) for door in ("run", "stream")]
    assert by_run.end == by_stream.end
    assert by_run.order == by_stream.order
    assert by_run.views == by_stream.views
    assert [*read(by_run.path).records()] == [*read(by_stream.path).records()]
    if by_run.result is not None and by_stream.result is not None:
        assert texts(by_run.result.new_messages) == texts(by_stream.result.new_messages)
        assert by_run.result.usage == by_stream.result.usage


class Steps(Middleware):
    """Notes which step the hooks of a model call are told, and how many the turn is said to have had."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.after: list[int] = []
        self.turns: list[int] = []

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        self.turns.append(result.steps)
        return result

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        self.asked.append(request.run.step)
        return await call_next(request)

    async def after_model(self, state: Any, run: Any) -> None:
        self.after.append(run.step)


@rows
async def test_steps_are_counted_from_one_and_the_turns_result_says_how_many_there_were(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    steps, made = Steps(), Walked(tmp_path / "s.jsonl")
    made.first = [steps]
    await made.make("run", hook, row.act)
    assert steps.asked == [*range(1, len(steps.asked) + 1)]
    if made.result is not None:
        # A turn that was ended before it began has no result to be seen; B takes a step of its own.
        assert steps.turns == ([len(steps.asked)] if (hook, does) != ("before_agent", "short-circuits") else [])
        assert made.result.steps == len(steps.asked) + len(made.result.handoffs)
        assert steps.after == (steps.asked or [1] * len(steps.after))


class After(Middleware):
    """Has nothing but after-parts."""

    def __init__(self, name: str, order: list[str]) -> None:
        self.name = name
        self.order = order

    async def after_model(self, state: Any, run: Any) -> None:
        self.order.append(f"{self.name} after_model")

    async def after_agent(self, state: Any, run: Any) -> None:
        self.order.append(f"{self.name} after_agent")


@rows
async def test_neighbours_that_have_only_an_after_part_run_from_the_last_to_the_first(
    hook: str, does: str, row: Row, tmp_path: Path
) -> None:
    made, names = Walked(tmp_path / "s.jsonl"), ["one", "two", "three"]
    made.more = [After(name, made.order) for name in names]
    await made.make("run", hook, row.act)
    for part in ("after_model", "after_agent"):
        passed = [mark.split()[0] for mark in made.order if mark.endswith(part) and mark.split()[0] in names]
        assert passed == names[::-1] * made.marks("inner").count(part)


class Transforms(Middleware):
    """Gives each model call a transform that does this with a token."""

    def __init__(self, does: Callable[[Token], Sequence[Token]]) -> None:
        self.name = "transforms"
        self.does = does

    def token_transform(self, request: ChatRequest) -> TokenTransform:
        return Transform(self.does)


class Transform(TokenTransform):
    def __init__(self, does: Callable[[Token], Sequence[Token]]) -> None:
        self.does = does

    def step(self, token: Token) -> Sequence[Token]:
        return self.does(token)


@pytest.mark.parametrize("does", [does for does, row in TOKENS.items() if isinstance(row, Heard)])
async def test_what_a_transform_does_is_heard_and_changes_neither_the_answer_nor_the_record(
    does: str, tmp_path: Path
) -> None:
    row = TOKENS[does]
    assert isinstance(row, Heard)
    plain, by_run, by_stream = [Walked(tmp_path / f"{name}.jsonl") for name in ("plain", "run", "stream")]
    await plain.make("stream", "", passes)
    for made, door in ((by_run, "run"), (by_stream, "stream")):
        made.more = [Transforms(row.step)]
        await made.make(door, "", passes)
    assert by_run.end == plain.end
    if row.fails is None:
        assert by_stream.end == plain.end
        said = by_stream.of(MessageDone)[-1].message.id
        assert "".join([event.text for event in by_stream.of(Text) if event.message_id == said]) == row.heard
        assert by_stream.order == plain.order
        assert [*read(by_stream.path).records()] == [*read(plain.path).records()]
    else:
        assert type(by_stream.error) is row.fails
        assert "raised by transforms.token_transform, in step()" in getattr(by_stream.error, "__notes__", [])
        assert verify(by_stream.path).state == "intact"
