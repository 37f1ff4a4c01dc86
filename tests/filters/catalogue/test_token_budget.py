"""As much as a number of tokens holds."""

import pytest

from handrail.filters import (
    FilterNotRunnable,
    InvalidFilter,
    assistant,
    breaches,
    call,
    from_descriptor,
    system,
    token_budget,
    tool_result,
    user,
)
from handrail.filters.messages import Message, Messages
from handrail.filters.tokens import count

ASKED = call("track", call_id="c1")
HISTORY = (
    system("Be brief.", id="m0"),
    user("Order 77 please.", id="m1", pinned=True),
    user("Where is it?", id="m2"),
    assistant("Let me look.", ASKED, id="m3"),
    tool_result(ASKED, "in Porto", id="m4"),
    assistant("In Porto.", id="m5"),
)


def tokens(*messages: Message) -> int:
    return sum(count(message, "estimate@1") for message in messages)


def kept(budget: int, keep: str = "tail") -> list[str]:
    filter = token_budget(budget, keep, "estimate@1")  # type: ignore[arg-type]
    return [message.id for message in filter(HISTORY)]


def test_system_and_pinned_messages_come_first_and_always_stay() -> None:
    assert kept(1) == ["m0", "m1"]
    assert kept(tokens(*HISTORY[:2], HISTORY[5])) == ["m0", "m1", "m5"]


def test_a_pair_fits_whole_or_not_at_all() -> None:
    whole = tokens(*HISTORY[:2], *HISTORY[3:])
    assert kept(whole) == ["m0", "m1", "m3", "m4", "m5"]
    assert kept(whole - 1) == ["m0", "m1", "m5"]


def test_what_does_not_fit_ends_the_window() -> None:
    history: Messages = (user("a", id="m1"), user("long " * 40, id="m2"), user("b", id="m3"))
    assert [message.id for message in token_budget(10, counter="estimate@1")(history)] == ["m3"]


def test_the_head_fits_from_the_beginning() -> None:
    assert kept(tokens(*HISTORY[:3]), "head") == ["m0", "m1", "m2"]
    assert kept(tokens(*HISTORY), "head") == ["m0", "m1", "m2", "m3", "m4", "m5"]


def test_what_is_kept_is_lawful() -> None:
    for budget in range(1, tokens(*HISTORY) + 1):
        for keep in ("tail", "head"):
            assert breaches(token_budget(budget, keep, "estimate@1")(HISTORY)) == []


def test_a_counter_that_is_not_here_is_never_counted_by_another() -> None:
    filter = from_descriptor({"kind": "token-budget", "params": {"max_tokens": 5, "counter": "acme@3"}})
    with pytest.raises(FilterNotRunnable, match="'acme@3'"):
        filter(HISTORY)


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"max_tokens": True}, {"keep": "middle"}, {"counter": ""}])
def test_a_wrong_setting_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidFilter):
        token_budget(**{"max_tokens": 5, **wrong})  # type: ignore[arg-type]
