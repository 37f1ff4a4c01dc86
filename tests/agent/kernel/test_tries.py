"""What a layer tries again is another try: it is known by its number, and counts under every limit."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, hear
from handrail.agent import (
    Agent,
    BuildError,
    InvalidAnswer,
    LimitExceeded,
    Limits,
    Middleware,
    ModelUnavailable,
    RunContext,
    ScriptedModel,
    tool,
)
from handrail.agent.events import Discard, MessageDone
from handrail.agent.kernel import after_agent, after_model, append, around_chat, around_tool, before_model, remove
from handrail.agent.kernel import replace as replaced
from handrail.filters import assistant, call, user
from handrail.sessions import Session, ToolCallRecord

CALL = call("pay", call_id="c1")


@around_chat
async def stubborn(request: Any, call_next: Any) -> Any:
    while True:
        try:
            return await call_next(request)
        except ModelUnavailable:
            continue


@around_tool
async def thrice(request: Any, call_next: Any) -> Any:
    await call_next(request)
    await call_next(request)
    return await call_next(request)


def paying(paid: list[int]) -> Any:
    @tool(side_effects="external")
    async def pay(context: RunContext[None]) -> str:
        paid.append(context.attempt)
        return "paid"

    return pay


async def test_tries_of_a_tool_and_of_the_layer_around_it_are_numbered_together(tmp_path: Path) -> None:
    tried: list[int] = []

    @tool(side_effects="read_only", retries=1, retry_delay=0.0)
    async def pay(context: RunContext[None]) -> str:
        tried.append(context.attempt)
        if len(tried) == 1:
            raise ConnectionError("down")
        return "paid"

    seen: list[int] = []

    @around_tool
    async def twice(request: Any, call_next: Any) -> Any:
        for _ in range(2):
            response = await call_next(request)
            seen.append(request.run.attempt)
        return response

    path = tmp_path / "s.jsonl"
    agent = Agent("X", model=ScriptedModel(CALL, "done"), tools=[pay], middleware=[twice])
    await agent.run("go", session=path)
    marks = [each.attempt for each in Session(path).records() if isinstance(each, ToolCallRecord)]
    assert (tried, seen, marks) == ([1, 2, 3], [2, 3], [1, 2, 3])


async def test_each_try_of_a_model_call_counts_as_a_step_of_the_limits() -> None:
    model = ScriptedModel(*[ModelUnavailable("down")] * 9)
    error = await failure(Agent("X", model=model, middleware=[stubborn]), "go", limits=Limits(max_steps=4))
    assert (type(error), len(model.requests)) == (LimitExceeded, 4)


async def test_a_layers_own_model_calls_count_too() -> None:
    class Asks(Middleware):
        async def before_model(self, state: Any, run: Any) -> None:
            for _ in range(5):
                await run.ask_model(self, "What do you think?")

    model = ScriptedModel(*["words"] * 9)
    error = await failure(Agent("X", model=model, middleware=[Asks()]), "go", limits=Limits(max_steps=3))
    assert (type(error), len(model.requests)) == (LimitExceeded, 3)


async def test_a_tool_that_a_layer_runs_again_counts_again_and_is_refused_over_the_limit() -> None:
    paid: list[int] = []
    agent = Agent("X", model=ScriptedModel(CALL, "done"), tools=[paying(paid)], middleware=[thrice])
    result = await agent.run("go", limits=Limits(max_tool_calls=2))
    assert paid == [1, 2]
    assert [message.text for message in result.messages if message.role == "tool"] == [
        "pay was not run again: the limit max_tool_calls=2 was reached."
    ]


async def test_a_tool_runs_for_the_first_time_however_often_the_model_was_asked(tmp_path: Path) -> None:
    paid: list[int] = []
    model = ScriptedModel(ModelUnavailable("down"), CALL, "done")
    agent = Agent("X", model=model, tools=[paying(paid)], middleware=[stubborn])
    with Session(tmp_path / "session.jsonl") as session:
        await agent.run("go", session=session)
        marks = [record.attempt for record in session.records() if isinstance(record, ToolCallRecord)]
    assert (paid, marks) == ([1], [1])


async def test_layers_know_the_try_by_its_number_from_one_in_both_chains() -> None:
    seen: list[tuple[str, int]] = []

    class Notes(Middleware):
        async def before_model(self, state: Any, run: Any) -> None:
            seen.append(("step", run.attempt))

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            seen.append(("chat", request.run.attempt))
            return await call_next(request)

        async def around_tool(self, request: Any, call_next: Any) -> Any:
            seen.append((request.run.call_id, request.run.attempt))
            return await call_next(request)

    class After(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            seen.append(("ran", request.run.attempt))
            return response

    model = ScriptedModel(ModelUnavailable("down"), CALL, "done")
    layers = [Notes(), stubborn, thrice, After()]
    await Agent("X", model=model, tools=[paying([])], middleware=layers).run("go")
    assert seen == [
        ("step", 1),
        ("chat", 1),
        ("c1", 1),
        ("ran", 1),
        ("ran", 2),
        ("ran", 3),
        ("step", 1),
        ("chat", 1),
    ]


async def test_a_limit_that_refuses_a_model_call_for_its_tokens_counts_no_step() -> None:
    agent = Agent("X", model=ScriptedModel())
    error = await failure(agent, "go", limits=Limits(max_tokens=0))
    assert isinstance(error, LimitExceeded)
    assert getattr(error.budget, "steps", None) == 0


@pytest.mark.parametrize("hook", [after_model, after_agent])
async def test_an_answer_that_a_state_hook_gives_other_words_is_heard_again(hook: Any) -> None:
    @hook
    async def reword(state: Any, run: Any) -> Any:
        return {"messages": replaced(assistant("other words", id=state.messages[-1].id))}

    heard = await hear(Agent("X", model=ScriptedModel("first words"), middleware=[reword]), "go")
    kinds = [type(event) for event in heard.events if type(event) in (MessageDone, Discard)]
    assert kinds == [MessageDone, Discard, MessageDone]
    assert heard.of(MessageDone)[-1].message.text == "other words"


async def test_what_a_request_says_of_attempts_holds_for_the_next_one_too() -> None:
    class Again(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            request = request.replace(keep_attempts=True)
            return await call_next(request.again(await call_next(request), "Once more."))

    result = await Agent("X", model=ScriptedModel("one", "two"), middleware=[Again()]).run("go")
    assert [message.text for message in result.messages] == ["go", "one", "Once more.", "two"]


async def test_another_message_takes_the_output_along() -> None:
    class Mine(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            return (await call_next(request)).replace(message=assistant("mine"))

    result = await Agent("X", model=ScriptedModel("theirs"), middleware=[Mine()]).run("go")
    assert (result.output, result.messages[-1].text) == ("mine", "mine")


async def test_a_request_that_leaves_nothing_to_ask_about_or_no_messages_is_refused() -> None:
    for messages in ([], [{"role": "user"}]):

        @around_chat
        async def empties(request: Any, call_next: Any, given: Any = messages) -> Any:
            return await call_next(request.replace(messages=given))

        with pytest.raises(InvalidAnswer, match="a layer of X"):
            await Agent("X", model=ScriptedModel("x"), middleware=[empties]).run("go")


@pytest.mark.parametrize("wrong", [lambda: append("text"), lambda: replaced("m1", user("x")), lambda: remove(["m1"])])  # type: ignore[arg-type]  # what is tested
def test_edits_take_messages_and_ids_and_say_so(wrong: Any) -> None:
    with pytest.raises(InvalidAnswer, match=r"\(\) takes"):
        wrong()


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"befor_model": around_chat}, "did you mean before_model"),
        ({"aroundchat": around_chat}, "did you mean around_chat"),
        ({"jumps": ["end"]}, "jumps are the targets of each hook by name"),
    ],
)
def test_what_is_nearly_a_hook_or_no_declaration_is_refused(members: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Agent("X", model=ScriptedModel(), middleware=[type("Layer", (Middleware,), members)()])


async def test_a_function_that_only_looks_is_a_layer() -> None:
    looked: list[int] = []

    @before_model
    async def look(state: Any, run: Any) -> None:
        looked.append(len(state.messages))

    await Agent("X", model=ScriptedModel("x"), middleware=[look]).run("go")
    assert looked == [1]
