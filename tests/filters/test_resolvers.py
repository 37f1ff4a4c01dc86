"""Resolvers: filters that are known only at a boundary."""

import asyncio
import json
from typing import Any

import pytest

from handrail.filters import (
    EdgeInfo,
    Filter,
    FilterFailed,
    FilterNotRunnable,
    InvalidFilter,
    Messages,
    Resolver,
    UnresolvedFilter,
    assistant,
    attribute_agents,
    compose,
    dynamic,
    from_descriptor,
    full,
    last_n,
    last_user,
    none,
    parse,
    resolve,
    seal,
    since_handoff,
    strip_reasoning,
    summarize,
    summary,
    unresolved,
    user,
    when,
)

EDGE = EdgeInfo(source="A", target="B")
HISTORY = (user("a", id="m1"), assistant("b", id="m2", agent="A"), user("c", id="m3"))


def seen_by(given: list[list[str]], filter: Filter) -> Resolver:
    """A resolver that becomes the filter, and writes down which messages it was shown."""

    def choose(history: Messages, edge: EdgeInfo) -> Filter:
        given.append([message.id for message in history])
        return filter

    return dynamic(choose)


async def test_a_resolver_is_what_it_gives_and_a_plain_filter_is_itself() -> None:
    assert await resolve(dynamic(lambda history, edge: last_n(2)), HISTORY, EDGE) == last_n(2)
    plain = compose(last_n(2))
    assert await resolve(plain, HISTORY, EDGE) is plain


async def test_a_composition_with_a_resolver_is_one_and_its_steps_see_what_those_before_left() -> None:
    given: list[list[str]] = []
    filter = compose(last_n(2), seen_by(given, last_n(1)), seen_by(given, full()), last_user())
    assert unresolved(filter)
    assert unresolved(seal(filter))
    assert await resolve(filter, HISTORY, EDGE) == compose(last_n(2), last_n(1), full(), last_user())
    assert given == [["m2", "m3"], ["m3"]]


async def test_what_earlier_steps_made_has_the_id_that_it_has_when_the_filter_runs() -> None:
    given: list[list[str]] = []
    two = dynamic(lambda history, edge: compose(full(), summary("Hi", role="user")))
    found = await resolve(compose(two, seen_by(given, full())), HISTORY, EDGE)
    assert given == [[message.id for message in seal(found)(HISTORY)]]
    assert given[0][0].startswith("f2-")


async def test_a_sealed_resolver_stays_sealed_and_a_composition_that_is_given_is_flattened() -> None:
    given = dynamic(lambda history, edge: compose(last_n(3), last_user()))
    assert await resolve(seal(given), HISTORY, EDGE) == seal(compose(last_n(3), last_user()))
    found = await resolve(compose(given, full()), HISTORY, EDGE)
    assert found.flat == (last_n(3), last_user(), full(), strip_reasoning())


async def test_a_resolver_may_give_another_but_not_for_ever() -> None:
    once = dynamic(lambda history, edge: compose(last_n(2), since_handoff()))
    assert await resolve(once, HISTORY, EDGE) == compose(last_n(2), full())

    def again(history: Messages, edge: EdgeInfo) -> Filter:
        return compose(last_n(2), dynamic(again))

    with pytest.raises(FilterFailed, match="another gave, 10 times"):
        await resolve(dynamic(again), HISTORY, EDGE)


async def test_a_plain_function_that_is_given_counts_as_a_custom_filter() -> None:
    found = await resolve(dynamic(lambda history, edge: lambda messages: messages[-1:]), HISTORY, EDGE)
    assert found.kind == "custom"
    assert found(HISTORY) == HISTORY[-1:]


@pytest.mark.parametrize("given", [None, HISTORY, [], "full", full, 7])
async def test_what_is_given_and_is_no_filter_names_the_resolver(given: Any) -> None:
    def choose(history: Messages, edge: EdgeInfo) -> Any:
        return given if given is not full else type(full())

    with pytest.raises(FilterFailed, match=r"dynamic\(choose\) gave what is no filter: ") as raised:
        await resolve(dynamic(choose), HISTORY, EDGE)
    assert raised.value.step == "dynamic(choose)"


async def test_one_that_raises_is_named_with_what_it_raised() -> None:
    async def choose(history: Messages, edge: EdgeInfo) -> Filter:
        raise LookupError("no such tenant")

    with pytest.raises(FilterFailed, match=r"dynamic\(choose\) raised LookupError: no such tenant") as raised:
        await resolve(compose(full(), dynamic(choose)), HISTORY, EDGE)
    assert isinstance(raised.value.__cause__, LookupError)


async def test_a_step_before_a_resolver_that_fails_is_named() -> None:
    def nothing(history: Messages) -> Any:
        return None

    with pytest.raises(FilterFailed, match="returned what is not messages"):
        await resolve(compose(nothing, since_handoff()), HISTORY, EDGE)


async def test_one_that_hangs_is_given_up_after_its_timeout() -> None:
    async def choose(history: Messages, edge: EdgeInfo) -> Filter:
        await asyncio.Event().wait()
        return full()

    with pytest.raises(FilterFailed, match=r"dynamic\(choose\) raised TimeoutError: it took longer than 0.01 s"):
        await resolve(dynamic(choose, timeout=0.01), HISTORY, EDGE)


@pytest.mark.parametrize("timeout", [0, -1, True, "1"])
def test_a_timeout_is_a_number_of_seconds_above_0(timeout: Any) -> None:
    with pytest.raises(InvalidFilter, match="a number of seconds above 0"):
        dynamic(lambda history, edge: full(), timeout=timeout)


@pytest.mark.parametrize("fn", [None, 3, EdgeInfo])
def test_a_dynamic_filter_is_a_function(fn: Any) -> None:
    with pytest.raises(InvalidFilter):
        dynamic(fn)


@pytest.mark.parametrize(
    "away",
    [
        since_handoff(),
        compose(since_handoff()),
        seal(compose(full(), attribute_agents())),
        seal(when("has_tool_calls", full(), since_handoff())),
    ],
)
def test_away_from_a_boundary_a_resolver_does_not_run_and_says_so(away: Filter) -> None:
    with pytest.raises(UnresolvedFilter, match=r"\w+\(\) says what crosses only at a boundary"):
        away(HISTORY)
    with pytest.raises(UnresolvedFilter):
        away.explain(HISTORY)


async def _ask(messages: Messages) -> str:
    return "They talked."


@pytest.mark.parametrize(
    "filter", [since_handoff(), dynamic(lambda h, e: full()), compose(summarize(_ask, on_error=none()), last_n(2))]
)
def test_a_resolvers_descriptor_loads_and_prints_but_does_not_run(filter: Filter) -> None:
    written = json.dumps(filter.descriptor)
    read = from_descriptor(written)
    assert read.descriptor == filter.descriptor
    assert "lambda" not in written
    with pytest.raises(FilterNotRunnable, match="'resolver/"):
        read(HISTORY)


def test_expressions_may_name_the_resolvers_that_need_no_code() -> None:
    assert parse("since_handoff | attribute_agents") == compose(since_handoff(), attribute_agents())
    assert repr(parse("since_handoff | last_n(3)")) == (
        "compose(since_handoff(), last_n(n=3, keep_user=False), strip_reasoning())"
    )


def test_what_has_to_be_awaited_is_said_to_be_a_resolver() -> None:
    async def later(history: Messages) -> Messages:
        return history

    with pytest.raises(InvalidFilter, match=r"a resolver: dynamic\(fn\)"):
        compose(later)
