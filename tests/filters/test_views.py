"""What one agent sees."""

from handrail.filters import History, Message, View, assistant, call, tool_result, user

TRACK = call("track", call_id="c1")


def ids(view: View) -> list[str]:
    return [message.id for message in view.history]


def test_a_seed_is_the_first_view() -> None:
    assert ids(View(History()).enter((user("a", id="m1"),))) == ["m1"]


def test_a_second_seed_brings_only_what_was_never_held() -> None:
    view = View(History([user("a", id="m1")]), removed=frozenset({"m2"}))
    seed = (user("a", id="m1"), user("b", id="m2"), user("c", id="m3"))
    assert ids(view.enter(seed)) == ["m1", "m3"]
    assert ids(view.enter(seed).enter(seed)) == ["m1", "m3"]


def test_a_message_without_an_id_is_always_new() -> None:
    view = View(History([user("a", id="m1")]))
    assert len(view.enter((user("b"),)).enter((user("b"),)).history) == 3


def test_a_result_stays_out_when_its_call_was_already_held() -> None:
    view = View(History([assistant("Let me look.", id="m1")]))
    seed = (assistant("Let me look.", TRACK, id="m1"), tool_result(TRACK, "in Porto", id="m2"), user("b", id="m3"))
    assert ids(view.enter(seed)) == ["m1", "m3"]


def test_what_is_appended_is_repaired() -> None:
    view = View(History([tool_result(TRACK, "in Porto", id="m2")]))
    seed: tuple[Message, ...] = (assistant("I looked.", TRACK, id="m1"), tool_result(TRACK, "in Porto", id="m2"))
    assert view.enter(seed).history[-1] == assistant("I looked.", id="m1")


def test_a_call_id_that_comes_back_is_that_of_the_message_right_before_its_result() -> None:
    view = View(History([assistant("Let me look.", id="m1")]))
    seed = (
        assistant("Let me look.", TRACK, id="m1"),
        tool_result(TRACK, "in Porto", id="m2"),
        assistant("And now?", TRACK, id="m3"),
        tool_result(TRACK, "in Lisbon", id="m4"),
    )
    assert ids(view.enter(seed)) == ["m1", "m3", "m4"]
    held = View(History([assistant("And now?", id="m3")]))
    assert ids(held.enter(seed)) == ["m3", "m1", "m2"]


def test_a_view_that_was_emptied_does_not_take_back_what_it_held() -> None:
    view = View(History(), removed=frozenset({"m1"}))
    assert ids(view.enter((user("a", id="m1"), user("b", id="m2")))) == ["m2"]
