"""An answer fits its type or is given back, a bounded number of times; whatever happens, no call is left open."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agent.desks import answers, failure, hear, result_of, roles, texts, unlawful
from handrail.agent import (
    Agent,
    InvalidOutput,
    LimitExceeded,
    Limits,
    Output,
    RunError,
    RunResult,
    ScriptedModel,
    handoff,
    to_tool,
    tool,
)
from handrail.agent.accepting import NOT_TAKEN
from handrail.agent.events import Discard, MessageDone, Text
from handrail.agent.kernel import ChatRequest, Middleware, TurnRequest, TurnResult, jump, remove
from handrail.agent.models import ChatResponse, Profile
from handrail.agent.tools import Tool
from handrail.filters import Refusal, ToolCall, assistant, breaches, call, full
from handrail.filters import Text as Words
from handrail.sessions import Session, Usage, read, verify
from handrail.sessions.records import AgentRecord, MessageRecord, ViewRecord

NATIVE = Profile(json_schema=True)


class Parcel(BaseModel):
    city: str
    days: int = 0


class Lost(BaseModel):
    why: str


PORTO = Parcel(city="Porto")
RIGHT = '{"city":"Porto","days":0}'


def final(call_id: str = "", **arguments: Any) -> ToolCall:
    return call("final_answer", call_id=call_id, **arguments)


def asked(*answers: Any, kind: Any = Parcel, native: bool = False, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(*answers, profile=NATIVE if native else None)
    return Agent("Desk", model=model, output_type=kind, **options), model


def counting() -> tuple[Tool, list[str]]:
    runs: list[str] = []

    @tool(side_effects="pure")
    def look() -> str:
        """Looks."""
        runs.append("look")
        return "seen"

    return look, runs


async def given(agent: Agent, model: ScriptedModel, **options: Any) -> RunResult:
    """What a run gives, all of its requests and its view being lawful."""
    result = await agent.run("Where is it?", **options)
    model.done()
    assert not unlawful(model.requests)
    assert not breaches(result.messages)
    return result


async def test_a_call_that_fits_ends_the_turn_as_a_value_and_is_said_in_words() -> None:
    result = await given(*asked(final("c1", city="Porto")))
    assert (result.output, result.status, roles(result.messages)) == (PORTO, "completed", "uata")
    assert result.message is result.messages[-1]
    assert (result.message.text, answers(result.messages)) == (RIGHT, [("c1", "Accepted.")])
    assert result.verdict is not None
    assert (result.verdict.valid, result.verdict.attempts, result.verdict.value) == (True, 1, PORTO)


async def test_native_json_is_the_answer_and_its_own_words() -> None:
    agent, model = asked(RIGHT, native=True)
    result = await given(agent, model)
    assert (result.output, roles(result.messages)) == (PORTO, "ua")
    assert model.requests[0].output is not None
    assert model.requests[0].tools == ()


@pytest.mark.parametrize("text", [f"```json\n{RIGHT}\n```", f"Here:\n```\n{RIGHT}```\nDone.", f"  {RIGHT}\n"])
async def test_native_json_may_stand_in_a_fence(text: str) -> None:
    assert (await given(*asked(text, native=True))).output == PORTO


async def test_ordinary_calls_beside_the_answer_run_first() -> None:
    look, runs = counting()
    result = await given(*asked([final("c1", city="Porto"), call("look", call_id="c2")], tools=[look]))
    assert (result.output, runs) == (PORTO, ["look"])
    assert answers(result.messages) == [("c1", "Accepted."), ("c2", "seen")]


async def test_native_answers_with_calls_are_steps_like_any_other() -> None:
    look, runs = counting()
    agent, model = asked(["Let me see.", call("look", call_id="c1")], RIGHT, native=True, tools=[look])
    result = await given(agent, model)
    assert (result.output, runs, result.steps) == (PORTO, ["look"], 2)
    assert result.verdict is not None
    assert result.verdict.attempts == 1


async def test_a_call_that_does_not_fit_is_told_what_is_wrong() -> None:
    agent, model = asked(final("c1", days="no"), final("c2", city="Porto"))
    result = await given(agent, model)
    assert result.output == PORTO
    told = result_of(model.requests[1].messages, "c1")
    assert told.is_error
    assert "city: Field required; days: Input should be a valid integer" in told.text
    assert result.verdict is not None
    assert result.verdict.attempts == 2


async def test_of_several_answers_none_is_taken() -> None:
    agent, model = asked([final("c1", city="Porto"), final("c2", city="Faro")], final("c3", city="Porto"))
    result = await given(agent, model)
    told = [result_of(result.messages, call_id) for call_id in ("c1", "c2")]
    assert [message.is_error for message in told] == [True, True]
    assert all("one answer, and this response gives 2" in message.text for message in told)
    assert result.output == PORTO


async def test_words_in_place_of_a_call_are_answered_and_leave_the_view() -> None:
    agent, model = asked("It is in Porto.", final(city="Porto"))
    result = await given(agent, model)
    retried = model.requests[1].messages
    assert texts(retried)[1] == "It is in Porto."
    assert "calling final_answer" in retried[2].text
    assert (roles(retried), roles(result.messages)) == ("uau", "uata")
    assert "It is in Porto." in texts(result.new_messages)


async def test_a_native_answer_that_does_not_fit_stays_in_the_request_and_leaves_the_view() -> None:
    agent, model = asked('{"days":1}', "Porto", RIGHT, native=True)
    result = await given(agent, model)
    assert roles(model.requests[2].messages) == "uauau"
    assert "city: Field required" in model.requests[1].messages[-1].text
    assert "it is not JSON" in model.requests[2].messages[-1].text
    assert (result.output, roles(result.messages)) == (PORTO, "ua")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ChatResponse(assistant(final(city="Po")), finish_reason="length"), None),
        (ChatResponse(assistant(ToolCall("", "final_answer", '{"city":')), finish_reason="length"), "cut off"),
        (ChatResponse(assistant('{"city":'), finish_reason="length"), "Give a shorter answer."),
        (ChatResponse(assistant('{"city":'), finish_reason="content_filtered"), "a content filter cut it off"),
        (assistant(Refusal("I cannot.")), "it is a refusal"),
        (assistant(), "it is empty"),
    ],
)
async def test_what_was_cut_off_refused_or_empty_is_told_so(answer: Any, words: str | None) -> None:
    agent, model = asked(answer, *([final(city="Porto")] if words else []))
    result = await given(agent, model)
    if words is None:
        assert result.output == Parcel(city="Po")
    else:
        assert words in model.requests[1].messages[-1].text


@pytest.mark.parametrize("native", [True, False])
async def test_when_no_attempt_is_left_the_error_says_what_was_wrong(native: bool) -> None:
    wrong = '{"days":1}' if native else final(days=1)
    agent, model = asked(wrong, wrong, wrong, native=native)
    error = await failure(agent, "Where is it?")
    assert isinstance(error, InvalidOutput)
    assert (error.attempts, error.reason, error.answer) == (3, "city: Field required", '{"days":1}')
    assert not breaches(error.messages)
    assert error.usage.requests == 3
    model.done()


@pytest.mark.parametrize("native", [True, False])
async def test_it_may_return_without_a_value_and_say_why(native: bool) -> None:
    kind = Output(Parcel, retries=0, on_exhausted="return")
    result = await given(*asked('{"days":1}' if native else final(days=1), kind=kind, native=native))
    assert (result.output, result.status) == (None, "completed")
    assert result.verdict is not None
    assert (result.verdict.valid, result.verdict.reason, result.verdict.attempts) == (False, "city: Field required", 1)
    assert (result.message.text if result.message else None) == ('{"days":1}' if native else None)


@pytest.mark.parametrize("wrong", ["Porto", final(days=1)])
async def test_it_may_fall_back_on_a_value_which_is_then_said(wrong: Any) -> None:
    kind = Output(Parcel, retries=1, on_exhausted="fallback", fallback=PORTO)
    result = await given(*asked(wrong, wrong, kind=kind))
    assert result.output is PORTO
    assert result.message is not None
    assert result.message.text == RIGHT
    assert result.verdict is not None
    assert (result.verdict.valid, result.verdict.attempts) == (False, 2)
    assert "Porto" not in texts(result.messages)


async def test_attempts_are_counted_apart_from_ordinary_steps() -> None:
    look, runs = counting()
    steps = [final(), call("look"), final(), call("look"), final(city="Porto")]
    assert (await given(*asked(*steps, tools=[look]))).output == PORTO
    assert len(runs) == 2


async def test_words_are_an_answer_where_the_type_says_so() -> None:
    assert (await given(*asked("Who knows.", kind=Parcel | str))).output == "Who knows."
    assert (await given(*asked(final(city="Porto"), kind=Parcel | str))).output == PORTO
    assert (await given(*asked("Who knows.", kind=str))).output == "Who knows."
    assert (await given(*asked("Who knows.", kind=Parcel | str, native=True))).output == "Who knows."
    agent, model = asked('{"value":{"days":1}}', '{"value":"x"}', kind=Parcel | str, native=True)
    assert (await given(agent, model)).output == "x"
    agent, model = asked(assistant(Refusal("No.")), "Who knows.", kind=Parcel | str)
    assert (await given(agent, model)).output == "Who knows."


async def test_each_variant_of_a_union_has_its_tool() -> None:
    result = await given(*asked(call("final_answer_lost", why="rain"), kind=Parcel | Lost))
    assert result.output == Lost(why="rain")
    agent, model = asked("Hm.", call("final_answer_parcel", city="Porto"), kind=Parcel | Lost)
    await given(agent, model)
    assert "final_answer_parcel or final_answer_lost" in model.requests[1].messages[-1].text


async def test_a_wrapped_value_is_unwrapped_and_said_plainly() -> None:
    result = await given(*asked(final(value=[1, 2]), kind=list[int]))
    assert (result.output, result.messages[-1].text) == ([1, 2], "[1,2]")


async def test_a_handoff_beside_the_answer_wins() -> None:
    other = Agent("Other", model=ScriptedModel("I have it."))
    agent, _ = asked([final("c1", city="Porto"), call("transfer_to_other", call_id="h1")], handoffs=[other])
    result = await agent.run("Where is it?")
    assert (result.output, result.agent, result.verdict) == ("I have it.", "Other", None)
    said = result_of(result.new_messages, "c1")
    assert (said.text, said.is_error) == (NOT_TAKEN, True)


async def test_a_handoff_that_returns_beside_the_answer_wins_and_the_answer_is_asked_for_again() -> None:
    other = Agent("Other", model=ScriptedModel("Try Faro."))
    both = [final("c1", city="Porto"), call("transfer_to_other", call_id="h1")]
    agent, model = asked(both, final(city="Faro"), handoffs=[handoff(other, returns=full())])
    result = await given(agent, model)
    assert (result.output, result.verdict and result.verdict.attempts) == (Parcel(city="Faro"), 1)
    assert answers(model.requests[1].messages) == [("c1", NOT_TAKEN), ("h1", "Try Faro.")]


async def test_a_handoff_that_is_refused_does_not_stand_in_the_way() -> None:
    other = Agent("Other", model=ScriptedModel())
    both = [final("c1", city="Porto"), call("transfer_to_other", call_id="h1")]
    agent, model = asked(both, handoffs=[handoff(other, enabled=False)])
    assert (await given(agent, model)).output == PORTO


async def test_the_type_of_the_agent_that_answers_counts() -> None:
    target, _ = asked(final(city="Porto"))
    source = Agent("Front", model=ScriptedModel(call("transfer_to_desk")), handoffs=[target], output_type=Lost)
    result = await source.run("Where is it?")
    assert (result.output, result.agent) == (PORTO, "Desk")


async def test_a_sub_agent_gives_its_value_as_json() -> None:
    child, _ = asked(final(city="Porto"))
    boss = ScriptedModel(call("desk", call_id="c1", input="Where?"), "In Porto.")
    result = await Agent("Boss", model=boss, tools=[to_tool(child)]).run("Where?")
    assert answers(result.messages) == [("c1", RIGHT)]


@pytest.mark.parametrize("on_exhausted", ["raise", "return"])
@pytest.mark.parametrize("returning", [True, False])
async def test_an_agent_without_a_valid_answer_has_failed_for_who_asked_it(on_exhausted: Any, returning: bool) -> None:
    child, _ = asked("Porto.", kind=Output(Parcel, retries=0, on_exhausted=on_exhausted))
    name = "transfer_to_desk" if returning else "desk"
    boss = ScriptedModel(call(name, call_id="c1", **({} if returning else {"input": "Where?"})), "Sorry.")
    edge: dict[str, Any] = {"handoffs": [handoff(child, returns=full())]} if returning else {"tools": [to_tool(child)]}
    result = await Agent("Boss", model=boss, **edge).run("Where?")
    told = result_of(result.messages, "c1")
    assert told.is_error
    assert "InvalidOutput" in told.text


async def test_a_sub_agents_fallback_is_an_answer() -> None:
    child, _ = asked("?", kind=Output(Parcel | None, retries=0, on_exhausted="fallback", fallback=None))
    boss = ScriptedModel(call("desk", call_id="c1", input="Where?"), "Nowhere.")
    result = await Agent("Boss", model=boss, tools=[to_tool(child)]).run("Where?")
    assert answers(result.messages) == [("c1", "null")]


async def test_attempts_are_model_calls_like_any_other() -> None:
    class Counting(Middleware):
        seen = 0

        async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
            type(self).seen += 1
            response: ChatResponse = await call_next(request)
            return response

    spent = [ChatResponse(assistant(each), Usage(10, 2)) for each in ("Porto", final(), final(city="Porto"))]
    result = await given(*asked(*spent, middleware=[Counting()]))
    assert (Counting.seen, result.steps, result.usage) == (3, 3, Usage(30, 6, requests=3))


@pytest.mark.parametrize("wrong", ["Porto", final(days=1), [final(), final()]])
async def test_a_limit_ends_the_attempts_with_every_call_answered(wrong: Any) -> None:
    agent, _ = asked(wrong, limits=Limits(max_steps=1))
    error = await failure(agent, "Where is it?")
    assert isinstance(error, LimitExceeded)
    assert not breaches(error.messages)


async def test_a_limit_on_tool_calls_does_not_count_the_answer() -> None:
    look, _ = counting()
    agent, model = asked([call("look"), final(city="Porto")], tools=[look], limits=Limits(max_tool_calls=1))
    assert (await given(agent, model)).output == PORTO


async def test_a_cancelled_run_leaves_no_call_open(tmp_path: Path) -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        started.set()
        await asyncio.Event().wait()
        return ""

    agent, _ = asked("Porto", [final("c1", city="Porto"), call("wait", call_id="c2")], tools=[wait])
    with Session(tmp_path / "s.jsonl") as session:
        task = asyncio.ensure_future(agent.run("Where is it?", session=session))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        view = session.views["Desk"].history
    assert (roles(view), breaches(view)) == ("uatt", [])
    assert verify(tmp_path / "s.jsonl").state == "intact"
    assert list(Session(tmp_path / "s.jsonl").views["Desk"].history) == list(view)


@pytest.mark.parametrize("native", [True, False])
async def test_a_stream_ends_as_a_run_does_and_withdraws_what_was_rejected(native: bool) -> None:
    agent, _ = asked("It is in Porto.", RIGHT if native else final(city="Porto"), native=native)
    heard = await hear(agent, "Where is it?")
    assert heard.result is not None
    assert heard.result.output == PORTO
    (withdrawn,) = heard.of(Discard)
    assert "".join([e.text for e in heard.of(Text) if e.message_id == withdrawn.message_id]) == "It is in Porto."
    assert heard.of(MessageDone)[-1].message == heard.result.message


async def test_the_record_has_each_attempt_once_and_the_view_as_it_ended(tmp_path: Path) -> None:
    agent, _ = asked("Porto", final("c1"), final("c2", city="Porto"), final("c3", city="Faro"))
    path = tmp_path / "s.jsonl"
    result = await agent.run("Where is it?", session=str(path))
    records = list(read(path).records())
    said = [each for each in records if isinstance(each, MessageRecord)]
    assert [each.rejects for each in said if each.rejects] == [said[1].message.id]
    assert [each.reason for each in records if isinstance(each, ViewRecord)] == ["rejected answers and their feedback"]
    assert [each.output for each in records if isinstance(each, AgentRecord)] == [
        {"type": "Parcel", "mode": "tool", "reason": "provider_not_supported", "tools": ["final_answer"]}
    ]
    with Session(path) as session:
        assert list(session.views["Desk"].history) == list(result.messages)
        again = await agent.run("And now?", session=session)
    assert (again.output, roles(again.messages)) == (Parcel(city="Faro"), "uatatauata")
    assert verify(path).state == "intact"


async def test_a_turn_that_is_entered_again_has_all_its_attempts_again() -> None:
    class Elsewhere(Middleware):
        async def around_turn(self, request: TurnRequest, call_next: Any) -> TurnResult:
            result: TurnResult = await call_next(request)
            while result.output.city == "Porto":
                result = await call_next(request.again(result, "Not Porto."))
            return result

    kind = Output(Parcel, retries=1)
    attempts = ["?", final(city="Porto"), "?", final(city="Faro")]
    result = await given(*asked(*attempts, kind=kind, middleware=[Elsewhere()]))
    assert result.output == Parcel(city="Faro")
    assert "Not Porto." not in texts(result.messages)


@pytest.mark.parametrize(
    ("words", "native", "output"), [("Porto", False, None), (RIGHT, False, PORTO), (RIGHT, True, PORTO)]
)
async def test_a_turn_that_a_hook_ends_has_a_value_only_where_its_words_are_one(
    words: str, native: bool, output: Any
) -> None:
    class Ending(Middleware):
        jumps = {"after_model": ("end",)}  # noqa: RUF012  # it is only read

        async def after_model(self, state: Any, run: Any) -> Any:
            return jump("end")

    result = await given(*asked(words, native=native, middleware=[Ending()]))
    assert result.output == output
    assert result.verdict is not None
    assert result.verdict.valid is (output is not None)


async def test_an_answer_that_a_hook_took_away_is_asked_for_again() -> None:
    class Taking(Middleware):
        async def after_model(self, state: Any, run: Any) -> Any:
            return {"messages": remove(run.messages[-1].id)} if run.messages[-1].text == "Porto" else None

    agent, model = asked("Porto", final(city="Faro"), middleware=[Taking()])
    assert (await given(agent, model)).output == Parcel(city="Faro")
    assert "it is empty" in model.requests[1].messages[-1].text


async def test_a_model_that_cannot_be_held_to_the_schema_is_told_it_in_words() -> None:
    plain = ScriptedModel(RIGHT)

    class Instead(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
            response: ChatResponse = await call_next(request.replace(model=plain))
            return response

    agent, _ = asked(native=True, middleware=[Instead()])
    assert (await agent.run("Where is it?")).output == PORTO
    (request,) = plain.requests
    assert request.output is None
    assert '"city"' in request.instructions["output"]


async def test_only_calls_for_the_answer_ask_for_the_type() -> None:
    class Summing(Middleware):
        async def around_chat(self, request: ChatRequest, call_next: Any) -> ChatResponse:
            await call_next(request.replace(purpose="summary"))
            response: ChatResponse = await call_next(request)
            return response

    agent, model = asked("A summary.", RIGHT, native=True, middleware=[Summing()])
    await given(agent, model)
    assert [request.output is None for request in model.requests] == [True, False]


async def test_the_words_of_an_answer_are_as_sensitive_as_the_call_that_gave_it() -> None:
    labelled = ToolCall("c1", "final_answer", '{"city":"Porto"}', sensitivity="secret")
    result = await given(*asked(assistant(labelled)))
    assert result.messages[-1].sensitivity == "secret"

    @tool(output_sensitivity="internal")
    def look() -> str:
        """Looks."""
        return "Porto"

    agent, model = asked(call("look"), "?", final(city="Porto"), tools=[look], labels="inherit")
    result = await given(agent, model)
    assert [message.sensitivity for message in result.messages[-2:]] == ["internal", "internal"]


async def test_what_a_later_agent_is_handed_is_the_answer_in_words(tmp_path: Path) -> None:
    target, _ = asked(final(city="Porto"))
    front = ScriptedModel(call("transfer_to_desk"), "It is in Porto.")
    source = Agent("Front", model=front, handoffs=[handoff(target, next_turn="caller")])
    with Session(tmp_path / "s.jsonl") as session:
        await source.run("Where is it?", session=session)
        await source.run("Where?", session=session)
    assert RIGHT in texts(front.requests[-1].messages)


POOL: dict[str, Any] = {
    "fits": final(city="Porto"),
    "wrong": final(days=1),
    "broken": ToolCall("", "final_answer", '{"city"'),
    "twice": [final(city="Porto"), final(city="Faro")],
    "words": "Porto",
    "empty": assistant(),
    "refusal": assistant(Refusal("No.")),
    "look": call("look"),
    "beside": [Words("So:"), final(days=1), call("look"), call("nothing")],
    "over": [final(city="Porto"), call("transfer_to_other")],
    "asks": [final(city="Porto"), call("transfer_to_helper")],
    "json": RIGHT,
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("first", POOL)
async def test_whatever_is_answered_no_call_is_left_open_and_the_record_is_sound(
    first: str, native: bool, tmp_path: Path
) -> None:
    look, _ = counting()
    for second in POOL:
        helper = Agent("Helper", model=ScriptedModel(*["Hm."] * 3))
        other = Agent("Other", model=ScriptedModel("Done."))
        steps = [POOL[name] for name in (first, second, "fits")]
        agent, model = asked(
            *steps,
            native=native,
            tools=[look],
            handoffs=[other, handoff(helper, returns=full())],
            kind=Output(Parcel, retries=1),
            limits=Limits(max_steps=3),
        )
        path = tmp_path / f"{second}.jsonl"
        messages: Any
        try:
            messages = (await agent.run("Where is it?", session=str(path))).messages
        except RunError as error:
            messages = error.messages
        assert not breaches(messages), second
        assert not unlawful(model.requests), second
        with Session(path) as session:
            assert not [breach for view in session.views.values() for breach in breaches(view.history)]
            assert messages in [view.history for view in session.views.values()], second
        assert verify(path).state == "intact", second
