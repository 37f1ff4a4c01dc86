"""An agent as a tool is called and returns; all it costs, does and says is its caller's too."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, hear, ids, pause, requests, result_of, roles, tasks, texts, unlawful
from handrail.agent import (
    Agent,
    FunctionModel,
    Limits,
    ModelRefused,
    RunContext,
    ScriptedModel,
    UnfitName,
    handoff,
    to_tool,
)
from handrail.agent.events import Event, HandoffEnd, RunEnd, Text, ToolEnd, ToolStart, TurnEnd, TurnStart
from handrail.agent.kernel import ChatRequest, Middleware, TurnResult
from handrail.agent.models import ChatResponse
from handrail.filters import (
    FilterFailed,
    Reasoning,
    ToolCall,
    assistant,
    breaches,
    call,
    default_handoff_filter,
    full,
    last_user,
    none,
    seal,
    user,
)
from handrail.sessions import Session, Usage, verify


def asks(*names: str, **options: Any) -> ChatResponse:
    calls = [call(name, call_id=f"t{number}", input=f"for {name}") for number, name in enumerate(names, 1)]
    return ChatResponse(assistant(calls), **options)


def boss(model: Any, *children: Agent, **options: Any) -> Agent:
    return Agent("Boss", model=model, tools=[child.to_tool(**options) for child in children])


def test_an_agent_becomes_a_tool_by_method_and_by_function_alike() -> None:
    child = Agent("Re Search", model=ScriptedModel(), description="Looks things up.")
    made, same = child.to_tool(), to_tool(child)
    assert (made.name, made.filter, made.returns) == ("re_search", seal(default_handoff_filter()), seal(full()))
    assert (same.name, same.filter, same.description) == (made.name, made.filter, made.description)
    assert "Looks things up." in made.description
    assert made.prepare().spec.parameters["required"] == ["input"]
    with pytest.raises(UnfitName):
        child.to_tool(name="no good")


async def test_a_childs_first_request_is_what_its_filter_let_through_and_then_the_input() -> None:
    asked = [user("one", id="m1"), assistant(Reasoning("hm"), "two", id="m2"), user("three", id="m3")]
    for filter, seen in ((full(), ["one", "two", "three"]), (last_user(), ["three"]), (none(), [])):
        child = ScriptedModel("fine")
        agent = boss(ScriptedModel(asks("child"), "done"), Agent("Child", model=child), filter=filter)
        await agent.run(asked)
        (request,) = child.requests
        assert texts(request.messages) == [*seen, "for child"]
        assert request.messages[-1].role == "user"
        assert unlawful([request]) == []
        assert not any(isinstance(part, Reasoning) for message in request.messages for part in message.content)


async def test_neither_the_call_nor_its_siblings_reach_the_child() -> None:
    async def ok() -> str:
        return "ok"

    child = ScriptedModel("fine")
    calls = [call("ok", call_id="c1"), call("child", call_id="t1", input="x"), call("ok", call_id="c2")]
    model = ScriptedModel(["I ask.", *calls], "done")
    agent = Agent("Boss", model=model, tools=[ok, Agent("Child", model=child).to_tool(filter=full())])
    result = await agent.run("go")
    assert texts(child.requests[0].messages) == ["go", "I ask.", "x"]
    assert answers(result.messages) == [("c1", "ok"), ("t1", "fine"), ("c2", "ok")]


async def test_the_callers_view_holds_the_call_and_its_answer_and_nothing_of_the_child() -> None:
    child = Agent("Child", instructions="You are Child.", model=ScriptedModel([Reasoning("hm"), "fine"]))
    result = await boss(ScriptedModel(asks("child"), "done"), child).run("go")
    assert (roles(result.messages), texts(result.messages)) == ("uata", ["go", "", "fine", "done"])
    assert result.new_messages == tuple(result.messages)


async def test_two_calls_of_one_child_know_nothing_of_each_other() -> None:
    child = ScriptedModel("first", "second")
    model = ScriptedModel(asks("child"), asks("child"), "done")
    result = await boss(model, Agent("Child", model=child), filter=none()).run("go")
    assert [texts(request.messages) for request in child.requests] == [["for child"], ["for child"]]
    assert [text for _, text in answers(result.messages)] == ["first", "second"]


async def test_what_a_child_costs_is_its_callers_once_also_when_it_fails() -> None:
    helper = Agent("Helper", model=ScriptedModel(ChatResponse(assistant("fine"), Usage(50, 5)), name="m2"))
    broken = Agent("Broken", model=ScriptedModel(ModelRefused("400", spent=Usage(30, 3)), name="m2"))
    model = ScriptedModel(
        asks("helper", "broken", usage=Usage(100, 10)), ChatResponse(assistant("done"), Usage(160, 8)), name="m1"
    )
    result = await boss(model, helper, broken).run("go")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.requests) == (340, 26, 4)
    spent = {name: (usage.input_tokens, usage.output_tokens) for name, usage in result.usage_by_model.items()}
    assert spent == {"m1": (260, 18), "m2": (80, 8)}


async def test_a_child_that_fails_is_a_tool_error_never_an_empty_success() -> None:
    broken = Agent("Broken", model=ScriptedModel(ModelRefused("no credit")))
    result = await boss(ScriptedModel(asks("broken"), "done"), broken).run("go")
    answer = result_of(result.messages, "t1")
    assert (answer.is_error, answer.text) == (True, "The agent Broken failed: ModelRefused: no credit")


async def test_an_answer_of_nothing_is_said_in_words() -> None:
    for silent in ("", [Reasoning("hm")]):
        result = await boss(ScriptedModel(asks("child"), "done"), Agent("Child", model=ScriptedModel(silent))).run("go")
        assert answers(result.messages) == [("t1", "The agent gave no answer.")]


async def test_what_comes_back_passes_the_filter_of_the_way_back() -> None:
    def shout(history: Any) -> Any:
        return [message.replace(content=message.text.upper()) for message in history]

    def gone(history: Any) -> Any:
        return ()

    for returns, said in (
        (shout, "FINE"),
        (gone, "The agent answered, and its answer may not cross."),
        (full(), "fine"),
    ):
        child = Agent("Child", model=ScriptedModel("fine<think>secret</think>"))
        result = await boss(ScriptedModel(asks("child"), "done"), child, returns=returns).run("go")
        assert answers(result.messages) == [("t1", said)]


def raises(history: Any) -> Any:
    raise LookupError("no such key")


@pytest.mark.parametrize("edge", ["filter", "returns"])
async def test_a_filter_that_fails_at_a_childs_edge_ends_the_run(edge: str) -> None:
    child = Agent("Child", model=ScriptedModel("fine"))
    with pytest.raises(FilterFailed, match="no such key"):
        await boss(ScriptedModel(asks("child"), "done"), child, **{edge: raises}).run("go")


async def test_with_nothing_to_hand_over_the_caller_is_told_and_the_child_does_not_start() -> None:
    child = ScriptedModel()
    model = ScriptedModel(call("child", call_id="t1", input=""), "done")
    result = await boss(model, Agent("Child", model=child), filter=none()).run("go")
    assert (result_of(result.messages, "t1").is_error, requests(child)) == (True, [])


@pytest.mark.parametrize("arguments", ["", "{}", '{"input": 7}', '{"input": "x", "more": 1}', "[]", "{"])
async def test_a_childs_arguments_are_one_string(arguments: str) -> None:
    child = ScriptedModel()
    model = ScriptedModel(ToolCall("t1", "child", arguments), "done")
    result = await boss(model, Agent("Child", model=child)).run("go")
    assert (result_of(result.messages, "t1").is_error, requests(child)) == (True, [])


async def test_deps_reach_the_childs_tools() -> None:
    async def who(context: RunContext[str]) -> str:
        return f"{context.deps} {context.path} {context.call_id}"

    child = Agent(
        "Child", model=ScriptedModel(call("who", call_id="c1"), lambda asked: asked.messages[-1].text), tools=[who]
    )
    result = await boss(ScriptedModel(asks("child"), "done"), child).run("go", deps="deps")
    assert answers(result.messages) == [("t1", "deps Boss/Child@t1 c1")]


async def test_cancelling_the_caller_cancels_every_child_and_its_tools_and_waits_for_them() -> None:
    ticks: list[str] = []
    writing = [asyncio.Event(), asyncio.Event()]

    async def slow_write(context: RunContext[None]) -> None:
        writing["W2" in context.path].set()
        try:
            await asyncio.Event().wait()
        finally:
            await pause()
            ticks.append(context.path)

    models = [ScriptedModel(call("slow_write", call_id="c1")) for _ in "12"]
    workers = [Agent(f"W{n}", model=model, tools=[slow_write]) for n, model in enumerate(models, 1)]
    model = ScriptedModel(asks("w1", "w2"))
    kept: list[Any] = []

    class Keep(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            try:
                return await call_next(request)
            finally:
                kept.append(request.run.messages)

    agent = Agent("Boss", model=model, tools=[each.to_tool() for each in workers], middleware=[Keep()])
    running = asyncio.create_task(agent.run("go"))
    await asyncio.gather(*[event.wait() for event in writing])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(ticks) == ["Boss/W1@t1", "Boss/W2@t2"]
    assert (tasks(), breaches(kept[0]), len(requests(model, *models))) == (set(), [], 3)


async def test_a_childs_words_carry_its_path_and_the_joined_text_of_the_caller_is_the_callers_alone() -> None:
    workers = [Agent("W1", model=ScriptedModel("o n e")), Agent("W2", model=ScriptedModel("tw o"))]
    calls = [call("w1", call_id="t1", input="p"), call("w2", call_id="t2", input="q")]
    heard = await hear(boss(ScriptedModel(["I ask.", *calls], "one two"), *workers), "go")
    said: dict[str, str] = {}
    for event in heard.of(Text):
        said[event.path] = said.get(event.path, "") + event.text
    assert said == {"Boss": "I ask.one two", "Boss/W1@t1": "o n e", "Boss/W2@t2": "tw o"}


async def test_a_childs_events_lie_between_its_calls_start_and_end() -> None:
    workers = [Agent("W1", model=ScriptedModel("one")), Agent("W2", model=ScriptedModel("two"))]
    heard = await hear(boss(ScriptedModel(asks("w1", "w2"), "done"), *workers), "go")

    def place(kind: type[Event], **fields: Any) -> int:
        return next(
            number
            for number, event in enumerate(heard.events)
            if type(event) is kind and all(getattr(event, name) == value for name, value in fields.items())
        )

    for number in "12":
        path = f"Boss/W{number}@t{number}"
        start = next(n for n, e in enumerate(heard.events) if type(e) is ToolStart and e.call.id == f"t{number}")
        end = next(n for n, e in enumerate(heard.events) if type(e) is ToolEnd and e.call.id == f"t{number}")
        crossed = place(HandoffEnd, call_id=f"t{number}")
        assert start < crossed < place(TurnStart, path=path) < place(TurnEnd, path=path) < end
    assert len(heard.of(RunEnd)) == 1


async def test_a_childs_steps_count_in_the_runs_limit() -> None:
    child = Agent("Child", model=ScriptedModel("fine"))
    result = await boss(ScriptedModel(asks("child"), "done"), child).run("go", limits=Limits(max_steps=3))
    assert (result.output, result.steps) == ("done", 3)


async def test_a_child_may_have_children_and_paths_say_who_is_within_whom() -> None:
    paths: list[str] = []

    async def where(context: RunContext[None]) -> str:
        paths.append(context.path)
        return "here"

    inner = Agent("Inner", model=ScriptedModel(call("where"), "in"), tools=[where])
    middle = Agent(
        "Mid/dle", model=ScriptedModel(call("inner", call_id="i1", input="?"), "mid"), tools=[inner.to_tool()]
    )
    await boss(ScriptedModel(call("middle", call_id="t1", input="?"), "done"), middle, name="middle").run("go")
    assert paths == ["Boss/Mid%2Fdle@t1/Inner@i1"]


async def test_a_childs_own_middleware_stands_around_its_turn_and_not_its_callers() -> None:
    seen: list[str] = []

    class Watch(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: Any) -> Any:
            seen.append(request.run.path)
            return await call_next(request)

    child = Agent("Child", model=ScriptedModel("fine"), middleware=[Watch()])
    await boss(ScriptedModel(asks("child"), "done"), child).run("go")
    assert seen == ["Boss/Child@t1"]


async def test_children_at_once_draw_ids_that_do_not_depend_on_which_is_faster() -> None:
    from handrail.filters import FixedIds

    async def run(first: str) -> list[str]:
        turn = asyncio.Event()

        async def answer(request: ChatRequest) -> str:
            if request.run.agent == first:
                turn.set()
            await turn.wait()
            return "fine"

        workers = [Agent(name, model=FunctionModel(answer)) for name in ("W1", "W2")]
        agent = boss(ScriptedModel(asks("w1", "w2"), "done"), *workers)
        heard = await hear(agent, "go", ids=FixedIds("m"))
        return sorted(event.message_id for event in heard.of(Text))

    assert await run("W1") == await run("W2")


async def test_a_childs_conversation_is_in_the_record_and_its_view_ends_with_the_call(tmp_path: Path) -> None:
    child = Agent("Child", model=ScriptedModel("fine"))
    await boss(ScriptedModel(asks("child"), "done"), child).run("go", session=str(tmp_path / "s.jsonl"))
    session = Session(tmp_path / "s.jsonl")
    assert list(session.views) == ["Boss"]
    assert "fine" in texts(session.log)
    assert len(set(ids(session.log))) == len(session.log)
    verdict = verify(tmp_path / "s.jsonl")
    assert (verdict.state, verdict.handoffs) == ("intact", 1)


async def test_a_child_never_sets_the_active_agent(tmp_path: Path) -> None:
    helper = Agent("Helper", model=ScriptedModel("helped"))
    child = Agent("Child", model=ScriptedModel(call("transfer_to_helper", call_id="h1")), handoffs=[helper])
    await boss(ScriptedModel(asks("child"), "done"), child).run("go", session=str(tmp_path / "s.jsonl"))
    assert Session(tmp_path / "s.jsonl").active_agent == "Boss"
    assert verify(tmp_path / "s.jsonl").state == "intact"


class Rewords(Middleware):
    """Puts other words in place of what a sub-agent answered, or answers in its place."""

    def __init__(self, where: str) -> None:
        self.where = where

    async def around_tool(self, request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        return response.replace(content="[hidden]") if self.where == "result" else response

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        return result.replace(message=assistant("[hidden]")) if self.where == "answer" else result


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("result", {}),
        ("answer", {}),
        ("", {"fold": 3}),
        ("", {"expose": "none"}),
        ("", {"expose": "all"}),
        ("", {"returns": none()}),
    ],
)
async def test_an_answer_in_other_words_than_were_said_verifies(
    tmp_path: Path, where: str, options: dict[str, Any]
) -> None:
    child = Agent("Child", model=ScriptedModel("Twice indeed."), middleware=[Rewords(where)])
    parent = Agent(
        "Boss",
        model=ScriptedModel(asks("child"), "Done."),
        tools=[child.to_tool(**options)],
        middleware=[Rewords(where)] if where == "result" else [],
    )
    await parent.run("Look it up.", session=tmp_path / "s")
    assert str(verify(tmp_path / "s")) == "intact, not sealed"


class GivesUp(Middleware):
    """A turn layer that answers in the loop's place that the turn failed."""

    async def around_turn(self, request: Any, call_next: Any) -> TurnResult:
        return TurnResult(status="failed")


@pytest.mark.parametrize("waits", [False, True])
async def test_a_child_whose_turn_ends_as_failed_is_a_tool_error(waits: bool) -> None:
    child = Agent("Child", model=ScriptedModel(), middleware=[GivesUp()])
    asked = call("transfer_to_child", call_id="t1") if waits else call("child", call_id="t1", input="x")
    agent = Agent(
        "Boss",
        model=ScriptedModel(asked, "done"),
        tools=[] if waits else [child.to_tool()],
        handoffs=[handoff(child, returns=full())] if waits else [],
    )
    result = await agent.run("go")
    answer = result_of(result.messages, "t1")
    assert (result.output, answer.is_error) == ("done", True)
    assert "did not complete: failed." in answer.text


@pytest.mark.parametrize("waits", [False, True])
async def test_of_a_failed_child_comes_back_what_the_filter_of_the_way_back_lets_through(waits: bool) -> None:
    def hide(history: Any) -> Any:
        return [message.replace(content=message.text.replace("sk-123", "…")) for message in history]

    for returns, told in ((none(), "."), (hide, ": key … refused"), (full(), ": key sk-123 refused")):
        child = Agent("Child", model=ScriptedModel(ModelRefused("key sk-123 refused")))
        asked = call("transfer_to_child", call_id="t1") if waits else call("child", call_id="t1", input="x")
        agent = Agent(
            "Boss",
            model=ScriptedModel(asked, "done"),
            tools=[] if waits else [child.to_tool(returns=returns)],
            handoffs=[handoff(child, returns=returns)] if waits else [],
        )
        answer = result_of((await agent.run("go")).messages, "t1")
        assert (answer.is_error, answer.text.partition(" failed: ")[2]) == (True, f"ModelRefused{told}")
