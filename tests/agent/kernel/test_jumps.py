"""A jump takes effect where it is returned: what is inside is left out, what is outside ends as ever."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agent.desks import answers, failure, hear, result_of, roles, texts
from handrail.agent import Agent, BuildError, InvalidAnswer, LimitExceeded, Limits, Output, ScriptedModel, handoff
from handrail.agent.errors import InvalidJump
from handrail.agent.events import StepEnd, StepStart
from handrail.agent.kernel import Middleware, after_model, append, around_chat, around_turn, jump
from handrail.filters import ToolCall, assistant, breaches, call, user
from handrail.sessions import Session, verify

HOOKS = ("before_agent", "before_model", "after_model", "after_agent")
TARGETS = ("end", "tools", "model")
Jumps = Callable[[Any, Any], Awaitable[Any]]


class Watch(Middleware):
    """Notes the state hooks as they are passed; one of them may jump, once."""

    def __init__(self, name: str, order: list[str], hook: str = "", jumps: Any = None, *, to: Any = TARGETS) -> None:
        self.name = name
        self.order = order
        self.hook = hook
        self.does = jumps
        self.jumps = {hook: to} if hook else {}

    async def _note(self, hook: str, state: Any, run: Any) -> Any:
        self.order.append(f"{self.name} {hook}")
        return await self.does(state, run) if hook == self.hook else None

    async def before_agent(self, state: Any, run: Any) -> Any:
        return await self._note("before_agent", state, run)

    async def before_model(self, state: Any, run: Any) -> Any:
        return await self._note("before_model", state, run)

    async def after_model(self, state: Any, run: Any) -> Any:
        return await self._note("after_model", state, run)

    async def after_agent(self, state: Any, run: Any) -> Any:
        return await self._note("after_agent", state, run)


def once(what: Any) -> Jumps:
    """Returns this the first time it is asked."""
    left = [what]

    async def does(state: Any, run: Any) -> Any:
        return left.pop() if left else None

    return does


async def ok() -> str:
    return "ok"


def desk(model: Any, layer: Middleware, order: list[str], **options: Any) -> Agent:
    """An agent with a tool, and a layer between two that watch."""
    return Agent("A", model=model, tools=[ok], middleware=[Watch("1", order), layer, Watch("3", order)], **options)


def short(order: list[str]) -> str:
    """The order, short: `1ba` is the first layer's before_agent, `3am` the third's after_model."""
    return " ".join([f"{each[0]}{each[2]}{each.split('_')[1][0]}" for each in order])


BROUGHT = append(assistant(call("ok", call_id="c0")))
START, ASKED = "1ba 2ba 3ba", "1bm 2bm 3bm 3am 2am 1am"
END = "3aa 2aa 1aa"

# The script is a call and then an answer. What a jump leads to: the order of all hooks, what the model was asked (by
# the roles of its messages), and the run's answer.
TABLE: dict[tuple[str, str], tuple[Any, str, list[str], str]] = {
    ("before_agent", "end"): (jump("end"), "1ba 2ba 2aa 1aa", [], ""),
    ("before_agent", "model"): (jump("model"), f"1ba 2ba {ASKED} {ASKED} 2aa 1aa", ["u", "uat"], "done"),
    ("before_agent", "tools"): (
        jump("tools", {"messages": BROUGHT}),
        f"1ba 2ba {ASKED} {ASKED} 2aa 1aa",
        ["uat", "uatat"],
        "done",
    ),
    ("before_model", "end"): (jump("end"), f"{START} 1bm 2bm 1am {END}", [], ""),
    ("before_model", "model"): (
        jump("model"),
        f"{START} 1bm 2bm 1am {ASKED} {ASKED} {END}",
        ["u", "uat"],
        "done",
    ),
    ("before_model", "tools"): (
        jump("tools", {"messages": BROUGHT}),
        f"{START} 1bm 2bm 1am {ASKED} {ASKED} {END}",
        ["uat", "uatat"],
        "done",
    ),
    ("after_model", "end"): (jump("end"), f"{START} {ASKED} {END}", ["u"], ""),
    ("after_model", "model"): (jump("model"), f"{START} {ASKED} {ASKED} {END}", ["u", "uat"], "done"),
    ("after_model", "tools"): (jump("tools"), f"{START} {ASKED} {ASKED} {END}", ["u", "uat"], "done"),
    ("after_agent", "end"): (jump("end"), f"{START} {ASKED} {ASKED} {END}", ["u", "uat"], "done"),
    ("after_agent", "model"): (
        jump("model", {"messages": user("Sure?")}),
        f"{START} {ASKED} {ASKED} 3aa 2aa {ASKED} 1aa",
        ["u", "uat", "uatau"],
        "more",
    ),
    ("after_agent", "tools"): (
        jump("tools", {"messages": BROUGHT}),
        f"{START} {ASKED} {ASKED} 3aa 2aa {ASKED} 1aa",
        ["u", "uat", "uataat"],
        "more",
    ),
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("to", TARGETS)
async def test_a_jump_from_any_hook_to_anywhere_takes_effect_where_it_is_returned(
    hook: str, to: str, tmp_path: Any
) -> None:
    what, order, asked, says = TABLE[hook, to]
    seen: list[str] = []
    model = ScriptedModel(call("ok", call_id="c1"), "done", "more")
    session = Session(tmp_path / "jump.jsonl")
    heard = await hear(desk(model, Watch("2", seen, hook, once(what)), seen), "go", session=session)
    assert heard.error is None
    assert heard.result is not None
    assert short(seen) == order
    assert [roles(request.messages) for request in model.requests] == asked
    assert (heard.result.output, heard.result.status, heard.result.steps) == (says, "completed", len(asked))
    assert breaches(heard.result.messages) == []
    assert len(heard.of(StepStart)) == len(heard.of(StepEnd))
    session.close()
    assert verify(session.path).state == "intact"
    assert Session(session.path).history("A") == heard.result.messages


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("to", TARGETS)
async def test_a_jump_that_its_layer_does_not_declare_is_an_error_that_names_both(hook: str, to: str) -> None:
    others = [target for target in TARGETS if target != to]
    model = ScriptedModel(call("ok", call_id="c1"), "done")
    error = await failure(desk(model, Watch("mine", [], hook, once(jump(to)), to=others), []), "go")  # type: ignore[arg-type]  # one of the targets
    assert type(error) is InvalidJump
    assert f"mine.{hook} jumps to {to!r}" in str(error)
    assert ", ".join(others) in str(error)
    assert breaches(error.messages) == []


@pytest.mark.parametrize("hook", HOOKS)
async def test_a_jump_to_tools_where_no_call_is_open_is_an_error(hook: str) -> None:
    model = ScriptedModel("done")
    error = await failure(desk(model, Watch("2", [], hook, once(jump("tools"))), []), "go")
    assert type(error) is InvalidJump
    assert "no call" in str(error)


@pytest.mark.parametrize("hook", HOOKS)
async def test_an_end_from_any_hook_passes_through_after_agent(hook: str) -> None:
    order: list[str] = []
    model = ScriptedModel(call("ok", call_id="c1"), "done")
    await desk(model, Watch("2", order, hook, once(jump("end"))), order).run("go")
    assert short(order).endswith("2aa 1aa")


@pytest.mark.parametrize("to", ["end", "model"])
async def test_a_jump_past_open_calls_answers_them_with_not_run(to: Any) -> None:
    model = ScriptedModel([call("ok", call_id="c1"), call("ok", call_id="c2")], "done")
    result = await desk(model, Watch("2", [], "after_model", once(jump(to))), []).run("go")
    assert [text for _, text in answers(result.messages)] == ["Not run: the turn went on without it."] * 2
    assert result_of(result.messages, "c1").synthetic
    assert result_of(result.messages, "c2").is_error


async def test_the_calls_that_a_hook_brings_run_as_those_of_a_model_do() -> None:
    model = ScriptedModel("done")
    result = await desk(model, Watch("2", [], "before_model", once(jump("tools", {"messages": BROUGHT}))), []).run("go")
    assert (answers(result.messages), result.output, result.steps) == ([("c0", "ok")], "done", 1)


async def test_an_inner_jump_is_overruled_by_a_jump_of_a_layer_outside_it() -> None:
    order: list[str] = []
    outer = Watch("1", order, "after_model", once(jump("end")))
    inner = Watch("2", order, "after_model", once(jump("model")))
    agent = Agent("A", model=ScriptedModel("first", "second"), middleware=[outer, inner])
    assert (await agent.run("go")).output == "first"


async def again(state: Any, run: Any) -> Any:
    return jump("model")


async def bring(state: Any, run: Any) -> Any:
    return jump("tools", {"messages": append(assistant(call("ok", call_id=f"c{len(state.messages)}")))})


@pytest.mark.parametrize(("hook", "does"), [("before_model", again), ("after_model", again), ("before_model", bring)])
async def test_jumps_in_a_circle_are_bounded_by_the_limit_on_steps(hook: str, does: Jumps) -> None:
    model = ScriptedModel(*["round"] * 5)
    error = await failure(desk(model, Watch("2", [], hook, does), []), "go", limits=Limits(max_steps=5))
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.value, breaches(error.messages)) == ("max_steps", 5, [])


@pytest.mark.parametrize("hook", ["after_model", "after_agent"])
async def test_what_a_jump_writes_is_written(hook: str) -> None:
    model = ScriptedModel("first", "second")
    what = jump("model", {"messages": [user("Say it again.")]})
    result = await desk(model, Watch("2", [], hook, once(what)), []).run("go")
    assert texts(result.messages) == ["go", "first", "Say it again.", "second"]


@pytest.mark.parametrize("hook", ["before_agent", "before_model", "after_model"])
async def test_a_hook_may_hand_over_in_place_of_going_on(hook: str) -> None:
    async def route(state: Any, run: Any) -> Any:
        run.handoff("B", reason="It is for you.")
        return jump("end")

    order: list[str] = []
    b = Agent("B", model=ScriptedModel("B is here"))
    a = desk(ScriptedModel("hm"), Watch("2", order, hook, route), order, handoffs=[handoff(b)])
    result = await a.run("go")
    assert (result.output, result.agent, len(result.handoffs)) == ("B is here", "B", 1)
    assert short(order).endswith("2aa 1aa")


async def test_a_handoff_by_code_that_nothing_takes_up_any_more_is_refused() -> None:
    async def late(state: Any, run: Any) -> Any:
        run.handoff("B")

    b = Agent("B", model=ScriptedModel())
    a = desk(ScriptedModel("done"), Watch("2", [], "after_agent", late), [], handoffs=[handoff(b)])
    error = await failure(a, "go")
    assert "nothing takes it up" in str(error)


async def test_after_a_handoff_no_hook_can_go_on_with_the_turn() -> None:
    b = Agent("B", model=ScriptedModel())
    layer = Watch("2", [], "after_agent", once(jump("model")))
    a = desk(ScriptedModel(call("transfer_to_b", call_id="h1")), layer, [], handoffs=[handoff(b)])
    error = await failure(a, "go")
    assert type(error) is InvalidAnswer
    assert "after it handed over" in str(error)


def test_a_jump_to_where_there_is_nothing_is_refused_when_it_is_made() -> None:
    with pytest.raises(BuildError, match="one of end, tools, model, not 'start'"):
        jump("start")  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"around_chat": ["end"]}, "only these hooks jump"),
        ({"before_model": ["nowhere"]}, "'nowhere'|not nowhere"),
        ({"before_model": "end"}, "a list of"),
    ],
)
def test_a_declaration_of_jumps_that_cannot_be_is_refused_when_the_agent_is_made(declared: Any, found: str) -> None:
    layer = type("Layer", (Middleware,), {"jumps": declared})()
    with pytest.raises(BuildError, match=found):
        Agent("A", model=ScriptedModel(), middleware=[layer])


async def test_a_call_of_a_hooks_own_may_be_one_that_hands_over() -> None:
    b = Agent("B", model=ScriptedModel("B is here"))
    brought = append(assistant(ToolCall("h0", "transfer_to_b")))
    layer = Watch("2", [], "before_model", once(jump("tools", {"messages": brought})))
    result = await desk(ScriptedModel(), layer, [], handoffs=[handoff(b)]).run("go")
    assert (result.agent, texts(result.handoffs[0].seed)) == ("B", ["go"])


@pytest.mark.parametrize("hook", ["before_agent", "after_agent"])
async def test_what_a_layer_around_the_turn_adds_on_the_way_to_the_tools_stands_before_the_calls(hook: str) -> None:
    async def adds(request: Any, call_next: Any) -> Any:
        return await call_next(request.replace(messages=(*request.messages, user("more"))))

    bringing = Watch("2", [], hook, once(jump("tools", {"messages": BROUGHT})))
    layers = [bringing, around_turn(adds)]
    agent = Agent("A", model=ScriptedModel("one", "two"), tools=[ok], middleware=layers)
    result = await agent.run("go")
    assert (answers(result.messages), breaches(result.messages)) == ([("c0", "ok")], [])
    assert "more" in texts(result.messages)


def after(name: str, order: list[str], update: Any = None) -> Middleware:
    """A layer with nothing but an after-part, which returns this."""

    async def does(state: Any, run: Any) -> Any:
        order.append(name)
        return update

    made: Middleware = after_model(name=name, jumps=["end"])(does)
    return made


async def test_neighbours_that_have_only_an_after_part_run_from_the_last_to_the_first() -> None:
    order: list[str] = []
    layers = [after("1", order), after("2", order), after("3", order)]
    await Agent("A", model=ScriptedModel("done"), middleware=layers).run("go")
    assert order == ["3", "2", "1"]


MORE = {"messages": user("More?")}


@pytest.mark.parametrize("neighbours", [True, False], ids=["neighbours", "around one another"])
async def test_an_update_of_a_layer_outside_keeps_the_jump_of_the_one_inside(neighbours: bool) -> None:
    async def adds(state: Any, run: Any) -> Any:
        return MORE

    outer = after("1", [], MORE) if neighbours else Watch("1", [], "after_model", adds)
    agent = Agent(
        "A", model=ScriptedModel(call("ok", call_id="c1")), tools=[ok], middleware=[outer, after("2", [], jump("end"))]
    )
    result = await agent.run("go")
    assert (texts(result.messages)[:2], roles(result.messages)) == (["go", "More?"], "uuat")
    assert answers(result.messages) == [("c1", "Not run: the turn went on without it.")]


async def test_a_jump_past_the_model_is_no_step_of_the_turn_or_its_hooks() -> None:
    seen: list[int] = []

    @around_chat
    async def look(request: Any, call_next: Any) -> Any:
        seen.append(request.run.step)
        return await call_next(request)

    bringing = Watch("2", [], "before_model", once(jump("tools", {"messages": BROUGHT})))
    model = ScriptedModel(call("ok", call_id="c1"), "done")
    result = await Agent("A", model=model, tools=[ok], middleware=[bringing, look]).run("go")
    assert (seen, result.steps) == ([1, 2], 2)


async def test_an_agent_with_an_output_type_goes_on_where_a_hook_jumps_to_the_model() -> None:
    layer = Watch("2", [], "after_model", once(jump("model")))
    model = ScriptedModel("Let me think.", call("final_answer", call_id="f1", value=7))
    agent = Agent("A", model=model, output_type=Output(int, retries=0), middleware=[layer])
    result = await agent.run("go")
    assert (result.output, result.verdict.attempts) == (7, 1)  # type: ignore[union-attr]
    assert texts(model.requests[1].messages) == ["go", "Let me think."]
