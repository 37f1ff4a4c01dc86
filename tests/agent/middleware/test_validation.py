"""An answer that a function does not accept is given again, a bounded number of times, and the caller can tell."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent.desks import failure, hear, texts, unlawful
from handrail.agent import (
    Agent,
    BuildError,
    InvalidAnswer,
    LimitExceeded,
    Limits,
    Middleware,
    ScriptedModel,
    handoff,
    tool,
)
from handrail.agent.errors import InvalidOutput
from handrail.agent.events import Discard, Told
from handrail.agent.kernel import TurnRequest, TurnResult, Verdict
from handrail.agent.middleware import Validation
from handrail.filters import Message, assistant, call, system, user
from handrail.sessions import Session


@tool
def look(place: str) -> str:
    """Looks into a place."""
    return f"nothing in {place}"


def desk(*answers: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel(*answers)
    return Agent("desk", model=model, tools=[look], **options), model


def polite(output: str) -> str | None:
    return None if "please" in output else "say please"


async def test_a_bad_answer_is_shown_to_the_model_with_the_reason_and_given_again() -> None:
    agent, model = desk("Go.", "Go, please.", middleware=[Validation(polite)])
    result = await agent.run("How?")
    assert result.output == "Go, please."
    assert result.verdict == Verdict(valid=True, attempts=2, by="Validation", value="Go, please.")
    bad, feedback = model.requests[1].messages[-2:]
    assert (bad.text, feedback.role) == ("Go.", "user")
    assert "say please" in feedback.text


async def test_what_was_rejected_leaves_the_view_and_stays_in_the_log(tmp_path: Path) -> None:
    agent, _ = desk("Go.", "Go!", "Go, please.", middleware=[Validation(polite)])
    result = await agent.run("How?", session=tmp_path / "s.jsonl")
    session = Session(tmp_path / "s.jsonl")
    assert texts(result.messages) == texts(session.history()) == ["How?", "Go, please."]
    assert [text for text in texts(session.log) if text.startswith("Go")] == ["Go.", "Go!", "Go, please."]
    assert len(session.log) == 6


async def test_a_session_goes_on_after_a_rejected_answer_as_if_it_had_not_been(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    agent, model = desk("Go.", "Go, please.", "Bye, please.", middleware=[Validation(polite)])
    await agent.run("How?", session=path)
    await agent.run("And then?", session=path)
    assert texts(model.requests[-1].messages) == ["How?", "Go, please.", "And then?"]
    assert unlawful(model.requests) == []


async def test_attempts_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    agent, _ = desk("Go.", "Go, please.", middleware=[Validation(polite, keep_attempts=True)])
    result = await agent.run("How?", session=tmp_path / "s.jsonl")
    assert [message.role for message in result.messages] == ["user", "assistant", "user", "assistant"]
    assert tuple(Session(tmp_path / "s.jsonl").history()) == tuple(result.messages)


async def test_calls_of_a_rejected_attempt_keep_their_results() -> None:
    script = (call("look", call_id="c1", place="A"), "No.", call("look", call_id="c2", place="B"), "No, please.")
    agent, model = desk(*script, middleware=[Validation(polite)])
    result = await agent.run("Where?")
    assert [message.role for message in result.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert unlawful(model.requests) == []


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (False, "it is not valid"),
        ("too short", "too short"),
        ("", "it is not valid"),
        (0, r"it could not be checked \(TypeError\)"),
        ({}, r"it could not be checked \(TypeError\)"),
    ],
)
async def test_whatever_is_not_a_plain_yes_is_a_no(found: Any, reason: str) -> None:
    agent, _ = desk("Go.", middleware=[Validation(lambda output: found, retries=0)])
    with pytest.raises(InvalidOutput, match=reason) as raised:
        await agent.run("How?")
    assert (raised.value.by, raised.value.attempts, raised.value.answer) == ("Validation", 1, "Go.")


@pytest.mark.parametrize("found", [True, None])
async def test_true_and_none_are_yes(found: Any) -> None:
    agent, _ = desk("Go.", middleware=[Validation(lambda output: found)])
    assert (await agent.run("How?")).verdict == Verdict(valid=True, by="Validation", value="Go.")


async def test_a_value_error_is_a_reason_and_any_other_error_a_no_that_keeps_its_words_to_itself() -> None:
    def check(output: str) -> None:
        raise (ValueError("not a number") if output == "Go." else KeyError("password=9041"))

    agent, model = desk("Go.", "7", "8", middleware=[Validation(check)])
    heard = await hear(agent, "How?")
    assert isinstance(heard.error, InvalidOutput)
    assert isinstance(heard.error.__cause__, KeyError)
    assert "not a number" in model.requests[1].messages[-1].text
    assert "could not be checked" in model.requests[2].messages[-1].text
    assert "9041" not in "".join(texts(model.requests[2].messages))
    told = [event.data for event in heard.of(Told) if event.name == "rejected"]
    assert [each["error"] for each in told] == ["ValueError", "KeyError", "KeyError"]


async def test_a_check_may_be_async_and_may_ask_for_the_whole_result() -> None:
    async def check(result: TurnResult) -> bool:
        await asyncio.sleep(0)
        return bool(result.tool_calls)

    def annotated(turn: TurnResult) -> bool:
        return turn.steps > 1

    script = ("No.", call("look", call_id="c1", place="A"), "Yes.")
    agent, _ = desk(*script, middleware=[Validation(check), Validation(annotated, name="steps")])
    assert (await agent.run("Where?")).output == "Yes."


async def test_a_check_that_is_cancelled_cancels_the_run() -> None:
    async def check(output: str) -> None:
        raise asyncio.CancelledError

    agent, model = desk("Go.", middleware=[Validation(check)])
    with pytest.raises(asyncio.CancelledError):
        await agent.run("How?")
    assert len(model.requests) == 1


async def test_returned_after_the_last_attempt_the_verdict_says_that_it_does_not_hold() -> None:
    agent, model = desk("1", "2", "3", middleware=[Validation(polite, on_exhausted="return")])
    result = await agent.run("How?")
    assert (result.output, result.status) == ("3", "completed")
    assert result.verdict == Verdict(valid=False, reason="say please", attempts=3, by="Validation")
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    "fallback", ["Sorry.", assistant("Sorry."), lambda result: "Sorry.", lambda result: assistant("Sorry.")]
)
async def test_a_fallback_takes_the_place_of_the_last_answer(fallback: Any, tmp_path: Path) -> None:
    layer = Validation(polite, retries=1, on_exhausted="fallback", fallback=fallback)
    agent, _ = desk("1", "2", middleware=[layer])
    result = await agent.run("How?", session=tmp_path / "s.jsonl")
    assert (result.output, result.status) == ("Sorry.", "completed")
    assert result.verdict is not None
    assert not result.verdict.valid
    assert texts(result.messages) == ["How?", "Sorry."]
    assert tuple(Session(tmp_path / "s.jsonl").history()) == tuple(result.messages)


async def test_a_fallback_stands_in_for_an_answer_that_says_nothing() -> None:
    layer = Validation(polite, retries=0, on_exhausted="fallback", fallback="Sorry.")
    agent, _ = desk("", middleware=[layer])
    assert texts((await agent.run("How?")).messages) == ["How?", "Sorry."]


async def test_a_fallback_that_is_no_answer_is_an_error() -> None:
    layer = Validation(polite, retries=0, on_exhausted="fallback", fallback=lambda result: 5)  # type: ignore[arg-type]  # what is tested
    agent, _ = desk("1", middleware=[layer])
    assert isinstance(await failure(agent, "How?"), InvalidAnswer)


@pytest.mark.parametrize(
    ("feedback", "said"),
    [
        ("Bad ({reason}); {not a field}", "Bad (say please); {not a field}"),
        (lambda result, reason: f"{result.output} -> {reason}", "Go. -> say please"),
        (lambda result, reason: user(reason.upper()), "SAY PLEASE"),
    ],
)
async def test_feedback_is_a_template_or_a_function(feedback: Any, said: str) -> None:
    agent, model = desk("Go.", "please", middleware=[Validation(polite, feedback=feedback)])
    await agent.run("How?")
    assert model.requests[1].messages[-1].text == said


@pytest.mark.parametrize("said", [None, 5, system("No.")])
async def test_feedback_that_nobody_could_have_said_is_an_error(said: Any) -> None:
    agent, _ = desk("Go.", middleware=[Validation(polite, feedback=lambda result, reason: said)])
    assert isinstance(await failure(agent, "How?"), InvalidAnswer)


async def test_a_turn_that_hands_over_passes_through_unjudged() -> None:
    def never(output: str) -> bool:
        raise AssertionError("a handoff is no answer")

    billing = Agent("billing", model=ScriptedModel("Yes."))
    agent, _ = desk(
        call("transfer_to_billing", call_id="h1"), handoffs=[handoff(billing)], middleware=[Validation(never)]
    )
    result = await agent.run("Charged twice?")
    assert (result.output, result.verdict) == ("Yes.", None)


async def test_retries_are_counted_over_the_turn_however_often_it_is_entered() -> None:
    class Twice(Middleware):
        async def around_turn(self, request: TurnRequest, call_next: Any) -> TurnResult:
            first: TurnResult = await call_next(request)
            second: TurnResult = await call_next(request.again(first, "Once more."))
            return second

    agent, model = desk("1", "2", "please", "4", middleware=[Twice(), Validation(polite, on_exhausted="return")])
    result = await agent.run("How?")
    assert result.verdict == Verdict(valid=False, reason="say please", attempts=4, by="Validation")
    assert len(model.requests) == 4


async def test_attempts_count_against_the_runs_limits() -> None:
    agent, model = desk("1", "2", "3", middleware=[Validation(polite, retries=9)])
    with pytest.raises(LimitExceeded):
        await agent.run("How?", limits=Limits(max_steps=2))
    assert len(model.requests) == 2


async def test_the_no_of_an_inner_layer_stands() -> None:
    inner = Validation(polite, retries=0, on_exhausted="return", name="inner")
    agent, _ = desk("Go.", middleware=[Validation(lambda output: True, name="outer"), inner])
    verdict = (await agent.run("How?")).verdict
    assert verdict is not None
    assert (verdict.valid, verdict.by) == (False, "inner")


async def test_one_layer_serves_runs_at_once() -> None:
    agent, _ = desk(*["Go."] * 6, middleware=[Validation(polite, retries=1, on_exhausted="return")])
    results = await asyncio.gather(*[agent.run("How?") for _ in range(3)])
    assert [result.verdict.attempts for result in results if result.verdict] == [2, 2, 2]


async def test_text_of_a_rejected_answer_is_withdrawn_from_who_listens() -> None:
    agent, _ = desk("Go.", "Go, please.", middleware=[Validation(polite)])
    heard = await hear(agent, "How?")
    assert [event.reason for event in heard.of(Discard)] == ["the answer was rejected"]
    assert heard.result is not None
    assert heard.result.output == "Go, please."


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"check": "x"}, "a function, not 'x'"),
        ({"retries": -1}, "retries of Validation"),
        ({"retries": True}, "retries of Validation"),
        ({"on_exhausted": "stop"}, "on_exhausted of Validation"),
        ({"on_exhausted": "fallback"}, "together, or neither"),
        ({"fallback": "Sorry."}, "together, or neither"),
        ({"on_exhausted": "fallback", "fallback": ""}, "the fallback of Validation"),
        ({"on_exhausted": "fallback", "fallback": user("Sorry.")}, "the fallback of Validation"),
        ({"feedback": 5}, "the feedback of Validation"),
        ({"name": "tone", "retries": None}, "retries of tone"),
    ],
)
def test_options_that_cannot_work_are_refused_when_the_layer_is_made(options: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        Validation(**{"check": polite, **options})


async def test_the_error_carries_the_transcript_and_what_was_spent() -> None:
    agent, _ = desk("1", "2", middleware=[Validation(polite, retries=1)])
    error = await failure(agent, "How?")
    assert isinstance(error, InvalidOutput)
    assert (error.reason, error.answer, error.usage.requests) == ("say please", "2", 2)
    assert all(isinstance(message, Message) for message in error.messages)
