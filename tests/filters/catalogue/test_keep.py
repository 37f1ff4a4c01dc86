"""Only what a predicate says yes of."""

import json

import pytest

from handrail.filters import (
    FilterNotRunnable,
    InvalidFilter,
    Message,
    Note,
    assistant,
    call,
    compose,
    drop,
    from_descriptor,
    keep,
    parse,
    predicate,
    seal,
    system,
    tool_result,
    user,
)

ASKED = call("track", call_id="c1", parcel="refund-77")
HISTORY = (
    system("Be brief.", id="m0"),
    user("Hello", id="m1"),
    assistant("Let me look.", ASKED, id="m2"),
    tool_result(ASKED, "in Porto", id="m3"),
    user("My refund?", id="m4"),
)


@predicate("tests/breaks")
def breaks(message: Message) -> bool:
    """Cannot say anything of one message."""
    if message.id == "m1":
        raise LookupError("no such customer")
    return True


@predicate("tests/shrugs")
def shrugs(message: Message) -> bool:
    """Answers what is no answer."""
    return "perhaps"  # type: ignore[return-value]


def test_every_message_is_asked_about_and_a_call_goes_with_its_result() -> None:
    assert [message.id for message in keep("mentions", text="refund")(HISTORY)] == ["m2", "m4"]
    assert keep("mentions", text="refund")(HISTORY)[0] == assistant("Let me look.", id="m2")


def test_a_message_of_which_a_predicate_raises_does_not_cross() -> None:
    assert [message.id for message in keep("tests/breaks")(HISTORY)] == ["m0", "m2", "m3", "m4"]
    assert drop("tests/breaks")(HISTORY) == ()


def test_what_is_neither_true_nor_false_is_no_yes() -> None:
    assert (keep("tests/shrugs")(HISTORY), drop("tests/shrugs")(HISTORY)) == ((), ())


def test_a_registered_function_is_known_by_its_name() -> None:
    assert keep(breaks) == keep("tests/breaks")
    with pytest.raises(InvalidFilter, match="register the predicate"):
        keep(lambda message: True)


def test_a_predicate_nobody_registered_round_trips_and_does_not_run() -> None:
    filter = from_descriptor(json.dumps(keep("acme/gone", version=2, word="x").descriptor))
    assert filter == keep("acme/gone", version=2, word="x")
    assert parse(repr(filter)) == filter
    with pytest.raises(FilterNotRunnable, match=r"'acme/gone' version 2 is not registered; known: .*mentions@1"):
        filter(HISTORY)
    with pytest.raises(FilterNotRunnable):
        seal(compose(filter)).hand_over(HISTORY)


def test_a_note_passes_the_predicate_as_one_user_message() -> None:
    notes = [Note("reason", "wants a refund"), Note("input", "nothing")]
    assert [message.text for message in seal(keep("mentions", text="wants")).hand_over(HISTORY, notes)] == [
        "wants a refund"
    ]


@pytest.mark.parametrize("params", [{"at": object()}, {"at": float("nan")}])
def test_the_parameters_of_a_predicate_are_json(params: dict[str, object]) -> None:
    with pytest.raises(InvalidFilter, match="are JSON"):
        keep("mentions", **params)  # type: ignore[arg-type]


def test_a_wrong_parameter_closes_the_gate() -> None:
    assert keep("mentions", txet="refund")(HISTORY) == ()
