"""Everything but what a predicate says yes of."""

from handrail.filters import assistant, breaches, call, drop, from_descriptor, tool_result, user

ASKED = call("track", call_id="c1")
HISTORY = (
    user("Hello", id="m1"),
    assistant("Let me look.", ASKED, id="m2"),
    tool_result(ASKED, "no such parcel", id="m3", is_error=True),
    assistant("Sorry.", id="m4", agent="Triage", pinned=True),
)


def test_a_result_that_goes_takes_its_call_along() -> None:
    kept = drop("is_error")(HISTORY)
    assert [message.id for message in kept] == ["m1", "m2", "m4"]
    assert breaches(kept) == []


def test_no_pin_overrides_a_predicate() -> None:
    assert [message.id for message in drop("is_pinned")(HISTORY)] == ["m1", "m2", "m3"]


def test_the_ready_predicates_ask_what_their_names_say() -> None:
    gone = [
        (drop("from_agent", agent="Triage"), "m4"),
        (drop("has_role", role="user"), "m1"),
        (drop("longer_than", characters=12), "m3"),
        (drop("mentions", text="SORRY"), "m4"),
    ]
    for filter, message_id in gone:
        assert message_id not in [message.id for message in filter(HISTORY)]
        assert from_descriptor(filter.descriptor) == filter
