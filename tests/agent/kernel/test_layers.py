"""What a layer may ask and bring: its place among others, tools, instructions, deps, model calls of its own; and the
layers that a run is given."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent.desks import failure, hear, texts
from handrail.agent import Agent, BuildError, FunctionModel, NameClash, ScriptedModel, handoff, tool
from handrail.agent.errors import MissingDeps
from handrail.agent.events import MessageDone, Text, Told
from handrail.agent.kernel import Middleware, around_chat, around_tool, before_agent
from handrail.filters import assistant, call, tool_result, user
from handrail.sessions import ModelCallRecord, Session, Usage, read


def layer(name: str, **declared: Any) -> Middleware:
    """A layer that declares these."""
    made: Middleware = type(name, (Middleware,), declared)()
    return made


async def passing(request: Any, call_next: Any) -> Any:
    return await call_next(request)


QUIET = FunctionModel(lambda request: "Hello.")

CACHE, RETRY = layer("Cache", outside=["Retry"]), layer("Retry")
MEMORY, LOG = layer("Memory", inside=["Log"]), layer("Log")


@pytest.mark.parametrize(
    "layers", [[CACHE, RETRY], [CACHE], [RETRY], [LOG, MEMORY], [MEMORY], [LOG, CACHE, RETRY, MEMORY]]
)
def test_layers_that_stand_where_they_ask_to_are_taken(layers: list[Middleware]) -> None:
    assert Agent("A", model=QUIET, middleware=layers).middleware == tuple(layers)


@pytest.mark.parametrize(
    ("layers", "found"),
    [
        ([RETRY, CACHE], "Cache must stand outside Retry.*the list is Retry, Cache"),
        ([MEMORY, LOG], "Memory must stand inside Log.*the list is Memory, Log"),
        ([RETRY, LOG, CACHE], "Cache must stand outside Retry"),
    ],
)
def test_layers_in_a_wrong_order_are_refused_saying_which_goes_where(layers: list[Middleware], found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Agent("A", model=QUIET, middleware=layers)


async def test_the_order_holds_for_the_layers_of_a_run_too() -> None:
    with pytest.raises(BuildError, match="Cache must stand outside Retry"):
        await Agent("A", model=QUIET, middleware=[CACHE]).run("go", middleware=[RETRY])


@tool
def lamp() -> str:
    """Lights the lamp."""
    return "bright"


BUNDLE = layer("Lamps", tools=[lamp], instructions="Use the lamp when it is dark.")


async def test_a_layer_brings_tools_and_instructions_to_its_agent() -> None:
    model = ScriptedModel(call("lamp", call_id="c1"), "done")
    agent = Agent("A", model=model, instructions="Be brief.", middleware=[BUNDLE])
    result = await agent.run("go")
    assert texts(result.messages)[2] == "bright"
    assert model.requests[0].instructions == {"agent": "Be brief.", "Lamps": "Use the lamp when it is dark."}
    assert [spec.name for spec in model.requests[0].tools] == ["lamp"]
    assert "tool lamp" in agent.describe()


async def test_a_layer_of_a_run_brings_its_tools_to_every_agent_of_it() -> None:
    b = Agent("B", model=ScriptedModel(call("lamp", call_id="c2"), "done"))
    a = Agent("A", model=ScriptedModel(call("lamp", call_id="c1"), call("transfer_to_b", call_id="h1")), handoffs=[b])
    result = await a.run("go", middleware=[BUNDLE])
    assert [message.text for message in result.new_messages if message.name == "lamp"] == ["bright", "bright"]


def test_a_tool_that_a_layer_brings_under_a_name_that_is_taken_is_refused_naming_both() -> None:
    with pytest.raises(NameClash, match="'lamp'"):
        Agent("A", model=QUIET, tools=[lamp], middleware=[BUNDLE])
    with pytest.raises(NameClash, match="'Lamps'"):
        Agent("A", model=QUIET, instructions={"Lamps": "x"}, middleware=[BUNDLE])
    with pytest.raises(NameClash, match="'lamp'"):
        Agent("A", model=QUIET, middleware=[BUNDLE, layer("More", tools=[lamp])])


@pytest.mark.parametrize(
    ("brought", "found"),
    [({"tools": [lambda: 1]}, "which is no tool"), ({"instructions": 7}, "instructions are text")],
)
def test_what_a_layer_cannot_bring_is_refused(brought: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Agent("A", model=QUIET, middleware=[layer("Wrong", **brought)])


async def test_a_layer_of_a_run_cannot_bring_an_agent() -> None:
    brings = layer("Brings", tools=[Agent("Child", model=QUIET).to_tool()])
    with pytest.raises(BuildError, match="Brings is given to a run, so it cannot bring an agent"):
        await Agent("A", model=QUIET).run("go", middleware=[brings])


async def test_an_agent_that_a_layer_brings_is_one_of_the_reachable_ones() -> None:
    child = Agent("Child", model=ScriptedModel("helped"))
    model = ScriptedModel(call("child", call_id="k1", input="?"), "done")
    agent = Agent("A", model=model, middleware=[layer("Brings", tools=[child.to_tool()])])
    assert texts((await agent.run("go")).messages)[2] == "helped"


def seen(order: list[str], name: str) -> Middleware:
    async def mark(request: Any, call_next: Any) -> Any:
        order.append(f"{name} {request.run.path}")
        return await call_next(request)

    return around_chat(name=name)(mark)


async def test_the_layers_of_a_run_stand_outside_every_agents_own_and_pass_each_turn() -> None:
    order: list[str] = []
    child = Agent("Child", model=ScriptedModel("helped"), middleware=[seen(order, "child's")])
    b = Agent("B", model=ScriptedModel(call("child", call_id="k1", input="?"), "done"), tools=[child.to_tool()])
    a = Agent(
        "A", model=ScriptedModel(call("transfer_to_b", call_id="h1")), handoffs=[b], middleware=[seen(order, "own")]
    )
    await a.run("go", middleware=[seen(order, "run's")])
    assert order == ["run's A", "own A", "run's B", "run's B/Child@k1", "child's B/Child@k1", "run's B"]


async def test_the_layers_of_a_run_end_with_it_and_have_a_memory_in_each_turn() -> None:
    class Count(Middleware):
        def init_state(self) -> dict[str, Any]:
            return {"n": 0}

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            request.state["n"] += 1
            counts.append((request.run.agent, request.state["n"]))
            return await call_next(request)

    counts: list[Any] = []
    agent = Agent("A", model=ScriptedModel(call("lamp", call_id="c1"), "one", "two", "three"), tools=[lamp])
    counting = Count()
    await agent.run("go", middleware=[counting])
    await agent.run("go", middleware=[counting])
    await agent.run("go")
    assert counts == [("A", 1), ("A", 2), ("A", 1)]


async def test_a_layer_of_a_run_that_has_the_name_of_an_agents_own_is_refused_naming_both() -> None:
    agent = Agent("A", model=QUIET, middleware=[seen([], "mine")])
    with pytest.raises(NameClash, match="'mine'"):
        await agent.run("go", middleware=[seen([], "mine")])


REQUIRES = {"user": str, "limit": int | None, "anything": Any}


class Deps:
    """An application's own object."""

    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


@pytest.mark.parametrize("kind", [dict, Deps])
async def test_a_run_that_is_given_what_is_required_begins(kind: Any) -> None:
    agent = Agent("A", model=QUIET, middleware=[layer("Needs", requires=REQUIRES)])
    assert (await agent.run("go", deps=kind(user="ada", limit=None, anything=object()))).output == "Hello."


@pytest.mark.parametrize("kind", [dict, Deps])
@pytest.mark.parametrize(
    ("held", "name", "found"),
    [
        ({}, "user", "is not there"),
        ({"user": 7, "limit": 1, "anything": 1}, "user", "is int, not str"),
        ({"user": "ada", "limit": "1", "anything": 1}, "limit", "is str, not int"),
    ],
)
async def test_what_is_missing_or_of_another_type_is_named_before_any_request(
    kind: Any, held: Mapping[str, Any], name: str, found: str
) -> None:
    model = ScriptedModel()
    error = await failure(
        Agent("A", model=model, middleware=[layer("Needs", requires=REQUIRES)]), "go", deps=kind(**held)
    )
    assert isinstance(error, MissingDeps)
    assert (error.owner, error.name, model.requests) == ("Needs", name, [])
    assert found in str(error)


async def test_an_agent_may_require_deps_too_and_so_may_one_that_is_handed_to() -> None:
    b = Agent("B", model=QUIET, requires={"account": str})
    a = Agent("A", model=ScriptedModel(call("transfer_to_b", call_id="h1")), handoffs=[handoff(b)])
    error = await failure(a, "go", deps={})
    assert isinstance(error, MissingDeps)
    assert (error.owner, error.name) == ("B", "account")


async def test_an_agent_that_is_given_deps_of_its_own_is_not_held_to_those_of_who_asks_it() -> None:
    b = Agent("B", model=QUIET, requires={"account": str})
    c = Agent("C", model=QUIET, requires={"account": str})
    model = ScriptedModel("done", call("transfer_to_b", call_id="h1"))
    handed, asked = handoff(b, deps=lambda deps: {"account": "7"}), c.to_tool(deps=lambda deps: {"account": "7"})
    a = Agent("A", model=model, handoffs=[handed], tools=[asked])
    assert [(await a.run("go", deps={})).output for _ in "12"] == ["done", "Hello."]


class Asks(Middleware):
    """Asks the model itself before the first answer."""

    def __init__(self, what: Any = "Sum it up.", **options: Any) -> None:
        self.what, self.options = what, options
        self.heard: list[Any] = []

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        if request.run.step == 1:
            self.heard.append(await request.run.ask_model(self, self.what, **self.options))
        return await call_next(request)


async def test_a_layers_own_call_passes_the_other_layers_and_not_itself() -> None:
    order: list[str] = []
    model = ScriptedModel("a summary", "done")
    asks = Asks()
    agent = Agent("A", model=model, tools=[lamp], middleware=[seen(order, "1"), asks, seen(order, "3")])
    result = await agent.run("go")
    assert (order, result.output) == (["1 A", "1 A", "3 A", "3 A"], "done")
    assert [response.message.text for response in asks.heard] == ["a summary"]
    assert [(request.purpose, texts(request.messages)) for request in model.requests] == [
        ("summary", ["Sum it up."]),
        ("answer", ["go"]),
    ]
    assert (list(model.requests[0].tools), model.requests[0].instructions) == ([], {})


async def test_a_layers_own_call_is_counted_and_recorded_and_no_part_of_view_or_stream(tmp_path: Any) -> None:
    path = tmp_path / "s.jsonl"
    model = ScriptedModel("a summary", "done")
    heard = await hear(
        Agent("A", model=model, middleware=[Asks(purpose="selection", instructions="Pick.")]), "go", session=path
    )
    assert heard.result is not None
    assert (heard.result.usage.requests, heard.result.steps) == (2, 1)
    assert ("".join([event.text for event in heard.of(Text)]), len(heard.of(MessageDone))) == ("done", 1)
    records = [each for each in read(path).records() if isinstance(each, ModelCallRecord)]
    assert [(each.purpose, each.step, each.attempt) for each in records] == [("selection", 1, 1), ("answer", 1, 1)]
    assert texts(Session(path).history("A")) == ["go", "done"]
    assert model.requests[0].instructions == {"layer": "Pick."}


async def test_a_layers_own_call_may_go_to_another_model_and_its_messages_are_made_lawful() -> None:
    other = ScriptedModel("short", name="other")
    torn = [user("go"), assistant(call("lamp", call_id="c1")), user("and?"), tool_result("c9", "x")]
    asks = Asks(torn, model=other)
    result = await Agent("A", model=ScriptedModel("done"), middleware=[asks]).run("go")
    assert texts(other.requests[0].messages) == ["go", "and?"]
    assert result.usage_by_model["other"] == Usage(requests=1)


async def test_a_hook_of_state_may_ask_too() -> None:
    class Sums(Middleware):
        async def before_model(self, state: Any, run: Any) -> Any:
            response = await run.ask_model(self, state.messages, purpose="moderation")
            return {"messages": user(response.message.text)}

    model = ScriptedModel("harmless", "done")
    result = await Agent("A", model=model, middleware=[Sums()]).run("go")
    assert texts(result.messages) == ["go", "harmless", "done"]


async def test_a_call_that_is_no_layers_own_or_is_for_the_answer_is_refused() -> None:
    async def ask(request: Any, call_next: Any) -> Any:
        with pytest.raises(BuildError, match="one of summary, selection, moderation, not 'answer'"):
            await request.run.ask_model(asks, "x", purpose="answer")
        await request.run.ask_model(layer("Else"), "x")

    asks = around_chat(ask)
    with pytest.raises(BuildError, match="Else is no layer of A"):
        await Agent("A", model=QUIET, middleware=[asks]).run("go")


async def test_a_layer_may_tell_who_listens_something_of_its_own() -> None:
    async def tells(request: Any, call_next: Any) -> Any:
        request.run.tell("looked", at=request.tool.name)
        return await call_next(request)

    agent = Agent(
        "A", model=ScriptedModel(call("lamp", call_id="c1"), "done"), tools=[lamp], middleware=[around_tool(tells)]
    )
    (told,) = (await hear(agent, "go")).of(Told)
    assert (told.name, told.data, told.path) == ("looked", {"at": "lamp"}, "A")
    assert "looked" in str(told)


async def test_a_decorator_takes_what_a_class_declares_and_refuses_what_it_does_not_know() -> None:
    @before_agent(name="greets", requires={"user": str}, tools=[lamp], instructions="Greet.")
    async def greets(state: Any, run: Any) -> Any:
        """Greets."""
        return {"messages": user(f"I am {run.deps['user']}")}

    assert (greets.name, greets.__doc__) == ("greets", "Greets.")
    result = await Agent("A", model=QUIET, middleware=[greets]).run("go", deps={"user": "Ada"})
    assert texts(result.messages) == ["go", "I am Ada", "Hello."]
    with pytest.raises(BuildError, match="knows no option 'nam'"):
        before_agent(nam="x")(passing)
    with pytest.raises(BuildError, match="makes a layer of a function"):
        before_agent(7)  # type: ignore[call-overload]  # what is tested
