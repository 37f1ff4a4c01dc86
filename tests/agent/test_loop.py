"""The loop asks, says, answers calls, hands over, and stops when the model only talks."""

from pathlib import Path
from typing import Any

import pytest

from agent.desks import answers, failure, ids, requests, roles, texts, unlawful
from handrail.agent import (
    Agent,
    FunctionModel,
    InvalidAnswer,
    InvalidInput,
    Limits,
    ModelUnavailable,
    ScriptedModel,
    tool,
)
from handrail.agent.kernel import ChatRequest, Middleware, TurnRequest, TurnResult, after_model, jump
from handrail.agent.models import ChatResponse
from handrail.filters import (
    Message,
    Reasoning,
    ToolCall,
    assistant,
    breaches,
    call,
    system,
    tool_result,
    user,
)


async def ok() -> str:
    return "ok"


def ends_once() -> Middleware:
    """A layer that ends the first turn before its calls run."""
    left = [jump("end")]

    async def ends(state: Any, run: Any) -> Any:
        return left.pop() if left else None

    made: Middleware = after_model(jumps=["end"])(ends)
    return made


class Around(Middleware):
    """A turn layer and a chat layer that are functions."""

    def __init__(self, *, turn: Any = None, chat: Any = None) -> None:
        self.turn, self.chat = turn, chat

    async def around_turn(self, request: TurnRequest, call_next: Any) -> Any:
        return await (self.turn(request, call_next) if self.turn else call_next(request))

    async def around_chat(self, request: ChatRequest, call_next: Any) -> Any:
        return await (self.chat(request, call_next) if self.chat else call_next(request))


async def test_a_model_that_only_talks_ends_the_run() -> None:
    result = await Agent("X", model=ScriptedModel("Hello.")).run("Hi")
    assert (result.output, result.status, result.agent, result.steps) == ("Hello.", "completed", "X", 1)
    assert (roles(result.messages), roles(result.new_messages)) == ("ua", "ua")
    assert result.message is result.messages[-1]


async def test_the_model_is_asked_again_with_the_results_until_it_talks() -> None:
    model = ScriptedModel(call("ok"), [call("ok"), call("ok")], "done")
    result = await Agent("X", model=model, tools=[ok]).run("go")
    assert (roles(result.messages), result.steps) == ("uatatta", 3)
    assert [roles(request.messages) for request in model.requests] == ["u", "uat", "uatatt"]
    assert unlawful(requests(model)) == []


async def test_every_message_has_an_id_of_its_own_an_agent_and_a_time() -> None:
    result = await Agent("X", model=ScriptedModel(["Hm.", call("ok")], "done"), tools=[ok]).run("go")
    assert len(set(ids(result.messages))) == len(result.messages)
    assert [message.agent for message in result.messages] == [None, "X", "X", "X"]
    assert all(message.created_at for message in result.messages)


async def test_instructions_stand_beside_the_messages_by_name() -> None:
    model = ScriptedModel("one", "two")
    await Agent("X", model=model, instructions={"who": "You are X.", "how": "Be brief."}).run("hi")
    await Agent("X", model=model, instructions="You are X.").run("hi", instructions="Today only.")
    assert [dict(request.instructions) for request in model.requests] == [
        {"who": "You are X.", "how": "Be brief."},
        {"agent": "You are X.", "run": "Today only."},
    ]
    assert [roles(request.messages) for request in model.requests] == ["u", "u"]


@pytest.mark.parametrize("silence", ["", assistant(), [Reasoning("hm")]])
async def test_an_answer_of_nothing_ends_the_turn_and_does_not_enter_the_view(silence: Any) -> None:
    result = await Agent("X", model=ScriptedModel(silence)).run("go")
    assert (result.output, result.status, roles(result.messages)) == ("", "completed", "u")


async def test_input_may_be_text_a_message_or_messages_which_are_made_lawful() -> None:
    model = ScriptedModel("1", "2", "3")
    agent = Agent("X", model=model)
    await agent.run("hi")
    await agent.run(user("hi", id="u1"))
    await agent.run(
        [system("s"), user("hi"), assistant(call("ok", call_id="c1")), user("well?"), tool_result("c9", "x")]
    )
    assert [roles(request.messages) for request in model.requests] == ["u", "u", "suatu"]
    assert unlawful(requests(model)) == []
    assert all(all(ids(request.messages)) for request in model.requests)


@pytest.mark.parametrize("input", [None, 7, [7], ["hi"], {"role": "user"}])
async def test_what_is_no_input_is_refused_before_any_request(input: Any) -> None:
    model = ScriptedModel()
    with pytest.raises(InvalidInput, match="text, a message, or messages"):
        await Agent("X", model=model).run(input)
    assert requests(model) == []


async def test_what_is_no_message_among_the_input_is_named() -> None:
    with pytest.raises(InvalidInput, match="not dict among them"):
        await Agent("X", model=ScriptedModel()).run([user("hi"), {"role": "user"}])  # type: ignore[list-item]


@pytest.mark.parametrize("input", ["", [], user(""), [system("s")]])
async def test_with_nothing_to_answer_no_request_is_made(input: Any) -> None:
    model = ScriptedModel("Hello.")
    with pytest.raises(InvalidInput):
        await Agent("X", model=model).run(input)
    assert requests(model) == []


async def test_a_result_can_be_gone_on_with() -> None:
    model = ScriptedModel(call("ok"), "one", "two")
    agent = Agent("X", model=model, tools=[ok])
    first = await agent.run("go")
    second = await agent.run([*first.messages, user("and?")])
    assert texts(second.messages) == ["go", "", "ok", "one", "and?", "two"]
    assert first.messages == second.messages[:4]


async def test_a_model_error_carries_the_transcript_the_usage_and_the_agent() -> None:
    from handrail.sessions import Usage

    model = ScriptedModel(ChatResponse(assistant(call("ok")), Usage(10, 1)), ModelUnavailable("down", spent=Usage(5)))
    error = await failure(Agent("X", model=model, tools=[ok]), "go")
    assert type(error) is ModelUnavailable
    assert (error.agent, roles(error.messages), roles(error.new_messages)) == ("X", "uat", "uat")
    assert (error.usage.input_tokens, error.usage.requests) == (15, 2)
    assert breaches(error.messages) == []


class Stop(BaseException):
    """What no handler of errors may catch."""


@pytest.mark.parametrize("hook", ["turn", "chat"])
@pytest.mark.parametrize("error", [PermissionError("no"), Stop("no")])
async def test_a_hooks_error_comes_out_as_itself(hook: str, error: BaseException) -> None:
    async def refuse(request: Any, call_next: Any) -> Any:
        raise error

    agent = Agent("X", model=ScriptedModel(), middleware=[Around(**{hook: refuse})])
    with pytest.raises(type(error), match="no") as raised:
        await agent.run("go")
    assert raised.value is error
    assert "refuse" in [entry.name for entry in raised.traceback]


@pytest.mark.parametrize("hook", ["turn", "chat"])
@pytest.mark.parametrize("odd", [None, "hi", assistant("hi"), 7])
async def test_a_hook_that_returns_what_is_no_answer_ends_the_run(hook: str, odd: Any) -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        return odd

    error = await failure(Agent("X", model=ScriptedModel(), middleware=[Around(**{hook: instead})]), "go")
    assert type(error) is InvalidAnswer
    assert type(odd).__name__ in str(error)
    assert (error.agent, roles(error.messages)) == ("X", "u")


@pytest.mark.parametrize("odd", [user("hi"), "hi", None, tool_result("c1", "x")])
@pytest.mark.parametrize("by", ["hook", "model"])
async def test_a_response_whose_message_is_no_answer_ends_the_run(odd: Any, by: str) -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        return ChatResponse(odd)

    model = ScriptedModel(ChatResponse(odd))
    layers = [Around(chat=instead)] if by == "hook" else []
    error = await failure(Agent("X", model=model, middleware=layers), "go")
    assert type(error) is InvalidAnswer
    assert roles(error.messages) == "u"


async def test_a_hook_may_answer_in_the_models_place() -> None:
    async def instead(request: Any, call_next: Any) -> Any:
        return ChatResponse(assistant("cached"))

    result = await Agent("X", model=ScriptedModel(), middleware=[Around(chat=instead)]).run("go")
    assert (result.output, texts(result.messages), result.usage.requests) == ("cached", ["go", "cached"], 0)
    assert result.messages[-1].id
    assert result.messages[-1].agent == "X"


async def test_an_answer_that_a_hook_gives_again_is_another_message() -> None:
    kept: list[ChatResponse] = []

    async def cache(request: Any, call_next: Any) -> Any:
        if not kept:
            kept.append(await call_next(request))
        return kept[0]

    agent = Agent("X", model=ScriptedModel("Hello."), middleware=[Around(chat=cache)])
    first = await agent.run("go")
    second = await agent.run([*first.messages, user("and?")])
    assert texts(second.messages) == ["go", "Hello.", "and?", "Hello."]
    assert len(set(ids(second.messages))) == 4


async def test_what_a_hook_changes_of_a_request_is_sent_and_the_view_stays() -> None:
    async def shorten(request: ChatRequest, call_next: Any) -> Any:
        instructions = {**request.instructions, "extra": "Be kind."}
        return await call_next(request.replace(messages=request.messages[-1:], instructions=instructions))

    model = ScriptedModel("done")
    result = await Agent("X", model=model, middleware=[Around(chat=shorten)]).run([user("one"), user("two")])
    assert texts(model.requests[0].messages) == ["two"]
    assert dict(model.requests[0].instructions) == {"extra": "Be kind."}
    assert texts(result.messages) == ["one", "two", "done"]


async def test_what_a_hook_leaves_unlawful_is_mended_before_it_is_sent() -> None:
    async def cut(request: ChatRequest, call_next: Any) -> Any:
        return await call_next(request.replace(messages=[*request.messages[2:], user("hm?")]))

    model = ScriptedModel(call("ok"), "done")
    await Agent("X", model=model, tools=[ok], middleware=[Around(chat=cut)]).run("go")
    assert [roles(request.messages) for request in model.requests] == ["u", "u"]


async def test_a_hook_cannot_change_the_messages_it_is_shown_in_place() -> None:
    async def meddle(request: Any, call_next: Any) -> Any:
        with pytest.raises((TypeError, AttributeError)):
            request.messages[0] = user("other")
        with pytest.raises(AttributeError):
            request.messages[0].content = ()
        with pytest.raises(AttributeError):
            request.messages.clear()
        return await call_next(request)

    result = await Agent("X", model=ScriptedModel("done"), middleware=[Around(chat=meddle, turn=meddle)]).run("go")
    assert texts(result.messages) == ["go", "done"]


async def test_a_hook_may_answer_in_the_turns_place_and_that_is_said() -> None:
    async def instead(request: TurnRequest, call_next: Any) -> TurnResult:
        return TurnResult(status="completed", message=assistant("closed today"), output="closed today")

    result = await Agent("X", model=ScriptedModel(), middleware=[Around(turn=instead)]).run("go")
    assert (result.output, texts(result.messages)) == ("closed today", ["go", "closed today"])
    assert texts(result.new_messages) == ["go", "closed today"]
    assert all(ids(result.messages))


async def test_a_turn_layer_sees_how_the_turn_went() -> None:
    seen: list[TurnResult] = []

    async def look(request: TurnRequest, call_next: Any) -> Any:
        assert texts(request.messages) == ["go"]
        seen.append(await call_next(request))
        return seen[-1]

    model = ScriptedModel(call("ok", call_id="c1"), "done")
    await Agent("X", model=model, tools=[ok], middleware=[Around(turn=look)]).run("go")
    (result,) = seen
    assert (result.status, result.output, result.steps, len(result.tool_calls)) == ("completed", "done", 2, 1)
    assert (roles(result.messages), roles(result.new_messages), result.usage.requests) == ("uata", "uata", 2)


async def test_a_turn_that_hands_over_ends_so_and_the_next_turn_is_in_the_targets_layers() -> None:
    order: list[str] = []

    def note(name: str) -> Around:
        async def look(request: TurnRequest, call_next: Any) -> Any:
            order.append(f"{name}(")
            result = await call_next(request)
            order.append(f"){name} {result.status}")
            return result

        return Around(turn=look)

    model = ScriptedModel(call("transfer_to_b"), "done")
    b = Agent("B", model=model, middleware=[note("b")])
    await Agent("A", model=model, handoffs=[b], middleware=[note("a")]).run("go")
    assert order == ["a(", ")a handed_over", "b(", ")b completed"]


async def test_a_call_id_the_model_left_out_is_given() -> None:
    result = await Agent("X", model=ScriptedModel(ToolCall("", "ok"), "done"), tools=[ok]).run("go")
    ((call_id, text),) = answers(result.messages)
    assert call_id
    assert text == "ok"


async def test_a_turn_layer_may_change_what_enters_and_the_view_follows() -> None:
    async def greet(request: TurnRequest, call_next: Any) -> Any:
        return await call_next(request.replace(messages=[*request.messages, user("please", id="p1")]))

    model = ScriptedModel("done")
    result = await Agent("X", model=model, middleware=[Around(turn=greet)]).run("go")
    assert texts(model.requests[0].messages) == ["go", "please"]
    assert texts(result.messages) == ["go", "please", "done"]


async def test_what_a_turn_layer_makes_has_an_id_and_is_lawful() -> None:
    async def break_it(request: TurnRequest, call_next: Any) -> Any:
        made = [assistant(call("ok", call_id="c1")), user("please")]
        return await call_next(request.replace(messages=[*request.messages, *made]))

    model = ScriptedModel("done")
    await Agent("X", model=model, middleware=[Around(turn=break_it)]).run("go")
    assert unlawful(requests(model)) == []
    assert all(ids(model.requests[0].messages))


async def test_a_model_that_is_a_function_of_the_request_sees_the_run() -> None:
    model = FunctionModel(lambda request: f"{request.run.agent} {request.run.step} {request.run.attempt}")
    assert (await Agent("X", model=model).run("go")).output == "X 1 1"


@pytest.mark.parametrize(
    "message", [user("hi"), system("hi"), tool_result("c1", "hi"), assistant("hi", call("ok", call_id="c1"))]
)
async def test_a_turn_does_not_complete_with_what_is_no_answer(message: Message) -> None:
    async def instead(request: TurnRequest, call_next: Any) -> TurnResult:
        return TurnResult(status="completed", message=message)

    async def after(request: TurnRequest, call_next: Any) -> TurnResult:
        result: TurnResult = await call_next(request)
        return result.replace(message=message)

    for hook, left in ((instead, "u"), (after, "ua")):
        error = await failure(Agent("X", model=ScriptedModel("fine"), middleware=[Around(turn=hook)]), "go")
        assert type(error) is InvalidAnswer
        assert (roles(error.messages), breaches(error.messages)) == (left, [])


ENDS: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "an answer of a type": ({"output_type": int}, [call("final_answer", value=n) for n in (1, 2)], [1, 2]),
    "results that are the answer": ({"tools": [tool(return_direct=True)(ok)]}, [call("ok"), "two"], ["ok", "two"]),
    "a jump to the end": ({"tools": [ok], "middleware": [ends_once()]}, [call("ok"), "two"], ["", "two"]),
    "a limit": (
        {"tools": [ok], "limits": Limits(max_tool_calls=0, on_max_tool_calls="end")},
        [call("ok"), "two"],
        ["", "two"],
    ),
}


@pytest.mark.parametrize("how", ENDS)
async def test_nothing_that_ended_an_earlier_turn_ends_a_later_one(how: str, tmp_path: Path) -> None:
    options, script, outputs = ENDS[how]
    model = ScriptedModel(*script)
    agent = Agent("X", model=model, **options)
    results = [await agent.run(said, session=tmp_path / "s.jsonl") for said in ("one", "two")]
    assert ([result.output for result in results], len(model.requests)) == (outputs, 2)
    assert unlawful(requests(model)) == []
