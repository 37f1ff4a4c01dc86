"""Models in the process answer as they were told, and a script is kept to."""

from typing import Any

import pytest

from agent.desks import failure, hear
from handrail.agent import Agent, FunctionModel, InvalidAnswer, ModelUnavailable, ScriptedModel, ScriptError
from handrail.agent.events import Arguments, ReasoningText, Text
from handrail.agent.kernel import ChatRequest
from handrail.agent.models import ChatResponse
from handrail.agent.scripted import as_response
from handrail.filters import Reasoning, assistant, call, user
from handrail.sessions import Usage


async def test_a_model_answers_with_words_parts_a_message_or_a_response() -> None:
    for answer in ("hi", ["hi"], assistant("hi"), ChatResponse(assistant("hi"))):
        result = await Agent("X", model=ScriptedModel(answer)).run("?")
        assert result.output == "hi"


async def test_a_function_may_be_async() -> None:
    async def answer(request: ChatRequest) -> str:
        return request.messages[-1].text.upper()

    assert (await Agent("X", model=FunctionModel(answer)).run("hi")).output == "HI"


@pytest.mark.parametrize("answer", [None, 7, user("hi"), [7], {"role": "assistant"}, b"hi"])
async def test_what_is_no_answer_is_refused_in_every_door(answer: Any) -> None:
    agent = Agent("X", model=FunctionModel(lambda request: answer))
    error = await failure(agent, "?")
    assert type(error) is InvalidAnswer
    assert type((await hear(agent, "?")).error) is InvalidAnswer


def test_an_answer_with_calls_ends_for_its_calls() -> None:
    assert as_response(call("f")).finish_reason == "tool_calls"
    assert as_response("words").finish_reason == "stop"


async def test_a_script_asked_for_more_fails_saying_what_was_asked() -> None:
    error = await failure(Agent("X", model=ScriptedModel()), "are you there?")
    assert type(error) is ScriptError
    assert "are you there?" in str(error)


def test_a_script_asked_for_less_fails_at_the_end_of_its_block() -> None:
    with pytest.raises(ScriptError, match="1 answers"), ScriptedModel("a", "b") as model:
        Agent("X", model=model).run_sync("?")


def test_an_error_in_the_block_is_not_hidden_by_answers_left_over() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedModel("a"):
        raise ZeroDivisionError


async def test_a_script_may_raise_or_ask_back() -> None:
    model = ScriptedModel(lambda request: f"{len(request.messages)} so far", ModelUnavailable("down"))
    agent = Agent("X", model=model)
    assert (await agent.run("?")).output == "1 so far"
    assert type(await failure(agent, "?")) is ModelUnavailable


async def test_a_stream_brings_words_thoughts_and_arguments_in_pieces_that_join_to_the_answer() -> None:
    said = assistant(Reasoning("Hm."), "I ask  the\nother.", call("f", call_id="c1", a=1))
    heard = await hear(Agent("X", model=ScriptedModel(said, "done")), "?")
    assert "".join(event.text for event in heard.of(Text)) == "I ask  the\nother.done"
    assert [event.text for event in heard.of(ReasoningText)] == ["Hm."]
    assert [(event.call_id, event.name, event.text) for event in heard.of(Arguments)] == [("c1", "f", '{"a":1}')]


async def test_what_an_answer_cost_is_counted_with_its_request() -> None:
    result = await Agent("X", model=ScriptedModel(ChatResponse(assistant("hi"), Usage(3, 2)))).run("?")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.requests) == (3, 2, 1)


def test_a_model_shows_its_name_and_nothing_else() -> None:
    assert repr(ScriptedModel("secret", name="m1")) == "ScriptedModel('m1')"
