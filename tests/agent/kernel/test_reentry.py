"""A layer around the turn may have the agent try once more: all is stored once, and what was rejected leaves."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, hear, ids, roles, texts
from handrail.agent import (
    Agent,
    FunctionModel,
    InvalidAnswer,
    LimitExceeded,
    Limits,
    Middleware,
    ModelUnavailable,
    Output,
    RunContext,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.events import Discard, MessageDone
from handrail.agent.kernel import around_chat, around_tool, around_turn, before_model, jump
from handrail.agent.models import ChatResponse
from handrail.filters import Message, assistant, breaches, call, full, user
from handrail.sessions import MessageRecord, Session, ToolResultRecord, Usage, read, verify

Judge = Callable[[str], str]
"""What is wrong with an answer; nothing for a good one."""


class Check(Middleware):
    """Has the agent try again while its answer is judged wrong."""

    def __init__(self, judge: Judge, tries: int = 5, *, keep: bool = False) -> None:
        self.judge, self.tries, self.keep = judge, tries, keep

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        for _ in range(self.tries):
            if result.status != "completed" or not (wrong := self.judge(result.output)):
                break
            result = await call_next(request.again(result, wrong, keep_attempts=self.keep))
        return result


def good(answer: str) -> str:
    return "" if answer == "good" else f"{answer} is wrong"


async def ok() -> str:
    return "ok"


def desk(*script: Any, layers: Sequence[Middleware] = (Check(good),), **options: Any) -> Agent:
    return Agent("A", model=ScriptedModel(*script), middleware=layers, tools=[ok], **options)


@pytest.fixture(params=["with a session", "without one"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "s.jsonl" if request.param == "with a session" else None


async def test_the_model_sees_all_it_said_and_what_was_wrong_and_the_view_ends_with_the_good_answer(
    session: Path | None,
) -> None:
    model = ScriptedModel("bad", "worse", "good")
    result = await Agent("A", model=model, middleware=[Check(good)]).run("go", session=session)
    assert texts(model.requests[2].messages) == ["go", "bad", "bad is wrong", "worse", "worse is wrong"]
    assert (result.output, texts(result.messages)) == ("good", ["go", "good"])


async def test_history_is_not_loaded_a_second_time(session: Path | None) -> None:
    model = ScriptedModel("good", "bad", "good")
    agent = Agent("A", model=model, middleware=[Check(good)])
    first = await agent.run("one", session=session)
    given = "two" if session else [*first.messages, user("two")]
    result = await agent.run(given, session=session)
    assert texts(model.requests[2].messages) == ["one", "good", "two", "bad", "bad is wrong"]
    assert texts(result.messages) == ["one", "good", "two", "good"]


async def test_each_message_is_stored_once_and_the_log_keeps_what_was_rejected(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    result = await desk(call("ok", call_id="c1"), "bad", call("ok", call_id="c2"), "good").run("go", session=path)
    records = [each for each in read(path).records() if isinstance(each, MessageRecord | ToolResultRecord)]
    stored = [record.message.id for record in records]
    assert len(stored) == len(set(stored)) == 8
    assert texts(Session(path).log) == ["go", "", "ok", "bad", "bad is wrong", "", "ok", "good"]
    assert (roles(result.messages), breaches(result.messages)) == ("uatata", [])
    assert Session(path).history("A") == result.messages
    assert verify(path).state == "intact"


async def test_the_feedback_says_which_answer_it_rejects(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    await desk("bad", "good").run("go", session=path)
    said = {record.message.text: record for record in read(path).records() if isinstance(record, MessageRecord)}
    assert said["bad is wrong"].rejects == said["bad"].message.id


async def test_attempts_that_are_to_be_kept_stay_in_the_view(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    result = await desk("bad", "good", layers=[Check(good, keep=True)]).run("go", session=path)
    assert texts(result.messages) == ["go", "bad", "bad is wrong", "good"]
    assert Session(path).history("A") == result.messages


async def test_feedback_may_be_a_message_of_its_own() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        return await call_next(request.again(result, user("Look closer.", sensitivity="secret")))

    model = ScriptedModel("bad", "good")
    await Agent("A", model=model, middleware=[around_turn(again)]).run("go")
    assert model.requests[1].messages[-1].sensitivity == "secret"


async def test_steps_usage_and_calls_add_up_over_all_attempts() -> None:
    def spends(answer: Any) -> ChatResponse:
        return ChatResponse(answer if isinstance(answer, Message) else assistant(answer), Usage(10, 1))

    results: list[Any] = []

    async def look(request: Any, call_next: Any) -> Any:
        results.append(await call_next(request))
        return results[-1]

    script = [spends(assistant(call("ok", call_id="c1"))), spends("bad"), spends("good")]
    result = await desk(*script, layers=[around_turn(look), Check(good)]).run("go")
    assert (result.steps, result.usage) == (3, Usage(30, 3, requests=3))
    assert (results[0].steps, results[0].usage, len(results[0].tool_calls)) == (3, Usage(30, 3, requests=3), 1)


async def test_a_limit_is_not_given_anew_to_another_attempt() -> None:
    error = await failure(desk(*["bad"] * 9, layers=[Check(good, tries=9)]), "go", limits=Limits(max_steps=3))
    assert isinstance(error, LimitExceeded)
    assert (texts(error.messages), error.usage.requests) == (["go"], 3)


async def test_an_answer_that_is_never_good_is_returned_as_the_last_one_was() -> None:
    result = await desk("one", "two", "three", layers=[Check(good, tries=2)]).run("go")
    assert (result.output, texts(result.messages)) == ("three", ["go", "three"])


async def test_a_stream_withdraws_what_was_rejected() -> None:
    heard = await hear(desk("bad", "good"), "go")
    said = {event.message.text: event.message.id for event in heard.of(MessageDone)}
    assert [event.message_id for event in heard.of(Discard)] == [said["bad"]]


async def test_private_state_lives_on_across_attempts() -> None:
    class Count(Middleware):
        def init_state(self) -> dict[str, Any]:
            return {"n": 0}

        async def around_chat(self, request: Any, call_next: Any) -> Any:
            request.state["n"] += 1
            seen.append(request.state["n"])
            return await call_next(request)

    seen: list[int] = []
    await desk("bad", "worse", "good", layers=[Check(good), Count()]).run("go")
    assert seen == [1, 2, 3]


async def test_of_two_layers_that_try_again_the_inner_one_is_asked_first(tmp_path: Path) -> None:
    class Other(Check):
        pass

    path = tmp_path / "s.jsonl"
    outer = Other(lambda answer: "" if answer == "good" else "not good")
    inner = Check(lambda answer: "" if answer in ("fair", "good") else "not even fair")
    model = ScriptedModel("bad", "fair", "bad", "good")
    result = await Agent("A", model=model, middleware=[outer, inner]).run("go", session=path)
    said = ["go", "bad", "not even fair", "fair", "not good", "bad", "not even fair"]
    assert texts(model.requests[3].messages) == said
    assert texts(result.messages) == ["go", "good"]
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


async def test_an_answer_without_words_may_be_rejected_too(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    result = await desk("", "good", layers=[Check(lambda answer: "" if answer else "say something")]).run(
        "go", session=path
    )
    assert texts(result.messages) == ["go", "good"]
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


async def test_the_best_of_several_attempts_may_be_the_answer(tmp_path: Path) -> None:
    async def best(request: Any, call_next: Any) -> Any:
        tries = [await call_next(request)]
        for _ in range(2):
            tries.append(await call_next(request.again(tries[-1], "Shorter.")))
        return min(tries, key=lambda each: len(each.output))

    path = tmp_path / "s.jsonl"
    result = await desk("long", "x", "longer", layers=[around_turn(best)]).run("go", session=path)
    assert (result.output, texts(result.messages)) == ("x", ["go", "x"])
    assert result.message is not None
    assert ids(result.messages)[-1] == result.message.id
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


def leads(answer: str, **options: Any) -> Agent:
    """B, that A may hand over to."""
    return Agent("B", model=ScriptedModel(*([answer] if answer else [])), **options)


async def test_a_turn_that_handed_over_must_pass_through() -> None:
    async def again(request: Any, call_next: Any) -> Any:
        return await call_next(request.again(await call_next(request), "Once more."))

    agent = desk(call("transfer_to_b", call_id="h1"), layers=[around_turn(again)], handoffs=[handoff(leads(""))])
    error = await failure(agent, "go")
    assert type(error) is InvalidAnswer
    assert "'handed_over' must pass through" in str(error)


@pytest.mark.parametrize("anew", [True, False])
async def test_a_turn_that_handed_over_cannot_be_entered_again_by_hand(anew: bool) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        more = request if anew else request.replace(messages=(*result.messages, user("more")), load_history=False)
        return await call_next(more)

    agent = desk(call("transfer_to_b", call_id="h1"), layers=[around_turn(again)], handoffs=[handoff(leads(""))])
    error = await failure(agent, "go")
    assert type(error) is InvalidAnswer
    assert "it handed over" in str(error)


@pytest.mark.parametrize("by", ["again", "hand"])
async def test_a_turn_that_failed_must_pass_through(by: str) -> None:
    async def fails(request: Any, call_next: Any) -> Any:
        return (await call_next(request)).replace(status="failed")

    async def again(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        return await call_next(request.again(result, "Once more.") if by == "again" else request)

    error = await failure(desk("one", "two", layers=[around_turn(again), around_turn(fails)]), "go")
    assert type(error) is InvalidAnswer
    assert "'failed'" in str(error)


async def test_a_turn_that_failed_and_passes_through_is_how_the_run_ends(tmp_path: Path) -> None:
    async def fails(request: Any, call_next: Any) -> Any:
        return (await call_next(request)).replace(status="failed")

    path = tmp_path / "s.jsonl"
    result = await desk("bad", layers=[Check(good), around_turn(fails)]).run("go", session=path)
    assert (result.status, result.output) == ("failed", "bad")


async def test_what_was_rejected_before_a_handoff_does_not_cross_and_the_record_verifies(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    b = leads("B is here")
    agent = desk("bad", call("transfer_to_b", call_id="h1"), handoffs=[handoff(b, filter=full())])
    result = await agent.run("go", session=path)
    assert texts(result.handoffs[0].seed) == ["go"]
    assert (result.output, verify(path).state) == ("B is here", "intact")
    assert texts(Session(path).history("A")) == ["go", "", "The conversation goes to B."]


async def test_attempts_that_are_kept_cross_as_all_else_does(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    agent = desk(
        "bad",
        call("transfer_to_b", call_id="h1"),
        layers=[Check(good, keep=True)],
        handoffs=[handoff(leads("B is here"), filter=full())],
    )
    result = await agent.run("go", session=path)
    assert texts(result.handoffs[0].seed) == ["go", "bad", "bad is wrong"]
    assert verify(path).state == "intact"


async def test_a_sub_agent_tries_again_within_its_call(tmp_path: Path) -> None:
    child = Agent("Child", model=ScriptedModel("bad", "good"), middleware=[Check(good)])
    model = ScriptedModel(call("child", call_id="k1", input="Help."), "done")
    path = tmp_path / "s.jsonl"
    result = await Agent("Boss", model=model, tools=[child.to_tool(expose="all")]).run("go", session=path)
    assert texts(result.messages) == ["go", "", "good", "done"]
    assert (Session(path).history("Boss"), verify(path).state) == (result.messages, "intact")


async def test_what_was_rejected_does_not_cross_to_a_sub_agent(tmp_path: Path) -> None:
    child = ScriptedModel("helped")
    tools = [Agent("Child", model=child).to_tool(filter=full())]
    model = ScriptedModel("bad", call("child", call_id="k1", input="Help."), "good")
    path = tmp_path / "s.jsonl"
    await Agent("Boss", model=model, tools=tools, middleware=[Check(good)]).run("go", session=path)
    assert texts(child.requests[0].messages) == ["go", "Help."]
    assert verify(path).state == "intact"


class Retry(Middleware):
    """Begins the turn again when it failed."""

    async def around_turn(self, request: Any, call_next: Any) -> Any:
        try:
            return await call_next(request)
        except ModelUnavailable:
            return await call_next(request)


async def test_a_turn_that_is_begun_again_after_an_error_begins_from_what_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    model = ScriptedModel(call("ok", call_id="c1"), ModelUnavailable("busy"), "good")
    result = await Agent("A", model=model, tools=[ok], middleware=[Retry()]).run("go", session=path)
    assert texts(model.requests[2].messages) == ["go"]
    assert texts(result.messages) == ["go", "good"]
    assert texts(Session(path).log) == ["go", "", "ok", "good"]
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


@tool
def leave(context: RunContext[Any]) -> str:
    """Hands the conversation over."""
    context.handoff("B")
    return "leaving"


async def test_a_handoff_asked_for_before_an_error_is_forgotten_when_the_turn_is_begun_again() -> None:
    failing = [True]

    async def fail_once(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if failing.pop() if failing else False:
            raise ModelUnavailable("busy")
        return response

    model = ScriptedModel(call("leave", call_id="c1"), "good")
    layers = [Retry(), around_tool(fail_once)]
    result = await Agent("A", model=model, tools=[leave], handoffs=[leads("")], middleware=layers).run("go")
    assert (result.output, result.agent) == ("good", "A")


async def test_a_retry_of_the_model_call_is_no_reentry(tmp_path: Path) -> None:
    async def twice(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request)

    path = tmp_path / "s.jsonl"
    result = await desk("good", "good", layers=[Check(good), around_chat(twice)]).run("go", session=path)
    assert texts(result.messages) == ["go", "good"]
    assert texts(Session(path).log) == ["go", "good"]


async def test_a_layer_may_give_the_agent_other_messages_altogether(tmp_path: Path) -> None:
    async def other(request: Any, call_next: Any) -> Any:
        await call_next(request)
        return await call_next(request.replace(messages=(user("something else"),), load_history=False))

    path = tmp_path / "s.jsonl"
    model = FunctionModel(lambda request: f"heard {request.messages[-1].text}")
    result = await Agent("A", model=model, middleware=[around_turn(other)]).run("go", session=path)
    assert texts(result.messages) == ["something else", "heard something else"]
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


async def first_of_two(request: Any, call_next: Any) -> Any:
    first = await call_next(request)
    await call_next(request)
    return first


async def words_for_silence(request: Any, call_next: Any) -> Any:
    result = await call_next(request)
    return result if result.output else result.replace(message=result.message.replace(content="sorry"))


async def as_last_time(request: Any, call_next: Any) -> Any:
    known = [message for message in request.run.messages if message.role == "assistant"]
    result = await call_next(request)
    return result.replace(message=known[0], output=known[0].text) if known else result


@pytest.mark.parametrize(
    ("around", "script", "view"),
    [
        (first_of_two, ["one", "two"], ["go", "one"]),
        (words_for_silence, [""], ["go", "sorry"]),
        (as_last_time, ["one"], ["go", "one"]),
    ],
)
async def test_whichever_answer_a_layer_gives_in_the_end_the_view_ends_with_it_and_no_id_is_stored_twice(
    around: Any, script: list[str], view: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    result = await desk(*script, "", layers=[around_turn(around)]).run("go", session=path)
    stored = [record.message.id for record in read(path).records() if isinstance(record, MessageRecord)]
    assert texts(result.messages) == view
    assert len(set(stored)) == len(stored)
    assert result.message == result.messages[-1]
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


async def test_an_answer_from_the_past_that_a_layer_gives_again_is_another_message(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    agent = desk("one", "two", layers=[around_turn(as_last_time)])
    await agent.run("go", session=path)
    result = await agent.run("again", session=path)
    assert texts(result.messages) == ["go", "one", "again", "one"]
    assert len(set(ids(result.messages))) == 4
    assert (Session(path).history("A"), verify(path).state) == (result.messages, "intact")


async def test_an_answer_that_a_layer_gives_in_place_of_the_loops_withdraws_that() -> None:
    async def other(request: Any, call_next: Any) -> Any:
        result = await call_next(request)
        return result.replace(message=assistant("I may not say that."), output="I may not say that.")

    heard = await hear(desk("a secret", layers=[around_turn(other)]), "go")
    said = {event.message.text: event.message.id for event in heard.of(MessageDone)}
    assert [event.message_id for event in heard.of(Discard)] == [said["a secret"]]
    assert heard.result is not None
    assert texts(heard.result.messages) == ["go", "I may not say that."]


async def test_what_is_said_where_there_was_no_answer_does_not_cross_either(tmp_path: Path) -> None:
    async def again(request: Any, call_next: Any) -> Any:
        return await call_next(request.again(await call_next(request), "Say something."))

    left = [jump("end")]

    async def silent(state: Any, run: Any) -> Any:
        return left.pop() if left else None

    path = tmp_path / "s.jsonl"
    layers = [around_turn(again), before_model(jumps=["end"])(silent)]
    agent = desk(call("transfer_to_b", call_id="h1"), layers=layers, handoffs=[handoff(leads("done"), filter=full())])
    result = await agent.run("go", session=path)
    assert texts(result.handoffs[0].seed) == ["go"]
    assert verify(path).state == "intact"


async def test_what_is_said_of_an_answer_is_as_sensitive_as_the_answer() -> None:
    class Again(Middleware):
        async def around_turn(self, request: Any, call_next: Any) -> Any:
            result = await call_next(request)
            return await call_next(request.again(result, f"Do not say {result.output!r}.", keep_attempts=True))

    model = ScriptedModel(assistant("code 7741", sensitivity="secret"), "ok")
    result = await Agent("X", model=model, middleware=[Again()]).run("go")
    assert [message.sensitivity for message in result.messages] == [None, "secret", "secret", None]


async def test_an_agent_with_an_output_type_that_is_entered_again_has_all_its_attempts() -> None:
    def answer(value: Any) -> Any:
        return call("final_answer", value=value)

    layer = Check(lambda output: "" if str(output) == "2" else "It is not 2.")
    model = ScriptedModel(answer("bad"), answer(1), answer("bad"), answer(2))
    agent = Agent("A", model=model, middleware=[layer], output_type=Output(int, retries=1))
    result = await agent.run("go")
    assert (result.output, len(model.requests)) == (2, 4)
    assert result.verdict is not None
    assert result.verdict.attempts == 2
