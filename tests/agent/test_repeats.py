"""A turn that goes on without anything new is warned of, and then stopped with a reason."""

from collections.abc import Iterator
from typing import Any

import pytest

from agent.desks import failure, hear
from handrail.agent import Agent, FunctionModel, Limits, LoopDetected, ScriptedModel
from handrail.agent.events import LoopWarning
from handrail.agent.kernel import ToolResponse
from handrail.filters import ToolCall, breaches, call

FOUR = Limits(max_repeats=4)


async def look(what: str = "", page: int = 1) -> str:
    return f"{what} {page}"


def looking(*whats: str) -> ScriptedModel:
    return ScriptedModel(*[call("look", call_id=f"c{number}", what=what) for number, what in enumerate(whats)], "done")


async def ended(model: Any, limits: Limits = FOUR, tools: tuple[Any, ...] = (look,)) -> LoopDetected:
    error = await failure(Agent("X", model=model, tools=tools), "go", limits=limits)
    assert isinstance(error, LoopDetected)
    assert breaches(error.messages) == []
    return error


async def test_the_same_call_with_the_same_result_is_stopped_when_it_repeated_so_often() -> None:
    model = looking(*["a"] * 9)
    error = await ended(model)
    assert (error.limit, error.value, len(model.requests)) == ("max_repeats", 4, 5)
    assert error.reason == "the same calls with the same results"


async def test_two_calls_to_and_fro_are_stopped_too() -> None:
    model = looking(*"abababababab")
    error = await ended(model)
    assert (len(model.requests), error.reason) == (6, "the same 2 steps in turn")


async def test_what_was_all_seen_before_is_nothing_new_in_whatever_order() -> None:
    error = await ended(looking(*"abcacbcabc"))
    assert error.reason == "nothing that was not seen before"


async def test_anything_new_begins_the_count_anew() -> None:
    result = await Agent("X", model=looking(*"aaaabbbbcccc"), tools=[look]).run("go", limits=FOUR)
    assert result.output == "done"


async def test_a_result_that_changes_is_something_new() -> None:
    count: Iterator[int] = iter(range(99))

    async def poll() -> int:
        return next(count)

    calls = [call("poll", call_id=f"c{n}") for n in range(9)]
    result = await Agent("X", model=ScriptedModel(*calls, "done"), tools=[poll]).run("go", limits=FOUR)
    assert result.output == "done"


async def test_arguments_are_the_same_however_they_are_written() -> None:
    texts = ['{"what":"a","page":1}', '{ "page": 1, "what": "a" }', '{"page":1,"what":"\\u0061"}']
    calls = [ToolCall(f"c{n}", "look", texts[n % 3]) for n in range(9)]
    model = ScriptedModel(*calls, "done")
    await ended(model)
    assert len(model.requests) == 5


async def test_calls_side_by_side_repeat_when_all_of_them_do() -> None:
    both = [[call("look", call_id=f"a{n}", what="a"), call("look", call_id=f"b{n}", page=n // 2)] for n in range(9)]
    result = await Agent("X", model=ScriptedModel(*both, "done"), tools=[look]).run("go", limits=FOUR)
    assert result.output == "done"


async def test_at_half_of_the_limit_those_who_listen_are_warned_once() -> None:
    heard = await hear(Agent("X", model=looking(*["a"] * 9), tools=[look]), "go", limits=FOUR)
    assert isinstance(heard.error, LoopDetected)
    (warning,) = heard.of(LoopWarning)
    assert (warning.steps, warning.max_repeats, warning.path) == (2, 4, "X")
    assert str(warning) == "[X] goes in a circle: the same calls with the same results, 2 of 4 steps in a row"


async def test_each_turn_is_watched_alone() -> None:
    agent = Agent("X", model=looking(*"aaa"), tools=[look], limits=Limits(max_repeats=3))
    assert (await agent.run("go")).output == "done"
    model = FunctionModel(lambda request: "done" if len(request.messages) > 5 else call("look", what="a"))
    again = Agent("X", model=model, tools=[look], limits=Limits(max_repeats=3))
    for _ in range(3):
        assert (await again.run("go")).output == "done"


@pytest.mark.parametrize("childs", [True, False])
async def test_a_childs_own_limit_is_an_error_of_its_call_and_the_runs_ends_the_run(childs: bool) -> None:
    child = Agent("Child", model=looking(*["a"] * 9), tools=[look], limits=FOUR if childs else None)
    boss = Agent("Boss", model=ScriptedModel(call("child", input="x"), "I go on."), tools=[child.to_tool()])
    if childs:
        assert (await boss.run("go")).output == "I go on."
    else:
        error = await failure(boss, "go", limits=FOUR)
        assert isinstance(error, LoopDetected)


async def test_half_of_an_odd_limit_is_the_greater_half() -> None:
    heard = await hear(Agent("X", model=looking(*["a"] * 9), tools=[look]), "go", limits=Limits(max_repeats=3))
    assert [warning.steps for warning in heard.of(LoopWarning)] == [2]


async def test_an_error_is_something_new_after_a_success_of_the_same_words() -> None:
    fails = iter([False, True])

    async def poll() -> ToolResponse:
        return ToolResponse(content="busy", is_error=next(fails))

    model = ScriptedModel(call("poll", call_id="c1"), call("poll", call_id="c2"), "done")
    result = await Agent("X", model=model, tools=[poll]).run("go", limits=Limits(max_repeats=1))
    assert result.output == "done"


@pytest.mark.parametrize(("own", "runs"), [(4, 2), (2, 4)])
async def test_of_several_limits_the_least_counts(own: int, runs: int) -> None:
    agent = Agent("X", model=looking(*["a"] * 9), tools=[look], limits=Limits(max_repeats=own))
    error = await failure(agent, "go", limits=Limits(max_repeats=runs))
    assert isinstance(error, LoopDetected)
    assert error.value == 2
