"""A conversation is remembered from run to run: each turn once, whole, and only what was accepted of it."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.desks import roles, texts
from handrail.agent import (
    Agent,
    BuildError,
    FunctionModel,
    InvalidInput,
    Middleware,
    ModelUnavailable,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.conversations import Conversations, joined
from handrail.agent.errors import MissingDeps
from handrail.agent.kernel import TurnRequest, TurnResult, remove
from handrail.agent.middleware import Memory, SchemaValidation, Validation
from handrail.filters import Image, Message, Opaque, Reasoning, assistant, breaches, call, last_user, system, user
from handrail.sessions import Session, StateRecord, read

C = {"conversation_id": "c"}


@tool
def look(place: str) -> str:
    """Looks into a place."""
    return f"nothing in {place}"


def desk(*answers: Any, middleware: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(*answers)
    return Agent("desk", model=model, middleware=middleware, tools=[look], **options), model


async def test_the_next_run_begins_with_what_was_said_before_and_tool_pairs_stay_whole() -> None:
    memory = Memory()
    agent, model = desk(call("look", call_id="c1", place="A"), "Nothing.", "Still nothing.", middleware=[memory])
    first = await agent.run("Where is it?", deps=C)
    second = await agent.run("Sure?", deps=C)
    assert texts(model.requests[-1].messages) == ["Where is it?", "", "nothing in A", "Nothing.", "Sure?"]
    assert second.messages[:4] == first.messages
    stored = await memory.store.load("c/desk")
    assert tuple(stored) == tuple(second.messages)
    assert breaches(stored) == []


@pytest.mark.parametrize("deps", [None, {}, {"conversation_id": None}, {"conversation_id": ""}, object()])
async def test_without_a_conversation_nothing_is_loaded_or_kept(deps: Any) -> None:
    agent, model = desk("One.", "Two.", middleware=[Memory()])
    await agent.run("Hi", deps=deps)
    await agent.run("Ho", deps=deps)
    assert texts(model.requests[-1].messages) == ["Ho"]


async def test_the_conversation_is_named_by_deps_or_by_a_function_of_the_run() -> None:
    class Deps:
        ticket = "t7"

    memory = Memory(conversation="ticket")
    agent, _ = desk("One.", middleware=[memory])
    await agent.run("Hi", deps=Deps())
    assert texts(await memory.store.load("t7/desk")) == ["Hi", "One."]
    memory = Memory(conversation=lambda run: f"{run.deps}-{run.agent}")
    agent, _ = desk("One.", middleware=[memory])
    await agent.run("Hi", deps="x")
    assert texts(await memory.store.load("x-desk/desk")) == ["Hi", "One."]


async def test_an_id_that_is_no_text_is_an_error_that_names_it() -> None:
    agent, _ = desk("One.", middleware=[Memory()])
    with pytest.raises(MissingDeps, match=r"Memory requires 'conversation_id'.*is int, not text"):
        await agent.run("Hi", deps={"conversation_id": 7})


async def test_conversations_are_kept_apart() -> None:
    agent, model = desk("One.", "Two.", middleware=[Memory()])
    await agent.run("Hi", deps={"conversation_id": "a"})
    await agent.run("Ho", deps={"conversation_id": "b"})
    assert texts(model.requests[-1].messages) == ["Ho"]


async def test_system_messages_and_instructions_are_never_kept() -> None:
    memory = Memory()
    agent, _ = desk("One.", middleware=[memory], instructions="Be kind.")
    await agent.run([system("Today is Monday."), user("Hi")], deps=C)
    assert roles(await memory.store.load("c/desk")) == "ua"


async def test_each_agent_remembers_its_own_view_and_no_other() -> None:
    memory = Memory()
    billing = Agent("billing", model=(asked := ScriptedModel("Yes.", "Again yes.")), middleware=[memory])
    triage, model = desk(
        call("transfer_to_billing", call_id="h1"),
        call("transfer_to_billing", call_id="h2"),
        middleware=[memory],
        handoffs=[handoff(billing, filter=last_user())],
    )
    await triage.run("My PIN is 9041. Charged twice?", deps=C)
    await triage.run("Sure?", deps=C)
    assert texts(asked.requests[-1].messages) == ["My PIN is 9041. Charged twice?", "Yes.", "Sure?"]
    assert roles(model.requests[-1].messages) == "uatu"
    assert roles(await memory.store.load("c/desk")) == "uatuat"
    assert texts(await memory.store.load("c/billing"))[1::2] == ["Yes.", "Again yes."]


async def test_what_a_boundary_kept_back_is_not_remembered_on_the_other_side() -> None:
    memory = Memory()
    billing = Agent("billing", model=(asked := ScriptedModel("Yes.", "No.")), middleware=[memory])
    triage, _ = desk(
        "Go on.",
        call("transfer_to_billing", call_id="h1"),
        middleware=[memory],
        handoffs=[handoff(billing, filter=last_user())],
    )
    await triage.run("My PIN is 9041.", deps=C)
    await triage.run("Charged twice?", deps=C)
    assert texts(asked.requests[-1].messages) == ["Charged twice?"]


async def test_a_subagent_remembers_its_earlier_calls() -> None:
    child = Agent("clerk", model=(asked := ScriptedModel("Found A.", "Found B.")), middleware=[Memory()])
    boss = Agent(
        "boss",
        model=ScriptedModel(
            call("clerk", call_id="k1", input="A?"), "A it is.", call("clerk", call_id="k2", input="B?"), "B."
        ),
        tools=[child.to_tool(filter=last_user())],
    )
    await boss.run("Find A", deps=C)
    await boss.run("Find B", deps=C)
    assert texts(asked.requests[-1].messages) == ["Find A", "A?", "Found A.", "Find B", "B?"]


async def test_a_turn_that_fails_keeps_nothing() -> None:
    memory = Memory()
    agent, model = desk(call("look", call_id="c1", place="A"), ModelUnavailable("busy"), "One.", middleware=[memory])
    with pytest.raises(ModelUnavailable):
        await agent.run("Hi", deps=C)
    assert list(await memory.store.load("c/desk")) == []
    await agent.run("Ho", deps=C)
    assert texts(model.requests[-1].messages) == ["Ho"]


async def test_a_turn_that_is_cancelled_keeps_nothing() -> None:
    asked = asyncio.Event()

    async def never(request: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    memory = Memory()
    agent = Agent("desk", model=FunctionModel(never), middleware=[memory])
    running = asyncio.ensure_future(agent.run("Hi", deps=C))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert list(await memory.store.load("c/desk")) == []


class Judge(Middleware):
    """Has the turn entered again until the answer is good."""

    async def around_turn(self, request: TurnRequest, call_next: Any) -> TurnResult:
        result: TurnResult = await call_next(request)
        while "good" not in result.output:
            result = await call_next(request.again(result, "Better, please."))
        return result


class Begin(Middleware):
    """Begins the turn again where it failed."""

    async def around_turn(self, request: TurnRequest, call_next: Any) -> TurnResult:
        try:
            result: TurnResult = await call_next(request)
        except ModelUnavailable:
            result = await call_next(request)
        return result


@pytest.mark.parametrize("layers", [lambda memory: [memory, Judge()], lambda memory: [Judge(), memory]])
async def test_rejected_answers_and_feedback_are_not_kept_wherever_they_are_rejected(layers: Any) -> None:
    memory = Memory()
    script = (call("look", call_id="c1", place="A"), "bad", call("look", call_id="c2", place="B"), "worse", "good")
    agent, _ = desk(*script, middleware=layers(memory))
    result = await agent.run("Hi", deps=C)
    stored = await memory.store.load("c/desk")
    assert texts(stored) == ["Hi", "", "nothing in A", "", "nothing in B", "good"]
    assert tuple(stored) == tuple(result.messages)


@pytest.mark.parametrize("layers", [lambda memory: [memory, Begin()], lambda memory: [Begin(), memory]])
async def test_a_turn_that_is_begun_again_is_kept_once(layers: Any) -> None:
    memory = Memory()
    agent, model = desk("One.", ModelUnavailable("busy"), "Two.", middleware=layers(memory))
    await agent.run("Hi", deps=C)
    await agent.run("Ho", deps=C)
    assert texts(model.requests[-1].messages) == ["Hi", "One.", "Ho"]
    assert texts(await memory.store.load("c/desk")) == ["Hi", "One.", "Ho", "Two."]


async def test_a_fallback_is_kept_in_place_of_the_answer_that_was_rejected(tmp_path: Path) -> None:
    memory = Memory()
    sorry = Validation(lambda output: False, retries=1, on_exhausted="fallback", fallback="Sorry.")
    agent, _ = desk("bad", "worse", middleware=[memory, sorry])
    result = await agent.run("Hi", deps=C, session=tmp_path / "s.jsonl")
    assert texts(await memory.store.load("c/desk")) == ["Hi", "Sorry."]
    assert tuple(await memory.store.load("c/desk")) == tuple(result.messages)


async def test_an_answer_that_a_layer_gave_has_one_id_in_the_store_and_in_the_session(tmp_path: Path) -> None:
    class Closed(Middleware):
        async def around_turn(self, request: TurnRequest, call_next: Any) -> TurnResult:
            return TurnResult(status="completed", message=assistant("We are closed."), messages=request.run.messages)

    memory = Memory()
    agent, model = desk("Open.", middleware=[memory, Closed()])
    await agent.run("Hi", deps=C, session=tmp_path / "s.jsonl")
    stored = await memory.store.load("c/desk")
    assert texts(stored)[-1] == "We are closed."
    assert tuple(Session(tmp_path / "s.jsonl").history())[-1] == stored[-1]
    assert model.requests == []


def test_a_layer_that_puts_an_answer_in_anothers_place_stands_inside() -> None:
    with pytest.raises(BuildError, match="Memory must stand outside Validation"):
        Agent("desk", model=ScriptedModel(), middleware=[Validation(lambda output: True), Memory()])


async def test_a_session_that_holds_the_conversation_is_not_given_it_twice(tmp_path: Path) -> None:
    memory, path = Memory(), tmp_path / "s.jsonl"
    agent, model = desk("One.", "Two.", "Three.", middleware=[memory])
    await agent.run("a", deps=C, session=path)
    await agent.run("b", deps=C)
    result = await agent.run("c", deps=C, session=path)
    assert texts(model.requests[-1].messages) == ["a", "One.", "b", "Two.", "c"]
    assert texts(await memory.store.load("c/desk")) == ["a", "One.", "b", "Two.", "c", "Three."]
    assert tuple(Session(path).history()) == tuple(result.messages)


async def test_what_has_left_a_sessions_view_is_not_brought_back(tmp_path: Path) -> None:
    class Short(Middleware):
        async def before_agent(self, state: Any, run: Any) -> Any:
            return (
                {"messages": remove(*[message.id for message in state.messages[:2]])}
                if len(state.messages) > 4
                else None
            )

    path = tmp_path / "s.jsonl"
    agent, model = desk("One.", "Two.", "Three.", "Four.", middleware=[Memory(), Short()])
    for said in "abcd":
        await agent.run(said, deps=C, session=path)
    assert texts(model.requests[-1].messages) == ["c", "Three.", "d"]


async def test_two_runs_at_once_of_one_conversation_are_both_kept_whole() -> None:
    both = asyncio.Barrier(2)

    async def answer(request: Any) -> Any:
        await both.wait()
        last = request.messages[-1]
        return "Done." if last.role == "tool" else call("look", call_id=f"of {last.text}", place=last.text)

    memory = Memory()
    agent = Agent("desk", model=FunctionModel(answer), tools=[look], middleware=[memory])
    await asyncio.gather(agent.run("A", deps=C), agent.run("B", deps=C))
    stored = await memory.store.load("c/desk")
    assert sorted(texts(stored)[::4]) == ["A", "B"]
    assert roles(stored) == "uatauata"
    assert breaches(stored) == []


async def test_a_message_that_is_given_again_is_kept_once() -> None:
    memory = Memory()
    agent, model = desk("One.", "Two.", middleware=[memory])
    first = await agent.run("a", deps=C)
    await agent.run([*first.messages, user("b")], deps=C)
    assert texts(model.requests[-1].messages) == ["a", "One.", "b"]
    assert texts(await memory.store.load("c/desk")) == ["a", "One.", "b", "Two."]


async def test_a_turn_that_is_taken_once_more_begins_where_it_began() -> None:
    agent, model = desk("One.", "Two.", "Two, again.", middleware=[Memory()])
    await agent.run("a", deps=C)
    await agent.run(user("b", id="u2"), deps=C)
    await agent.run(user("b", id="u2"), deps=C)
    assert texts(model.requests[-1].messages) == ["a", "One.", "b"]


async def test_other_words_under_an_id_that_is_kept_are_refused() -> None:
    agent, _ = desk("One.", "Two.", middleware=[Memory()])
    await agent.run(user("a", id="u1"), deps=C)
    with pytest.raises(InvalidInput, match=r"another message with the id 'u1'"):
        await agent.run(user("b", id="u1"), deps=C)


async def test_a_store_that_fails_ends_the_run() -> None:
    class Full(Conversations):
        async def commit(self, id: str, delta: Any) -> None:
            raise OSError("no space")

    agent, _ = desk("One.", middleware=[Memory(Full())])
    with pytest.raises(OSError, match="no space"):
        await agent.run("a", deps=C)


async def test_what_is_forgotten_is_gone() -> None:
    store = Conversations()
    agent, model = desk("One.", "Two.", middleware=[Memory(store)])
    await agent.run("a", deps=C)
    await store.forget("c/desk")
    await agent.run("b", deps=C)
    assert texts(model.requests[-1].messages) == ["b"]


@pytest.mark.parametrize("options", [{"store": object()}, {"conversation": ""}, {"conversation": 5}])
def test_a_memory_that_cannot_work_is_refused_when_it_is_made(options: Any) -> None:
    with pytest.raises(BuildError, match=r"store|conversation"):
        Memory(**options)


async def test_layers_of_a_run_let_every_agent_remember() -> None:
    memory = Memory()
    agent, model = desk("One.", "Two.", middleware=[])
    await agent.run("a", deps=C, middleware=[memory])
    await agent.run("b", deps=C, middleware=[memory])
    assert texts(model.requests[-1].messages) == ["a", "One.", "b"]


def test_what_the_view_held_before_decides_what_it_lacks() -> None:
    a, b, c, d = (user(text, id=text) for text in "abcd")
    assert joined((a, b), (c,), set()) == [a, b, c]
    assert joined((a, b, c), (d,), {"b"}) == [c, d]
    assert joined((a, b), (a, c), set()) == [a, b, c]
    assert joined((a, b), (a,), set()) == [a]
    assert joined((), (a,), {"z"}) == [a]


async def test_every_kind_of_part_comes_back_as_it_went() -> None:
    thought = assistant([Reasoning("hm", provider="p", data="{}"), Opaque("p", "search", "{}", "tool"), "Yes."])
    agent, model = desk(thought, "Two.", middleware=[Memory()])
    first = await agent.run(user(["Look", Image(data="aGk=", media_type="image/png")], sensitivity="secret"), deps=C)
    await agent.run("b", deps=C)
    assert model.requests[-1].messages[:2] == first.messages


async def test_the_record_of_a_turn_holds_no_second_copy_of_what_is_remembered(tmp_path: Path) -> None:
    agent, _ = desk("One.", middleware=[Memory()])
    await agent.run("a", deps=C, session=tmp_path / "s.jsonl")
    (record,) = [each for each in read(tmp_path / "s.jsonl").records() if isinstance(each, StateRecord)]
    assert (record.layer, bytes(record.values)) == ("Memory", b"{}")


async def test_a_validation_outside_it_is_refused_whatever_either_is_called() -> None:
    class Strict(Validation):
        """Another kind of it."""

    for outer in (Validation(bool, name="strict"), SchemaValidation(True, name="shape"), Strict(bool)):
        with pytest.raises(BuildError, match="must stand outside"):
            Agent("X", model=ScriptedModel(), middleware=[outer, Memory(name="mem")])
        Agent("X", model=ScriptedModel(), middleware=[Memory(name="mem"), outer])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_that_is_forked_while_a_thread_keeps_something_can_use_what_was_kept() -> None:
    inside, go = threading.Event(), threading.Event()
    kept = Conversations()
    asyncio.run(kept.commit("talk", (user("one", id="m1"),)))

    def slowly() -> Iterator[Message]:
        inside.set()
        go.wait()
        yield user("two", id="m2")

    keeper = threading.Thread(target=lambda: asyncio.run(kept.commit("talk", slowly())))  # type: ignore[arg-type]
    keeper.start()
    inside.wait()
    child = os.fork()
    if not child:
        signal.alarm(20)  # a child that waits for ever is killed
        os._exit(len(asyncio.run(kept.load("talk"))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    go.set()
    keeper.join()
    assert [message.text for message in asyncio.run(kept.load("talk"))] == ["one", "two"]
