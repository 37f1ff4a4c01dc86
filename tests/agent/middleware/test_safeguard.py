"""Words are kept from the model and from who listens, and no conversation is lost by that."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.desks import hear, texts, unlawful
from handrail.agent import Agent, BuildError, ChatResponse, FunctionModel, ModelUnavailable, ScriptedModel, handoff
from handrail.agent.events import Discard, MessageDone, Text, Told
from handrail.agent.kernel import Kernel, Middleware
from handrail.agent.middleware import Safeguard
from handrail.filters import Message, Opaque, Reasoning, ToolCall, assistant, call, full, system, tool_result, user
from handrail.filters import Text as Words
from handrail.filters.messages import Part
from handrail.sessions import Session, Usage

NO = "I cannot help with that."


def guarded(*answers: Any, tools: Any = (), **options: Any) -> tuple[Agent, ScriptedModel]:
    """An agent that may neither hear nor say `bomb`, and its model."""
    model = ScriptedModel(*answers)
    return Agent("X", model=model, tools=tools, middleware=[Safeguard(["bomb"], **options)]), model


async def leak() -> str:
    return "how to make a bomb"


async def ok() -> str:
    return "ok"


async def test_what_holds_no_word_passes_as_it_is() -> None:
    agent, model = guarded(call("ok", call_id="c1"), "done", tools=[ok])
    result = await agent.run("go")
    assert texts(result.messages) == ["go", "", "ok", "done"]
    assert texts(model.requests[-1].messages) == ["go", "", "ok"]


async def test_a_word_in_the_input_is_answered_in_the_models_place() -> None:
    agent, model = guarded()
    result = await agent.run("a BOMB, please")
    assert (result.output, result.status, model.requests) == (NO, "completed", [])


async def test_the_answer_says_that_it_was_filtered_and_that_nothing_was_asked() -> None:
    kernel = Kernel(ScriptedModel(), middleware=[Safeguard(["bomb"], failure_response="No.")])
    response = await kernel.chat("a bomb")
    assert (response.message.text, response.finish_reason) == ("No.", "content_filtered")
    assert response.usage == Usage()


async def test_the_block_is_told_without_what_was_said() -> None:
    agent, _ = guarded()
    heard = await hear(agent, user("a bomb", id="u1"))
    assert [(told.name, told.data) for told in heard.of(Told)] == [("blocked", {"where": "input", "message_id": "u1"})]


async def test_later_questions_are_answered_and_the_model_never_sees_the_first() -> None:
    agent, model = guarded("Hello.", "Fine.")
    first = await agent.run("a bomb")
    second = await agent.run([*first.messages, user("hi")])
    third = await agent.run([*second.messages, user("and you?")])
    assert (second.output, third.output) == ("Hello.", "Fine.")
    assert texts(model.requests[1].messages) == [NO, "hi", "Hello.", "and you?"]
    assert texts(third.messages)[0] == "a bomb"
    assert unlawful(model.requests) == []


async def test_a_session_remembers_what_was_answered(tmp_path: Path) -> None:
    agent, model = guarded("Hello.")
    with Session(tmp_path / "s.jsonl") as session:
        await agent.run("a bomb", session=session)
    with Session(tmp_path / "s.jsonl") as session:
        assert (await agent.run("hi", session=session)).output == "Hello."
    assert texts(model.requests[0].messages) == [NO, "hi"]


async def test_each_new_message_with_a_word_is_answered_again() -> None:
    agent, _ = guarded()
    first = await agent.run("a bomb")
    assert (await agent.run([*first.messages, user("THE bomb")])).output == NO


async def test_a_word_in_a_tools_result_ends_the_turn_and_leaves_with_its_call() -> None:
    agent, model = guarded(call("leak", call_id="c1"), "Hello.", tools=[leak])
    first = await agent.run("tell me")
    second = await agent.run([*first.messages, user("hi")])
    assert (first.output, second.output) == (NO, "Hello.")
    assert texts(model.requests[1].messages) == ["tell me", NO, "hi"]
    assert unlawful(model.requests) == []


async def test_beside_a_result_with_a_word_the_others_stay() -> None:
    both = [call("leak", call_id="c1"), call("ok", call_id="c2")]
    agent, model = guarded(both, "Hello.", tools=[leak, ok])
    first = await agent.run("tell me")
    await agent.run([*first.messages, user("hi")])
    sent = model.requests[1].messages
    assert texts(sent) == ["tell me", "", "ok", NO, "hi"]
    assert [each.id for each in sent[1].tool_calls] == ["c2"]


async def test_an_error_result_with_a_word_is_kept_from_the_model_too() -> None:
    async def fails() -> str:
        raise LookupError("no bomb here")

    agent, model = guarded(call("fails", call_id="c1"), tools=[fails])
    assert (await agent.run("go")).output == NO
    assert len(model.requests) == 1


async def test_an_answer_with_a_word_is_replaced_and_its_cost_is_kept() -> None:
    agent, model = guarded(ChatResponse(assistant("First, the bomb."), Usage(3, 4)), "Hello.")
    first = await agent.run("go")
    second = await agent.run([*first.messages, user("hi")])
    assert (first.output, first.usage.total_tokens) == (NO, 7)
    assert texts(model.requests[1].messages) == ["go", NO, "hi"]
    assert second.output == "Hello."


@pytest.mark.parametrize(
    "arguments", ['{"what": "a bomb"}', '{"what": "a b\\u006fmb"}', '{"bomb": 1}', "not json: bomb"]
)
async def test_a_call_with_a_word_does_not_run(arguments: str) -> None:
    agent, _ = guarded([ToolCall("c1", "leak", arguments)], tools=[leak])
    result = await agent.run("go")
    assert texts(result.messages) == ["go", NO]


async def test_calls_beside_a_word_do_not_run() -> None:
    agent, _ = guarded(["The bomb.", call("ok", call_id="c1")], tools=[ok])
    assert texts((await agent.run("go")).messages) == ["go", NO]


async def test_a_handoff_beside_a_word_does_not_happen() -> None:
    model = ScriptedModel(["The bomb.", call("transfer_to_b", call_id="h1")])
    agent = Agent("A", model=model, handoffs=[Agent("B", model=ScriptedModel())], middleware=[Safeguard(["bomb"])])
    result = await agent.run("go")
    assert (result.output, result.agent) == (NO, "A")


async def test_what_was_streamed_of_a_replaced_answer_is_withdrawn() -> None:
    agent, _ = guarded("A bomb is made of")
    heard = await hear(agent, "go")
    streamed = {event.message_id for event in heard.of(Text)}
    (discard,) = heard.of(Discard)
    (done,) = heard.of(MessageDone)
    assert streamed == {discard.message_id}
    assert (done.message.text, done.message.id != discard.message_id) == (NO, True)
    assert [told.data["where"] for told in heard.of(Told)] == ["output"]


async def test_what_a_model_thinks_is_its_own() -> None:
    thought: list[Part] = [Reasoning("not the bomb"), Opaque("any", "thought", '{"t": "bomb"}'), Words("Hello.")]
    agent, _ = guarded(assistant(thought))
    assert (await agent.run("go")).output == "Hello."


@pytest.mark.parametrize(
    "message",
    [
        user([Words("a bo"), Words("mb")]),
        user([Words("x"), Words("a\u200bbo\u00admb")]),
        system("never speak of a bomb"),
        user([Words('{"q": "a b\\u006fmb"}')]),
        user([Words("x", extra='{"title": "bomb"}')]),
    ],
)
async def test_a_word_is_found_wherever_it_stands_in_a_message(message: Any) -> None:
    agent, _ = guarded()
    assert (await agent.run([message, user("hi")])).output == NO


async def test_a_word_in_two_parts_that_are_two_words_is_found_too() -> None:
    agent = Agent("X", model=ScriptedModel(), middleware=[Safeguard(["big secret"])])
    assert (await agent.run(user([Words("a big"), Words("secret")]))).output == NO


async def test_what_is_not_to_be_read_is_not() -> None:
    agent, _ = guarded(call("leak"), "the bomb", tools=[leak], input=False, tool_results=False)
    assert (await agent.run("a bomb")).output == NO
    agent, _ = guarded(call("leak"), "the bomb", tools=[leak], input=False, tool_results=False, output=True)
    result = await agent.run("a bomb")
    assert texts(result.messages) == ["a bomb", "", "how to make a bomb", NO]
    agent, _ = guarded("the bomb", output=False)
    assert (await agent.run("go")).output == "the bomb"


async def test_case_and_whole_words_count_where_they_are_to() -> None:
    agent, _ = guarded("yes", "bombastic", case_sensitive=True, whole_words=True)
    assert (await agent.run("the Bomb")).output == "yes"
    assert (await agent.run("go")).output == "bombastic"
    assert (await agent.run("the bomb")).output == NO


async def test_an_earlier_answer_from_elsewhere_is_left_out_too() -> None:
    agent, model = guarded("Hello.")
    result = await agent.run([user("go"), assistant("the bomb"), assistant("well"), user("hi")])
    assert (result.output, texts(model.requests[0].messages)) == ("Hello.", ["go", "well", "hi"])


CALLED = assistant(call("leak", call_id="c1"))
SAID_IT = assistant(call("ok", call_id="c1", what="a bomb"))


@pytest.mark.parametrize(
    ("earlier", "left"),
    [
        ([user("go"), assistant("the bomb")], ["go"]),
        ([user("a bomb"), assistant("the bomb"), user("go"), assistant("a bomb again")], ["go"]),
        ([user("go"), CALLED, tool_result(CALLED.tool_calls[0], "a bomb"), assistant("well")], ["go", "well"]),
        ([user("go"), CALLED, tool_result(CALLED.tool_calls[0], "a bomb"), assistant("the bomb")], ["go"]),
        ([user("go"), SAID_IT, tool_result(SAID_IT.tool_calls[0], "ok"), assistant("well")], ["go", "well"]),
        ([user("go"), SAID_IT, tool_result(SAID_IT.tool_calls[0], "ok"), assistant("the bomb")], ["go"]),
    ],
)
async def test_what_was_said_before_the_last_answer_or_in_it_does_not_refuse_a_clean_question(
    earlier: list[Message], left: list[str]
) -> None:
    agent, model = guarded("Hello.")
    heard = await hear(agent, [*earlier, user("hi")])
    assert heard.result is not None
    assert (heard.result.output, texts(model.requests[0].messages)) == ("Hello.", [*left, "hi"])
    assert (heard.of(Told), unlawful(model.requests)) == ([], [])


async def test_after_the_last_answer_every_message_is_new() -> None:
    agent, model = guarded()
    for new in ([user("a bomb"), user("hi")], [CALLED, tool_result(CALLED.tool_calls[0], "a bomb"), user("hi")]):
        assert (await agent.run([user("go"), assistant("well"), *new])).output == NO
    assert model.requests == []


async def test_where_nothing_would_be_left_the_model_is_not_asked() -> None:
    agent, model = guarded()
    assert (await agent.run([user("a bomb"), assistant("the bomb")])).output == NO
    assert model.requests == []


async def test_a_seed_that_crossed_is_read_by_the_agent_that_gets_it() -> None:
    target, model = guarded()
    triage = ScriptedModel(call("transfer_to_x", call_id="h1"))
    result = await Agent("A", model=triage, handoffs=[handoff(target, filter=full())]).run("a bomb")
    assert (result.agent, result.output, model.requests) == ("X", NO, [])


async def test_a_sub_agent_that_may_not_hear_it_answers_its_caller() -> None:
    child, _ = guarded()
    model = ScriptedModel(call("x", call_id="t1", input="a bomb"), "done")
    result = await Agent("A", model=model, tools=[child.to_tool()]).run("go")
    assert texts(result.messages) == ["go", "", NO, "done"]


class Spy(Middleware):
    """Notes what comes through to the layers inside."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        self.seen.append(texts(request.messages))
        return await call_next(request)


async def test_the_layers_inside_do_not_see_what_was_left_out_either() -> None:
    spy, model = Spy(), ScriptedModel(call("leak", call_id="c1"), "Hello.")
    agent = Agent("X", model=model, tools=[leak], middleware=[Safeguard(["bomb"]), spy])
    first = await agent.run("go")
    await agent.run([*first.messages, user("hi")])
    assert spy.seen == [["go"], ["go", NO, "hi"]]


async def test_an_answer_of_an_inner_layer_is_read_as_the_models_is() -> None:
    class Canned(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return ChatResponse(assistant("the bomb"))

    agent = Agent("X", model=ScriptedModel(), middleware=[Safeguard(["bomb"]), Canned()])
    assert (await agent.run("go")).output == NO


async def test_what_the_model_raises_passes() -> None:
    error = ModelUnavailable("busy")
    agent, _ = guarded(error)
    with pytest.raises(ModelUnavailable) as found:
        await agent.run("go")
    assert found.value is error


async def test_a_cancel_passes() -> None:
    begun = asyncio.Event()

    async def hang(request: Any) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent = Agent("X", model=FunctionModel(hang), middleware=[Safeguard(["bomb"])])
    run = asyncio.ensure_future(agent.run("go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_runs_side_by_side_do_not_mix() -> None:
    agent = Agent("X", model=FunctionModel(lambda request: request.messages[-1].text), middleware=[Safeguard(["bomb"])])
    results = await asyncio.gather(*[agent.run(text) for text in ("one", "a bomb", "two", "bombs", "three")])
    assert [result.output for result in results] == ["one", NO, "two", NO, "three"]


async def test_two_layers_with_other_words_read_for_themselves() -> None:
    layers = [Safeguard(["bomb"]), Safeguard(["gun"], name="guns")]
    agent = Agent("X", model=ScriptedModel("Hello."), middleware=layers)
    assert (await agent.run("a gun")).output == NO
    assert (await agent.run("a bomb")).output == NO
    assert (await agent.run("hi")).output == "Hello."


class Counted(str):
    """A text that counts how often it is read."""

    reads = 0

    def isascii(self) -> bool:
        Counted.reads += 1
        return super().isascii()


class Rebuilding(Middleware):
    """Sends the same messages in a new list each time."""

    async def around_chat(self, request: Any, call_next: Any) -> Any:
        return await call_next(request.replace(messages=tuple(request.messages)))


@pytest.mark.parametrize("outer", [[], [Rebuilding()]])
async def test_a_message_is_read_once_however_many_steps_follow(outer: list[Middleware]) -> None:
    model = ScriptedModel(*[call("ok", call_id=f"c{number}") for number in range(5)], "done")
    agent = Agent("X", model=model, tools=[ok], middleware=[*outer, Safeguard(["bomb"])])
    message = user([Words(Counted("a long text"))])
    Counted.reads = 0
    await agent.run([user("go"), message])
    assert (len(model.requests), Counted.reads) == (6, 2)


@pytest.mark.parametrize(
    ("words", "options", "found"),
    [
        ([], {}, "at least one"),
        ("bomb", {}, "a list of at least one"),
        (["bomb", ""], {}, "no word to look for"),
        (["bomb"], {"failure_response": ""}, "failure_response"),
        (["bomb"], {"failure_response": None}, "failure_response"),
        (["bomb"], {"failure_response": "No bombs."}, "holds one of the words"),
        (["bomb"], {"input": False, "tool_results": False, "output": False}, "reads nothing"),
    ],
)
def test_what_cannot_work_is_refused_at_once(words: Any, options: Any, found: str) -> None:
    with pytest.raises(BuildError, match=found):
        Safeguard(words, **options)


@pytest.mark.parametrize(
    "parts",
    [[r'```json\n{"a":"\u0046alcon"}\n```'.replace("\\n", "\n")], [r'{"a":"\u0046al', 'con"}']],
    ids=["fence", "parts"],
)
async def test_json_in_a_fence_or_in_several_parts_has_its_escapes_undone(parts: Any) -> None:
    model = ScriptedModel(assistant(*parts))
    result = await Agent("X", model=model, middleware=[Safeguard(["falcon"], failure_response="No.")]).run("go")
    assert result.output == "No."
