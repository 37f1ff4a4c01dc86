"""What a boundary is given, and what of it crossed."""

import pytest

from handrail.filters import (
    History,
    Message,
    NothingToHandOver,
    Reasoning,
    ToolCall,
    assistant,
    breaches,
    call,
    edge_history,
    full,
    last_n,
    last_user,
    seal,
    strip_tool_calls,
    system,
    tool_result,
    user,
)
from handrail.filters.seals import Note

TRANSFER = ToolCall("h1", "transfer_to_billing", '{"reason":"double charge"}', transfer=True)
TRACK = call("track", call_id="c1", parcel="8841")


def view(*messages: Message) -> History:
    return History([message.replace(id=f"m{place}") for place, message in enumerate(messages)])


def texts(messages: object) -> list[str]:
    return [message.text for message in messages]  # type: ignore[attr-defined]


def test_the_call_that_starts_a_handoff_does_not_cross() -> None:
    held = view(system("You are Triage."), user("I was charged twice."), assistant(TRANSFER))
    seed = seal(full()).hand_over(edge_history(held, "h1", kind="handoff").messages, origin=held)
    assert texts(seed) == ["You are Triage.", "I was charged twice."]
    assert breaches(seed) == []


def test_an_ordinary_result_of_the_same_answer_crosses_with_its_call() -> None:
    held = view(user("Where is it?"), assistant("One moment.", TRACK, TRANSFER), tool_result(TRACK, "in Porto"))
    edge = edge_history(held, "h1", kind="handoff")
    assert list(edge.messages) == [held[0], assistant("One moment.", TRACK, id="m1"), held[2]]


def test_earlier_and_refused_transfers_do_not_cross_either() -> None:
    held = view(
        user("Hello"),
        assistant("Over to billing.", TRANSFER),
        tool_result(TRANSFER, "refused"),
        assistant("Sorry, I stay."),
    )
    assert texts(edge_history(held, kind="handoff").messages) == ["Hello", "Over to billing.", "Sorry, I stay."]


def test_a_sub_agent_is_given_what_was_said_before_it_was_called() -> None:
    ask = call("research", call_id="s1", input="VAT?")
    other = call("track", call_id="c2")
    held = view(user("VAT?"), assistant("I will ask.", ask, other), tool_result(other, "in Porto"))
    edge = edge_history(held, "s1", kind="subagent")
    assert texts(edge.messages) == ["VAT?", "I will ask."]
    assert breaches(edge.messages) == []


def test_a_message_left_empty_is_not_given() -> None:
    ask = call("research", call_id="s1")
    held = view(user("VAT?"), assistant(ask))
    assert texts(edge_history(held, "s1", kind="subagent").messages) == ["VAT?"]


def test_a_view_without_transfers_is_given_as_it_is() -> None:
    held = view(user("Hello"), assistant("Hi."))
    assert edge_history(held, kind="handoff").messages is held


def test_a_view_that_ends_in_a_transfer_gives_what_stands_before_it_and_goes_on() -> None:
    held = view(user("Hello"), assistant("Hi."), assistant(Reasoning("hm"), TRANSFER))
    edge = edge_history(held, "h1", kind="handoff")
    assert (list(edge.messages), edge.altered) == ([*held[:2]], {2: None})
    assert edge.messages.survey().open_calls == {}  # type: ignore[attr-defined]
    again = assistant("Once more.", ToolCall("h2", "transfer_to_billing", transfer=True), id="m5")
    on = held.extend([tool_result(TRANSFER, "Not now.", id="m3"), user("And?", id="m4"), again])
    assert texts(edge_history(on, "h2", kind="handoff").messages) == ["Hello", "Hi.", "And?", "Once more."]
    assert texts(edge.messages) == ["Hello", "Hi."]


def test_a_message_that_the_boundary_does_not_give_as_it_is_stands_in_no_range() -> None:
    held = view(user("Hello"), assistant("Over.", TRANSFER), user("And?"))
    edge = edge_history(held, kind="handoff")
    assert edge.crossed(tuple(held)) == ((0, 1), held[1], (2, 3))
    assert edge.crossed(edge.messages) == ((0, 3),)
    unnamed = History([user("Hello", id="m0"), user("And?"), user("Please.", id="m2")])
    assert edge_history(unnamed, kind="handoff").crossed(unnamed) == ((0, 1), unnamed[1], (2, 3))


def test_what_crossed_is_named_by_ranges_and_only_new_messages_are_written_out() -> None:
    held = view(*[user(f"{number}") for number in range(6)], assistant("Over.", TRANSFER))
    edge = edge_history(held, kind="handoff")
    seed = (*edge.messages[1:3], *edge.messages[5:], user("A note.", id="f1-0"))
    assert edge.crossed(seed) == ((1, 3), (5, 7), user("A note.", id="f1-0"))
    assert edge.seed(edge.crossed(seed)) == seed


@pytest.mark.parametrize("beyond", [(0, 9), (-1, 1), (2, 1)])
def test_a_range_that_is_not_in_the_view_is_an_index_error(beyond: tuple[int, int]) -> None:
    with pytest.raises(IndexError, match="the view has 2 messages"):
        edge_history(view(user("a"), user("b")), kind="handoff").seed((beyond,))


STARTED_BY_CRON = {
    "strip": (strip_tool_calls(), view(system("s"), assistant(TRANSFER))),
    "last_user": (last_user(), view(system("s"), assistant("Cron started me.", TRANSFER))),
    "window": (last_n(1), view(system("s"), assistant(TRANSFER))),
}


@pytest.mark.parametrize("variant", STARTED_BY_CRON)
def test_the_next_agent_has_something_to_answer_or_never_starts(variant: str) -> None:
    filter, held = STARTED_BY_CRON[variant]
    given = edge_history(held, "h1", kind="handoff").messages
    if variant != "window":
        seed = seal(filter).hand_over(given, [Note("reason", "disk is full")])
        assert (seed[-1].role, seed[-1].text) == ("user", "disk is full")
    with pytest.raises(NothingToHandOver):
        seal(filter).hand_over(given)


def test_a_call_id_that_came_back_means_the_last_message_that_has_it() -> None:
    ask = call("research", call_id="s1", input="VAT?")
    held = view(
        user("VAT?"), assistant("I ask.", ask), tool_result(ask, "20 %"), user("Sure?"), assistant("Again.", ask)
    )
    edge = edge_history(held, "s1", kind="subagent")
    assert texts(edge.messages) == ["VAT?", "I ask.", "20 %", "Sure?", "Again."]
    assert edge.messages[-1].tool_calls == ()
