"""A recorded session with something otherwise, beside what it was: as far as its answers hold, and live from there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.agent import Agent, FunctionModel, Limits, ScriptedModel, fan_out, handoff, tool
from handrail.agent.errors import ReplayRefused
from handrail.agent.kernel import Middleware
from handrail.agent.models import ChatResponse
from handrail.agent.replay import Comparison, WhatIf, what_if, what_if_sync
from handrail.filters import assistant, call, full, last_n, last_user, none, summarize, user
from handrail.sessions import Usage

done: list[str] = []


@tool(side_effects="read_only")
async def look(n: int = 0) -> str:
    """Looks something up."""
    done.append(f"look {n}")
    return f"found {n}"


def desk(script: Sequence[Any] = (), answers: Sequence[Any] = ()) -> Agent:
    """Triage, which hands to billing; billing looks something up and answers."""
    billing = Agent("billing", model=ScriptedModel(*answers), instructions="You refund.", tools=[look])
    edge = handoff(billing, filter=full())
    return Agent(
        "triage", model=ScriptedModel(*script), instructions="You are the desk.", tools=[look], handoffs=[edge]
    )


@pytest.fixture
async def recorded(tmp_path: Path) -> Path:
    script = [call("look", call_id="c1", n=1), call("transfer_to_billing", call_id="h1", reason="money")]
    answers = [call("look", call_id="c2", n=2), "Refunded."]
    await desk(script, answers).run("I was charged twice.", session=str(tmp_path / "s.jsonl"))
    done.clear()
    return tmp_path / "s.jsonl"


def outline(found: WhatIf) -> list[tuple[str, int, bool, bool]]:
    """Of each comparison what it is, its number, whether it differs, and whether it is proven."""
    return [(each.what, each.number, bool(each.differences), each.proven) for each in found.comparisons]


async def test_where_nothing_is_otherwise_everything_is_as_it_was(recorded: Path) -> None:
    found = await what_if(recorded, desk())
    steps = [("request", 1), ("request", 2), ("boundary", 1), ("request", 3), ("request", 4)]
    assert outline(found) == [(*step, False, True) for step in steps]
    assert (found.same, str(found), done) == (True, "5 boundaries and requests, 0 otherwise (answers: none)", [])


async def test_without_answers_it_goes_up_to_the_first_request_that_differs(recorded: Path) -> None:
    found = await what_if(recorded, desk(), filters={"triage -> billing": last_user()})
    assert outline(found)[2:] == [("boundary", 1, True, True), ("request", 3, True, True)]
    boundary, request = found.differing
    assert [len(boundary.then or ()), len(boundary.now), len(request.now)] == [3, 1, 1]
    assert boundary.tokens_then is not None
    assert boundary.tokens_then > boundary.tokens_now


async def test_with_recorded_answers_it_goes_on_and_says_that_this_is_not_proven(recorded: Path) -> None:
    found = await what_if(recorded, desk(), filters={"triage->billing": last_user()}, answers="recorded")
    assert outline(found)[3:] == [("request", 3, True, True), ("request", 4, True, False)]
    assert ", not proven" in str(found)


async def test_instructions_and_models_are_otherwise_too(recorded: Path) -> None:
    found = await what_if(recorded, desk(), instructions="You are brief.")
    assert [each.where for each in found.comparisons[0].differences] == ["instructions agent"]
    assert len(found.comparisons) == 1
    found = await what_if(recorded, desk(), instructions={"billing": "No."}, model=ScriptedModel(name="other"))
    assert [each.where for each in found.comparisons[0].differences] == ["model"]


async def test_a_layer_is_otherwise_and_what_it_changes_is_shown(recorded: Path) -> None:
    class Asking(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(messages=[*request.messages, user("Be brief.", id="brief")]))

    (first,) = (await what_if(recorded, desk(), middleware=[Asking()])).comparisons
    assert [each.now for each in first.differences] == ["Be brief."]


async def test_things_are_otherwise_from_a_place_on_and_compared_from_there(recorded: Path) -> None:
    words = {"triage": "Other.", "billing": "Other."}
    found = await what_if(recorded, desk(), at="step:4", instructions=words, answers="recorded")
    assert outline(found) == [("request", 4, True, True)]
    found = await what_if(recorded, desk(), at=1, filters={"triage->billing": none()}, answers="recorded")
    assert outline(found)[0] == ("boundary", 1, True, True)


async def test_a_session_that_diverges_before_the_place_says_so(recorded: Path) -> None:
    other = Agent("triage", model=ScriptedModel(), instructions="Otherwise.", tools=[look], handoffs=desk().handoffs)
    found = await what_if(recorded, other, at="step:3", instructions={"billing": "No."})
    assert found.divergence is not None
    assert (found.divergence.step, found.comparisons, found.same) == (1, (), False)


async def test_live_a_model_answers_from_the_first_difference_on_within_limits(recorded: Path) -> None:
    model = ScriptedModel(call("look", call_id="x1", n=2), call("look", call_id="x2", n=9), "All done.", name="live")
    found = await what_if(recorded, desk(), filters={"triage->billing": last_user()}, answers=model)
    assert (found.live_calls, found.output, done) == (3, "All done.", [])
    assert found.notes == ('look({"n":9}) was not permitted',)
    assert "found 2" in [message.text for message in model.requests[-1].messages]


async def test_live_tools_run_where_they_are_permitted(recorded: Path) -> None:
    model = ScriptedModel(call("look", call_id="x1", n=9), "All done.")
    found = await what_if(recorded, desk(), at="step:3", answers=model, allow=["look"])
    assert (found.output, done) == ("All done.", ["look 9"])


async def test_live_it_ends_where_its_limits_are_reached(recorded: Path) -> None:
    model = FunctionModel(lambda request: call("look", n=1))
    found = await what_if(recorded, desk(), at="step:3", answers=model, limits=Limits.only(max_steps=4))
    assert (found.live_calls, found.output) == (4, "")
    assert "LimitExceeded" in found.notes[-1]


@pytest.mark.parametrize("answers", ["none", "recorded"])
async def test_a_call_and_a_last_answer_that_are_otherwise_are_told_though_no_request_shows_them(
    recorded: Path, answers: Any
) -> None:
    class Deeper(Middleware):
        async def around_tool(self, request: Any, call_next: Any) -> Any:
            return await call_next(request.replace(arguments={"n": 9}))

    class Louder(Middleware):
        async def around_chat(self, request: Any, call_next: Any) -> Any:
            response = await call_next(request)
            said = response.message
            return response if said.tool_calls else response.replace(message=assistant(said.text.upper()))

    for layer, what in ((Deeper(), "call"), (Louder(), "answer")):
        found = await what_if(recorded, desk(), middleware=[layer], answers=answers)
        assert (found.same, found.differing, found.others[0].what) == (False, (), what)
        assert str(found.others[0]) in str(found)
        assert all(each.proven for each in found.comparisons) == (what == "answer")


async def test_a_filter_that_asks_in_the_place_of_another_is_asked(recorded: Path) -> None:
    async def shorter(messages: Any) -> str:
        return "Charged twice."

    found = await what_if(recorded, desk(), filters={"triage->billing": summarize(shorter)})
    assert found.differing[0].what == "boundary"
    assert "Charged twice." in found.differing[0].now[0].text


async def test_live_what_the_model_used_counts(recorded: Path) -> None:
    model = FunctionModel(lambda request: ChatResponse(assistant(call("look", n=1)), Usage(60, 0, requests=1)))
    found = await what_if(recorded, desk(), at="step:3", answers=model, limits=Limits.only(max_tokens=100))
    assert (found.live_calls, found.output) == (2, "")
    assert "LimitExceeded" in found.notes[-1]


async def test_branches_beside_one_that_differs_are_compared_to_their_ends(tmp_path: Path) -> None:
    def made(script: Sequence[Any] = ()) -> Agent:
        twins = [Agent(name, model=FunctionModel(lambda request: "mine"), tools=[look]) for name in ("one", "two")]
        return Agent("boss", model=ScriptedModel(*script), tools=[fan_out(twins, name="both")])

    path = str(tmp_path / "s.jsonl")
    await made([call("both", call_id="t1", input="x"), "done"]).run("go", session=path)
    found = await what_if(path, made(), instructions={"one": "Otherwise."})
    requests = [(each.path, bool(each.differences)) for each in found.comparisons if each.what == "request"]
    assert requests == [("boss", False), ("boss/one@t1@1", True), ("boss/two@t1@2", False)]
    found = await what_if(path, made(), instructions={"one": "Otherwise."}, answers="recorded")
    assert [(each.path, each.proven) for each in found.comparisons][-1] == ("boss", False)


async def test_what_was_found_can_be_written_as_json(recorded: Path) -> None:
    found = await what_if(recorded, desk(), filters={"triage->billing": last_n(1, keep_user=True)})
    again = json.loads(msgspec.json.encode(found))
    assert [each["what"] for each in again["comparisons"]] == [each.what for each in found.comparisons]
    assert msgspec.json.decode(msgspec.json.encode(found.comparisons[0]), type=Comparison) == found.comparisons[0]


def test_what_is_not_there_is_named_with_what_there_is(recorded: Path) -> None:
    for options, message in (
        ({"filters": {"billing->triage": none()}}, "there are triage->billing"),
        ({"instructions": {"nobody": "x"}}, "there are billing, triage"),
        ({"at": 7}, "its boundaries are 1 to 1, its model calls step:1 to step:4"),
        ({"answers": "perhaps"}, "'none', 'recorded' or a model"),
    ):
        with pytest.raises(ReplayRefused, match=message):
            what_if_sync(recorded, desk(), **options)


@pytest.mark.parametrize("hook", ["around_turn", "before_agent", "after_agent", "before_model", "after_model"])
def test_a_layer_with_a_part_in_whole_turns_does_not_begin_in_the_middle(recorded: Path, hook: str) -> None:
    async def passing(self: Middleware, request: Any, call_next: Any) -> Any:
        return await call_next(request)

    async def nothing(self: Middleware, state: Any, run: Any) -> None:
        return None

    made = type("Turning", (Middleware,), {hook: passing if hook == "around_turn" else nothing})
    with pytest.raises(ReplayRefused, match=f"Turning has {hook}"):
        what_if_sync(recorded, desk(), at="step:2", middleware=[made()])
    assert what_if_sync(recorded, desk(), middleware=[made()]).same
