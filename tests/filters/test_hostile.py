"""Input that somebody made to hurt: every filter takes it, in time that grows with its size."""

import pytest

from handrail.filters import Filter, History, Message, NothingToHandOver, assistant, breaches, seal, tool_result, user
from handrail.filters.messages import ToolCall
from laws.strategies import one_of_each

MANY = 100_000
DEEP = '{"a":' * 3_000 + "1" + "}" * 3_000


def many_calls() -> History:
    calls = [ToolCall(f"c{number}", "track") for number in range(MANY // 10)]
    return History([user("Go.", id="m0"), assistant(*calls, id="m1"), *[tool_result(call, "x") for call in calls]])


CASES: dict[str, History] = {
    "ids of 10,000 characters": History(
        [user("a", id="x" * 10_000), assistant(ToolCall("c" * 10_000, "n" * 10_000), id="y" * 10_000)]
    ),
    "10,000 calls of one message": many_calls(),
    "deep nesting": History([assistant(ToolCall("c1", "run", DEEP), id="m1"), tool_result("c1", DEEP, id="m2")]),
    "duplicate keys": History([assistant(ToolCall("c1", "run", '{"a":1,"a":2}'), id="m1")]),
    "NaN and lone surrogates": History(
        [user("\ud83d", id="m1"), assistant(ToolCall("c\ud800", "run", '{"n":NaN,"q":"\\udc97"}'), id="m2")]
    ),
    "one id for all": History([assistant(ToolCall("", "run"), id=f"m{number}") for number in range(2_000)]),
}


@pytest.mark.parametrize("filter", one_of_each, ids=lambda filter: filter.kind)
@pytest.mark.parametrize("case", CASES)
def test_every_filter_takes_it(case: str, filter: Filter) -> None:
    history = CASES[case]
    assert all(isinstance(message, Message) for message in filter(history))
    try:
        assert breaches(seal(filter)(history)) == []
    except NothingToHandOver:
        assert not any(message.role == "user" for message in filter(history))


def test_a_hundred_thousand_calls_of_one_message_are_answered() -> None:
    calls = [ToolCall(f"c{number}", "track") for number in range(MANY)]
    history = History([user("Go.", id="m0"), assistant(*calls, id="m1"), *[tool_result(call, "x") for call in calls]])
    assert breaches(seal(one_of_each[0])(history)) == []
