"""A middleware is a class with hooks; what it keeps for a turn is its own."""

import asyncio
from typing import Any

import pytest

from agent.desks import pause
from handrail.agent import Agent, BuildError, FunctionModel, NameClash, ScriptedModel
from handrail.agent.kernel import ChatRequest, Middleware
from handrail.agent.kernel.middlewares import defines, layer_name
from handrail.agent.middleware import HoldRelease, TokenRedact
from handrail.filters import call

QUIET = FunctionModel(lambda request: "Hello.")


def layer(**methods: Any) -> Middleware:
    return type("Layer", (Middleware,), methods)()


async def passing(self: Any, request: Any, call_next: Any) -> Any:
    return await call_next(request)


async def short(self: Any, request: Any) -> Any:
    return None


async def long(self: Any, request: Any, call_next: Any, more: Any) -> Any:
    return None


def plain(self: Any, request: Any, call_next: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("methods", "found"),
    [
        ({"around_chats": passing}, "around_chats, which is no hook"),
        ({"before_tool": passing}, "before_tool, which is no hook"),
        ({"on_error": passing}, "on_error, which is no hook"),
        ({"wrap_tool": passing}, "wrap_tool, which is no hook"),
        ({"around_chat": short}, r"around_chat takes \(self, request, call_next\)"),
        ({"around_tool": long}, r"around_tool takes \(self, request, call_next\)"),
        ({"around_turn": plain}, "around_turn is not an async function"),
    ],
)
def test_a_hook_nobody_calls_or_of_a_wrong_shape_is_refused_naming_the_layer(methods: Any, found: str) -> None:
    with pytest.raises(BuildError, match=f"Layer.*{found}|Layer.{found}"):
        Agent("X", model=QUIET, middleware=[layer(**methods)])


def test_two_layers_of_one_name_are_refused_and_a_name_of_its_own_helps() -> None:
    with pytest.raises(NameClash, match="'Layer'"):
        Agent("X", model=QUIET, middleware=[layer(), layer()])
    named = layer(name="other")
    Agent("X", model=QUIET, middleware=[layer(), named])
    assert layer_name(named) == "other"


def hold(answer: bool = True) -> Middleware:
    return HoldRelease(lambda text: True, answer=answer)


def redact(name: str = "TokenRedact", answer: bool = True) -> Middleware:
    return TokenRedact("email", answer=answer, name=name)


@pytest.mark.parametrize(
    ("layers", "both"),
    [
        ([hold(), redact()], "HoldRelease and TokenRedact"),
        ([redact(), layer(), hold()], "TokenRedact and HoldRelease"),
        ([redact(), redact("more")], "TokenRedact and more"),
        ([layer(serves_answer=True), hold()], "Layer and HoldRelease"),
    ],
)
def test_two_layers_that_serve_the_answer_are_refused_naming_both(layers: list[Middleware], both: str) -> None:
    with pytest.raises(BuildError, match=f"{both} of X both serve the answer"):
        Agent("X", model=QUIET, middleware=layers)


async def test_a_layer_of_the_run_that_serves_the_answer_counts_as_well() -> None:
    agent = Agent("X", model=QUIET, middleware=[hold()])
    with pytest.raises(BuildError, match="TokenRedact and HoldRelease of X both serve the answer"):
        await agent.run("go", middleware=[redact()])
    assert (await agent.run("go", middleware=[redact(answer=False)])).output == "Hello."


def test_one_layer_that_serves_the_answer_may_stand_beside_others_that_do_not() -> None:
    layers = [hold(answer=False), redact(), redact("more", answer=False)]
    assert Agent("X", model=QUIET, middleware=layers).middleware == tuple(layers)


def test_the_class_in_place_of_a_value_is_refused() -> None:
    with pytest.raises(BuildError, match="made of Middleware values"):
        Agent("X", model=QUIET, middleware=[Middleware])  # type: ignore[list-item]  # what is tested


def test_only_the_hooks_that_a_class_defines_take_part() -> None:
    watching = layer(around_chat=passing)
    assert (defines(watching, "around_chat"), defines(watching, "around_tool")) == (True, False)
    assert "chat: Layer > chat" in Agent("X", model=QUIET, middleware=[watching]).describe()
    assert "tool: tool" in Agent("X", model=QUIET, middleware=[watching]).describe()


def test_a_hook_that_is_inherited_takes_part() -> None:
    base = type("Base", (Middleware,), {"around_chat": passing})
    assert defines(type("Child", (base,), {})(), "around_chat")


async def test_an_unknown_field_in_a_change_is_an_error() -> None:
    async def change(self: Any, request: ChatRequest, call_next: Any) -> Any:
        return await call_next(request.replace(mesages=()))

    with pytest.raises(TypeError, match="mesages"):
        await Agent("X", model=QUIET, middleware=[layer(around_chat=change)]).run("go")


async def test_a_request_cannot_be_changed_in_place() -> None:
    async def change(self: Any, request: ChatRequest, call_next: Any) -> Any:
        request.messages = ()  # type: ignore[misc]  # what is tested
        return await call_next(request)

    with pytest.raises(AttributeError, match="immutable"):
        await Agent("X", model=QUIET, middleware=[layer(around_chat=change)]).run("go")


class Counting(Middleware):
    """Counts its own calls of a turn, over all its hooks."""

    def __init__(self, name: str, seen: list[Any]) -> None:
        self.name = name
        self.seen = seen

    def init_state(self) -> dict[str, Any]:
        return {"n": 0}

    def _count(self, request: Any) -> None:
        request.state["n"] += 1
        self.seen.append((self.name, request.run.path, request.state["n"]))

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        self._count(request)
        return await call_next(request)

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        self._count(request)
        return await call_next(request)


async def ok() -> str:
    return "ok"


async def test_private_state_lives_for_the_turn_across_steps_and_hooks() -> None:
    seen: list[Any] = []
    model = ScriptedModel(call("ok"), "one", "two")
    agent = Agent("X", model=model, tools=[ok], middleware=[Counting("a", seen)])
    await agent.run("go")
    await agent.run("again")
    assert seen == [("a", "X", 1), ("a", "X", 2), ("a", "X", 3), ("a", "X", 1)]


async def test_private_state_is_invisible_to_other_layers_and_to_other_agents() -> None:
    seen: list[Any] = []
    shared = Counting("a", seen)
    model = ScriptedModel(call("transfer_to_b"), "done")
    b = Agent("B", model=model, middleware=[shared])
    await Agent("A", model=model, handoffs=[b], middleware=[shared, Counting("b", seen)]).run("go")
    assert seen == [("a", "A", 1), ("b", "A", 1), ("a", "B", 1)]


async def test_private_state_of_runs_at_once_is_never_mixed_up() -> None:
    seen: list[Any] = []

    async def answer(request: ChatRequest) -> Any:
        await pause()
        return call("ok") if len(request.messages) < 5 else "done"

    agent = Agent("X", model=FunctionModel(answer), tools=[ok], middleware=[Counting("a", seen)])
    await asyncio.gather(*[agent.run("go") for _ in range(20)])
    assert sorted(seen) == sorted([("a", "X", n) for n in range(1, 6)] * 20)


async def test_a_layer_without_private_state_is_told_how_to_have_some() -> None:
    async def look(self: Any, request: Any, call_next: Any) -> Any:
        uses = (lambda: request.state["n"], lambda: request.state.update(n=1), lambda: "n" in request.state)
        for use in (*uses, lambda: request.state.__setitem__("n", 1), lambda: list(request.state)):
            with pytest.raises(TypeError, match="init_state"):
                use()
        return await call_next(request)

    seen: list[Any] = []
    layers = [layer(around_chat=look, name="before"), Counting("a", seen), layer(around_chat=look, name="after")]
    await Agent("X", model=QUIET, middleware=layers).run("go")
    assert seen == [("a", "X", 1)]


async def test_a_retry_within_a_turn_keeps_the_private_state() -> None:
    seen: list[Any] = []

    async def twice(self: Any, request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    layers = [layer(around_chat=twice), Counting("a", seen)]
    await Agent("X", model=QUIET, middleware=layers).run("go")
    assert seen == [("a", "X", 1), ("a", "X", 2)]


async def test_each_attempt_is_counted_in_the_run_context() -> None:
    attempts: list[int] = []

    async def twice(self: Any, request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    model = FunctionModel(lambda request: attempts.append(request.run.attempt) or "Hello.")  # type: ignore[func-returns-value]  # it notes and answers
    result = await Agent("X", model=model, middleware=[layer(around_chat=twice)]).run("go")
    assert (attempts, result.steps, result.usage.requests) == ([1, 2], 1, 2)


async def test_a_hook_may_send_the_request_to_another_model() -> None:
    other = ScriptedModel("from the other", name="other")

    async def switch(self: Any, request: ChatRequest, call_next: Any) -> Any:
        return await call_next(request.replace(model=other))

    result = await Agent("X", model=ScriptedModel(), middleware=[layer(around_chat=switch)]).run("go")
    assert (result.output, list(result.usage_by_model)) == ("from the other", ["other"])


@pytest.mark.parametrize("name", [5, None, ["a"], {"a": 1}, b"x"])
def test_the_name_of_a_layer_is_text(name: Any) -> None:
    with pytest.raises(BuildError, match="name of the layer Layer in X is text"):
        Agent("X", model=QUIET, middleware=[layer(name=name)])
