"""What runs side by side, is cut off, or ends late, and what stands afterwards."""

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from agent.desks import hear, unlawful
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    Limits,
    Middleware,
    RunContext,
    RunError,
    ScriptedModel,
    fan_out,
    handoff,
    tool,
)
from handrail.agent.errors import StateError
from handrail.agent.kernel import append, around_chat, around_tool, before_model
from handrail.filters import Image, call, full
from handrail.sessions import ModelCallRecord, Session, read, verify

LONG = "word " * 1500


class Basket(BaseModel):
    things: list[int] = []


class Kept(TypedDict):
    tags: Annotated[set[str], operator.or_]
    basket: Basket


async def test_agents_that_stream_side_by_side_all_go_on_when_there_is_room() -> None:
    agents = [Agent(name, model=ScriptedModel(LONG)) for name in ("A", "B", "C")]
    boss = Agent("Boss", model=ScriptedModel(call("fan_out", call_id="c1", input="x"), "done"), tools=[fan_out(agents)])
    heard = await asyncio.wait_for(hear(boss, "go"), 20)
    assert heard.error is None
    assert heard.result is not None


async def test_every_view_that_a_crash_left_open_is_mended_before_a_model_sees_it(tmp_path: Path) -> None:
    begun = asyncio.Event()

    @tool
    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    def desk(first: ScriptedModel, second: ScriptedModel) -> Agent:
        return Agent("A", model=first, handoffs=[handoff(Agent("B", model=second, tools=[hang]), filter=full())])

    path, cut = tmp_path / "s", tmp_path / "cut"
    run = asyncio.ensure_future(
        desk(ScriptedModel(call("transfer_to_b")), ScriptedModel(call("hang", call_id="h1"))).run("go", session=path)
    )
    await begun.wait()
    cut.write_bytes(path.read_bytes())  # what a kill at this moment would leave
    run.cancel()
    await asyncio.wait([run])
    second = ScriptedModel("back again")
    agent = desk(ScriptedModel(call("transfer_to_b")), second)
    await agent.run("and now?", session=cut, start="self")
    assert unlawful(second.requests) == []
    assert verify(cut).state == "intact"


async def test_channels_come_back_as_their_types_in_the_next_run(tmp_path: Path) -> None:
    seen: list[Any] = []

    @before_model
    async def look(state: Any, run: Any) -> Any:
        seen.append((state.get("tags"), state.get("basket")))
        return {"tags": {"new"}, "basket": Basket(things=[1])}

    for _ in range(2):
        agent = Agent("A", model=ScriptedModel("x"), middleware=[look], channels=Kept)
        await agent.run("go", session=tmp_path / "s")
    assert seen == [(None, None), ({"new"}, Basket(things=[1]))]


async def test_what_the_state_gives_is_a_copy_whatever_it_is() -> None:
    @tool(side_effects="pure")
    async def reach(context: RunContext[None]) -> str:
        context.state["basket"].things.append(9)
        return "reached"

    given = Basket(things=[1])
    model = ScriptedModel([call("reach"), call("reach")], "done")
    result = await Agent("A", model=model, tools=[reach], channels=Kept).run("go", state={"basket": given})
    assert (result.state["basket"].things, given.things) == ([1], [1])


async def test_a_model_call_that_fails_by_whatever_error_is_counted_and_recorded(tmp_path: Path) -> None:
    def broken(request: Any) -> str:
        raise ValueError("bad")

    @around_chat
    async def again(request: Any, call_next: Any) -> Any:
        for _ in range(2):
            try:
                return await call_next(request)
            except ValueError:
                continue
        return await call_next(request)

    agent = Agent("A", model=FunctionModel(broken), middleware=[again])
    with pytest.raises(ValueError, match="bad"):
        await agent.run("go", session=tmp_path / "s")
    calls = [record for record in read(tmp_path / "s").records() if isinstance(record, ModelCallRecord)]
    assert [(record.error, record.attempt) for record in calls] == [
        ("ValueError", 1),
        ("ValueError", 2),
        ("ValueError", 3),
    ]
    assert Session.open(tmp_path / "s").usage.requests == 3


async def test_layers_that_ask_the_model_themselves_do_not_ask_each_other_without_end() -> None:
    class Asks(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            await request.run.ask_model(self, f"{self.name} asks", purpose="moderation")
            return await call_next(request)

    model = ScriptedModel(*["x"] * 9)
    await Agent("A", model=model, middleware=[Asks("one"), Asks("two")]).run("go")
    assert [request.messages[-1].text for request in model.requests] == [
        "two asks",
        "one asks",
        "one asks",
        "two asks",
        "go",
    ]


async def test_what_a_call_sets_and_adds_to_is_written_once() -> None:
    class Sets(Middleware):
        reducers = {"n": operator.add}  # noqa: RUF012  # nobody changes it

        def init_state(self) -> dict[str, Any]:
            return {"n": 0}

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            if request.call.id == "c1":
                request.state["n"] = 5
                request.state.add("n", 1)
            return await call_next(request)

        async def around_turn(self, request: Any, call_next: Any) -> Any:
            result = await call_next(request)
            assert request.state["n"] == 6
            return result

    @tool(side_effects="pure")
    async def ok() -> str:
        return "ok"

    for calls in ([call("ok", call_id="c1")], [call("ok", call_id="c1"), call("ok", call_id="c2")]):
        await Agent("A", model=ScriptedModel(calls, "done"), tools=[ok], middleware=[Sets()]).run("go")


async def test_a_call_that_failed_or_ended_hands_nothing_over() -> None:
    kept: list[RunContext[Any]] = []

    @tool(side_effects="pure")
    async def fails(context: RunContext[None]) -> str:
        kept.append(context)
        context.handoff("B")
        raise LookupError("not found")

    @tool(side_effects="pure")
    async def late() -> str:
        with pytest.raises(RunError, match="has ended"):
            kept[0].handoff("B")
        return "ok"

    b = Agent("B", model=ScriptedModel())
    model = ScriptedModel(call("fails"), call("late"), "done")
    result = await Agent("A", model=model, tools=[fails, late], handoffs=[b]).run("go")
    assert (result.agent, result.output) == ("A", "done")


async def test_of_several_calls_that_hand_over_the_first_in_call_order_counts() -> None:
    first_may_end = asyncio.Event()

    @tool(side_effects="pure")
    async def slow(context: RunContext[None]) -> str:
        await first_may_end.wait()
        context.handoff("B")
        return "ok"

    @tool(side_effects="pure")
    async def quick(context: RunContext[None]) -> str:
        context.handoff("C")
        first_may_end.set()
        return "ok"

    b, c = Agent("B", model=ScriptedModel("I am B.")), Agent("C", model=ScriptedModel())
    model = ScriptedModel([call("slow"), call("quick")])
    assert (await Agent("A", model=model, tools=[slow, quick], handoffs=[b, c]).run("go")).agent == "B"


async def test_a_picture_that_a_tool_gives_directly_is_the_answer() -> None:
    @tool(side_effects="pure", return_direct=True)
    async def draw() -> Image:
        return Image(url="https://example.org/a.png")

    result = await Agent("A", model=ScriptedModel(call("draw")), tools=[draw]).run("go")
    assert result.message is not None
    assert [type(part) for part in result.message.content] == [Image]


async def test_a_turn_that_is_entered_again_begins_without_circles() -> None:
    @tool(side_effects="pure")
    async def ok() -> str:
        return "ok"

    class Thrice(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            result = await call_next(request)
            for _ in range(2):
                result = await call_next(request.again(result, "Once more."))
            return result

    answers: list[Any] = [call("ok"), "done"] * 3
    model = ScriptedModel(*answers)
    agent = Agent("A", model=model, tools=[ok], middleware=[Thrice()])
    assert (await agent.run("go", limits=Limits(max_repeats=2))).output == "done"


async def test_hooks_that_append_step_after_step_cost_what_they_append(tmp_path: Path) -> None:
    from handrail.filters import user

    @before_model
    async def note(state: Any, run: Any) -> Any:
        return {"messages": append(user(f"note {run.step}"))}

    @tool(side_effects="pure")
    async def ok() -> str:
        return "ok"

    model = ScriptedModel(*[call("ok")] * 400, "done")
    agent = Agent("A", model=model, tools=[ok], middleware=[note], limits=Limits(max_steps=None))
    result = await agent.run("go", session=tmp_path / "s")
    assert [message.text for message in Session(tmp_path / "s").history("A")] == [m.text for m in result.messages]
    assert verify(tmp_path / "s").state == "intact"
    assert len(result.messages) == 1 + 401 + 2 * 400 + 1


async def test_broken_arguments_are_told_by_their_place_and_not_repeated() -> None:
    broken = call("ok", call_id="c1")
    broken = type(broken)("c1", "ok", '{"key": "sk-secret-123", ')

    @around_tool
    async def passes(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    @tool(side_effects="pure")
    async def ok() -> str:
        return "ok"

    for layers in ([], [passes]):
        result = await Agent("A", model=ScriptedModel(broken, "done"), tools=[ok], middleware=layers).run("go")
        [told] = [message.text for message in result.messages if message.role == "tool"]
        assert "sk-secret-123" not in told
        assert "at character 26 of 25" in told


@pytest.mark.parametrize("options", [{"limits": {}}, {"state": 7}, {"middleware": 7}, {"session": 3}])
async def test_options_of_a_run_that_are_of_another_kind_are_refused(options: Any) -> None:
    with pytest.raises(BuildError):
        await Agent("A", model=ScriptedModel()).run("go", **options)


async def test_own_model_calls_that_run_side_by_side_pass_the_layers_of_others_and_are_no_circle() -> None:
    passed: list[tuple[str, str]] = []

    class Moderates(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            if request.purpose == "moderation":
                passed.append((request.messages[-1].text, self.name))
            return await call_next(request)

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            if request.tool.name == self.name:
                await request.run.ask_model(self, f"may {self.name} run?", purpose="moderation")
            return await call_next(request)

    @tool(side_effects="pure")
    async def a() -> str:
        return "a"

    @tool(side_effects="pure")
    async def b() -> str:
        return "b"

    def model(request: Any) -> Any:
        said = request.messages[-1]
        return [call("a"), call("b")] if said.text == "go" else "fine"

    agent = Agent("X", model=FunctionModel(model), tools=[a, b], middleware=[Moderates("a"), Moderates("b")])
    assert (await agent.run("go")).output == "fine"
    assert sorted(passed) == [("may a run?", "b"), ("may b run?", "a")]


async def test_a_call_id_that_a_model_uses_again_hands_over_like_any_other() -> None:
    @tool(side_effects="pure")
    async def look(context: RunContext[None], go: bool = False) -> str:
        if go:
            context.handoff("B")
        return "looked"

    b = Agent("B", model=ScriptedModel("I am B."))
    model = ScriptedModel(call("look", call_id="c1"), call("look", call_id="c1", go=True))
    assert (await Agent("A", model=model, tools=[look], handoffs=[b]).run("go")).agent == "B"


async def test_what_calls_that_ended_added_to_a_memory_stays_when_a_neighbour_ends_the_run(tmp_path: Path) -> None:
    paid = asyncio.Event()

    class Quota(Middleware):
        scope = "session"
        reducers = {"n": operator.add}  # noqa: RUF012  # nobody changes it

        def init_state(self) -> dict[str, Any]:
            return {"n": 0}

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            request.state.add("n", 1)
            return response

    @tool
    async def pay() -> str:
        paid.set()
        return "paid"

    @tool
    async def breaks() -> str:
        await paid.wait()
        await asyncio.sleep(0)
        raise LookupError("gone")

    model = ScriptedModel([call("pay"), call("breaks")])
    agent = Agent("A", model=model, tools=[pay, breaks], middleware=[Quota()], tool_errors={"failed": "raise"})
    with pytest.raises(LookupError):
        await agent.run("go", session=tmp_path / "s")
    assert list(Session.open(tmp_path / "s").private_states.values()) == [{"n": 2}]


async def test_only_answers_of_the_turn_are_told_as_withdrawn_where_a_hook_edits_the_view() -> None:
    from handrail.agent.events import Discard
    from handrail.agent.kernel import remove

    @before_model
    async def forgets(state: Any, run: Any) -> Any:
        gone = [message.id for message in state.messages if message.role == "assistant"]
        return {"messages": remove(*gone)} if gone else None

    b = Agent("B", model=ScriptedModel("I am B."), middleware=[forgets])
    a = Agent("A", model=ScriptedModel(["I look.", call("transfer_to_b")]), handoffs=[handoff(b, filter=full())])
    heard = await hear(a, "go")
    assert heard.error is None
    assert heard.of(Discard) == []


async def test_tries_of_a_layer_and_of_a_tools_own_make_one_row_and_what_a_failed_one_asked_for_is_gone() -> None:
    tried: list[int] = []

    @around_tool
    async def twice(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    @tool(side_effects="pure", retries=2, retry_delay=0.0)
    async def shaky(context: RunContext[None]) -> str:
        tried.append(context.attempt)
        if len(tried) in (1, 2, 4):
            context.handoff("B")
            raise ConnectionError
        return "ok"

    b = Agent("B", model=ScriptedModel())
    model = ScriptedModel(call("shaky"), "done")
    result = await Agent("A", model=model, tools=[shaky], middleware=[twice], handoffs=[b]).run("go")
    assert (tried, result.agent, result.output) == ([1, 2, 3, 4, 5], "A", "done")


async def test_a_memory_that_cannot_be_kept_costs_no_other_layer_its_own(tmp_path: Path) -> None:
    class Remembers(Middleware):
        scope = "session"

        def __init__(self, name: str, value: Any) -> None:
            self.name = name
            self.value = value

        def init_state(self) -> dict[str, Any]:
            return {"held": 0}

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            request.state["held"] = self.value
            return await call_next(request)

    layers = [Remembers("bad", object()), Remembers("good", 7)]
    with pytest.raises(StateError, match="bad"):
        await Agent("A", model=ScriptedModel("x"), middleware=layers).run("go", session=tmp_path / "s")
    assert Session.open(tmp_path / "s").private_states == {("A", "good"): {"held": 7}}
