"""What every boundary does besides its filter."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from handrail.filters import (
    FilterFailed,
    FilterNotRunnable,
    History,
    Image,
    Message,
    Note,
    NothingToHandOver,
    assistant,
    call,
    compose,
    custom,
    from_descriptor,
    full,
    last_n,
    none,
    repair,
    seal,
    strip_tool_calls,
    summary,
    system,
    tool_result,
    user,
)

ASKED = call("buy", call_id="c1", item="pen", qty=2)
HISTORY = History(
    [
        system("s", id="m0"),
        user(["see picture", Image(data="iVBORw0=", media_type="image/png")], id="m1"),
        assistant(ASKED, id="m2"),
        tool_result(ASKED, "ok", id="m3"),
    ]
)


def test_an_input_becomes_the_last_user_message_even_where_nothing_else_crosses() -> None:
    seed = seal(none()).hand_over(HISTORY, [Note("input", "What does a pen cost?", "internal")])
    assert [(message.role, message.text, message.sensitivity) for message in seed] == [
        ("user", "What does a pen cost?", "internal")
    ]


def test_a_reason_becomes_a_message_only_when_no_user_message_is_left() -> None:
    reason = [Note("reason", "wants a refund")]
    assert seal(full()).hand_over(HISTORY, reason)[-1].id == "m3"
    assert [message.text for message in seal(none()).hand_over(HISTORY, reason)] == ["wants a refund"]


@pytest.mark.parametrize("notes", [[], [Note("reason", "")], [Note("reason", "<think>only thought")]])
def test_with_nothing_to_answer_there_is_nothing_to_hand_over(notes: list[Note]) -> None:
    with pytest.raises(NothingToHandOver, match="no user message") as raised:
        seal(none()).hand_over(HISTORY, notes)
    assert raised.value.descriptor == seal(none()).descriptor


def test_a_per_message_filter_is_applied_to_notes_and_a_window_is_not() -> None:
    def shout(history: Any) -> Any:
        return tuple(user(message.text.upper(), id=message.id) for message in history if message.role == "user")

    note = [Note("input", "pen?")]
    assert seal(custom(shout, per_message=True)).hand_over(HISTORY, note)[-1].text == "PEN?"
    assert seal(custom(shout)).hand_over(HISTORY, note)[-1].text == "pen?"
    assert seal(none()).hand_over(HISTORY, note)[-1].text == "pen?"


def test_what_a_filter_made_gets_an_id_from_its_step_place_and_content() -> None:
    made = compose(strip_tool_calls(), summary("They looked at a picture.", keep_last=1))
    first, again = seal(made)(HISTORY), seal(made)(HISTORY)
    assert first == again
    assert [message.id[:3] for message in first] == ["m0", "f2-", "m1"]
    assert len(first[1].id) == len("f2-") + 12


def test_the_same_reason_later_in_a_conversation_is_another_message() -> None:
    reason = [Note("reason", "again")]
    longer = HISTORY.append(assistant("Done.", id="m4"))
    assert seal(none()).hand_over(HISTORY, reason) != seal(none()).hand_over(longer, reason)


def test_a_filter_cannot_reach_into_what_it_was_handed() -> None:
    def vandal(history: Any) -> Any:
        history[2].content[0].arguments = '{"qty":99}'

    def cleaner(history: Any) -> Any:
        history.clear()

    before = msgspec.json.encode(list(HISTORY))
    for filter in (vandal, cleaner):
        with pytest.raises(FilterFailed, match="raised AttributeError"):
            seal(filter)(HISTORY)
    assert msgspec.json.encode(list(HISTORY)) == before


def test_a_filter_that_changes_a_call_changes_only_what_crosses() -> None:
    def more(history: Any) -> Any:
        asked = msgspec.structs.replace(history[2].tool_calls[0], arguments='{"qty":99}')
        return (*history[:2], history[2].replace(content=(asked,)), *history[3:])

    assert seal(more)(HISTORY)[2].tool_calls[0].parse() == {"qty": 99}
    assert HISTORY[2].tool_calls[0].parse()["qty"] == 2


def test_a_plain_function_is_sealed_like_any_filter() -> None:
    assert [message.id for message in seal(lambda history: history[:3])(HISTORY)] == ["m0", "m1"]


NONSENSE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nothing": (lambda history: None, "returned what is not messages: NoneType"),
    "text": (lambda history: "hello", "returned what is not messages: str"),
    "strings": (lambda history: ["hello"], "a list with str in it"),
    "generator": (lambda history: (message for message in history), "generator"),
    "parts": (lambda history: [Message("user", (1,))], "content is text and other parts, not 1"),  # type: ignore[arg-type]
    "role": (lambda history: [Message("narrator")], "role is one of assistant, system, tool, user, not 'narrator'"),  # type: ignore[arg-type]
    "twice": (lambda history: (*history, history[1]), "gives the message id 'm1' twice"),
    "raises": (lambda history: history[99], "raised IndexError"),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_stops_the_handoff_and_names_the_step(kind: str) -> None:
    filter, problem = NONSENSE[kind]
    with pytest.raises(FilterFailed, match=f"2, custom.*{problem}") as raised:
        seal(compose(last_n(9), filter))(HISTORY)
    assert problem in raised.value.problem


@pytest.mark.parametrize(
    "answer", [tool_result("c1", "yes"), tool_result("c9", "yes", id="x"), tool_result("c9", "yes", id="m3")]
)
def test_a_filter_that_invents_an_answer_is_refused(answer: Message) -> None:
    with pytest.raises(FilterFailed, match="invents an answer to the call"):
        seal(lambda history: (*history[:3], answer))(HISTORY)


def test_a_result_without_an_id_is_known_by_its_call() -> None:
    history = [message.replace(id="") for message in HISTORY]
    louder = seal(lambda given: [*given[:3], given[3].replace(content="OK")])(history)
    assert louder[3].text == "OK"


def test_a_filter_that_is_not_here_stops_the_handoff() -> None:
    unknown = from_descriptor('{"kind":"acme/only-billing","version":2}')
    with pytest.raises(FilterNotRunnable, match="'acme/only-billing' version 2"):
        seal(compose(last_n(3), unknown))(HISTORY)


def test_a_seal_around_a_seal_is_one_seal() -> None:
    assert seal(seal(full())) == seal(full())
    assert json.dumps(seal(full()).descriptor) == (
        '{"kind": "seal", "version": 1, "steps": [{"kind": "full", "version": 1}]}'
    )


def test_what_crosses_back_may_be_nothing() -> None:
    assert seal(none()).back(HISTORY) == ()
    assert [message.id for message in seal(full()).back(HISTORY[2:])] == ["m2", "m3"]


def test_an_answer_that_repair_adds_is_no_invention() -> None:
    filter = compose(lambda history: history, repair(open_calls="answer"), lambda history: list(history))
    seed = seal(filter)([user("go", id="m1"), assistant(ASKED, id="m2")])
    assert [message.synthetic for message in seed] == [False, False, True]


def test_a_filter_may_bring_back_a_result_that_the_view_holds() -> None:
    given = HISTORY[:2]
    seed = seal(lambda history: (*history, *HISTORY[2:])).hand_over(given, origin=HISTORY)
    assert [message.id for message in seed] == ["m0", "m1", "m2", "m3"]
    with pytest.raises(FilterFailed, match=r"2, custom.* invents"):
        seal(compose(full(), lambda history: (*history, *HISTORY[2:]))).hand_over(given)


def test_an_answer_that_the_view_holds_stays_the_answer_of_its_own_call() -> None:
    asked, moved = assistant(call("buy", call_id="c9"), id="m9"), HISTORY[3].replace(call_id="c9")
    with pytest.raises(FilterFailed, match="invents an answer to the call 'c9'"):
        seal(lambda history: (*history, asked, moved)).hand_over(HISTORY[:2], origin=HISTORY)


@pytest.mark.parametrize(
    ("odd", "problem"),
    [(lambda history: history[9], "raised IndexError"), (lambda history: None, "returned what is not messages")],
)
def test_a_per_message_filter_that_fails_on_a_note_is_named_by_its_step(odd: Any, problem: str) -> None:
    def on_notes(history: Any) -> Any:
        return odd(history) if history[0].text == "PIN 9041" else history

    filter = compose(last_n(9), custom(on_notes, per_message=True))
    assert seal(filter).hand_over(HISTORY, [Note("input", "pen?")])[-1].text == "pen?"
    with pytest.raises(FilterFailed, match=f"2, custom.*{problem}"):
        seal(filter).hand_over(HISTORY, [Note("input", "PIN 9041")])
