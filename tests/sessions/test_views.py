"""What each kind of record does to a view."""

from pathlib import Path

import pytest

from handrail.filters import History, Message, assistant, call, default_handoff_filter, full, last_n, tool_result, user
from handrail.sessions import MessageRecord, Session, SubagentRecord, ToolResultRecord, Unknown, ViewRecord
from handrail.sessions.records import AnyRecord
from handrail.sessions.views import Views
from sessions.conversations import Conversation


def said(message: Message, path: str = "desk") -> MessageRecord:
    return MessageRecord(path=path, message=message)


def result(call_id: str) -> ToolResultRecord:
    return ToolResultRecord(path="desk", message=tool_result(call_id, f"of {call_id}", id=f"r{call_id}"))


def ids(records: list[AnyRecord], path: str = "desk") -> list[str]:
    return [message.id for message in Views.of(records).history(path)]


CALLS = said(assistant(call("f", call_id="a"), call("g", call_id="b"), call("h", call_id="c"), id="m1"))


def test_a_message_enters_the_view_of_its_path_alone() -> None:
    records: list[AnyRecord] = [said(user("Hi", id="m1")), said(user("Ho", id="m2"), "other")]
    assert ids(records) == ["m1"]
    assert ids(records, "other") == ["m2"]
    assert ids(records, "nobody") == []


def test_a_message_aside_enters_no_view() -> None:
    record = MessageRecord(path="desk", message=assistant(id="m1"), aside=True)
    assert Views.of([record]).now() == {}


def test_messages_that_are_said_together_enter_the_views_as_each_by_itself() -> None:
    first, wrong = user("Hi", id="m1"), assistant("No", id="m2")
    asks = assistant(call("look", call_id="c1"), id="m3")
    records = [
        said(first),
        MessageRecord(path="desk", message=user("By the way", id="m4"), aside=True),
        MessageRecord(path="desk", message=wrong, rejects="m1"),
        said(user("Elsewhere", id="m5"), "bank"),
        said(asks),
        said(user("And?", id="m6")),
    ]
    for start, end in ((0, 6), (0, 2), (2, 3), (4, 6), (5, 6)):
        together = Views()
        together.say_all(records[start:end], [record.message for record in records[start:end]])
        apart = Views.of(records[start:end])
        assert together.now() == apart.now()
        assert together.waiting() == apart.waiting()


def test_messages_that_are_said_together_follow_the_results_that_came_before_them() -> None:
    records = [said(user("And?", id="m2")), CALLS, said(assistant("So.", id="m3"))]
    together, apart = Views.of([CALLS, result("b")]), Views.of([CALLS, result("b"), *records])
    together.say_all(records, [record.message for record in records])
    assert together.now() == apart.now()
    assert together.waiting() == apart.waiting() == []
    assert [message.id for message in together.history("desk")] == ["m1", "rb", "m2", "m1", "m3"]


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_results_stand_in_call_order_however_they_came(order: str) -> None:
    assert ids([CALLS, *map(result, order)]) == ["m1", "ra", "rb", "rc"]


def test_results_so_far_stand_in_call_order_too() -> None:
    assert ids([CALLS, result("c"), result("a")]) == ["m1", "ra", "rc"]
    assert ids([CALLS, result("c"), said(user("Stop", id="m2")), result("a")]) == ["m1", "rc", "m2", "ra"]


def test_looking_at_a_view_changes_nothing_of_it() -> None:
    views = Views()
    seen: list[list[str]] = []
    for record in (CALLS, result("c"), result("a"), result("b"), said(user("Hi", id="m2"))):
        views.take(record)
        seen.append([message.id for message in views.history("desk")])
    assert seen[-2:] == [["m1", "ra", "rb", "rc"], ["m1", "ra", "rb", "rc", "m2"]]


def test_a_call_id_used_twice_in_a_response_has_two_places() -> None:
    twice = said(assistant(call("f", call_id="a"), call("g", call_id="a"), id="m1"))
    first, second = (tool_result("a", text, id=text) for text in ("r1", "r2"))
    records: list[AnyRecord] = [twice, *[ToolResultRecord(path="desk", message=each) for each in (first, second)]]
    assert ids(records) == ["m1", "r1", "r2"]


def test_a_result_that_nothing_waits_for_stands_where_it_came() -> None:
    assert ids([result("x"), CALLS, result("a"), result("x"), result("b")]) == ["rx", "m1", "ra", "rx", "rb"]


def edited(**changes: object) -> list[str]:
    talk: list[AnyRecord] = [said(user(f"word {n}", id=f"m{n}")) for n in range(4)]
    return ids([*talk, ViewRecord(path="desk", **changes)])  # type: ignore[arg-type]  # the fields of a view record


def test_a_view_record_removes_replaces_and_puts_in() -> None:
    assert edited(removed=("m1", "m3")) == ["m0", "m2"]
    assert edited(inserted=(("m1", user("x", id="x")), ("x", user("y", id="y")))) == ["m0", "m1", "x", "y", "m2", "m3"]
    assert edited(inserted=(("", user("x", id="x")),), removed=("m0",)) == ["x", "m1", "m2", "m3"]
    assert edited(inserted=(("", user("x", id="x")),), removed=("m0", "m1", "m2", "m3")) == ["x"]


def test_a_message_that_is_removed_and_put_in_has_moved() -> None:
    assert edited(removed=("m0",), inserted=(("m2", user("word 0", id="m0")),)) == ["m1", "m2", "m0", "m3"]


def test_a_replaced_message_stays_in_its_place() -> None:
    views = Views.of([said(user("a", id="m1")), said(user("b", id="m2"))])
    views.take(ViewRecord(path="desk", replaced=(user("A", id="m1"),)))
    assert [message.text for message in views.history("desk")] == ["A", "b"]


@pytest.mark.parametrize(
    "changes", [{"removed": ("x",)}, {"replaced": (user("?", id="x"),)}, {"inserted": (("x", user("?", id="y")),)}]
)
def test_a_view_record_that_names_what_is_not_there_is_an_error(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not in the view: x"):
        edited(**changes)


def test_a_removed_message_does_not_come_back_with_a_seed(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        first = talk.say("desk", user("Forget this."))
        talk.say("desk", user("Keep this."))
        talk.hand_over("desk", "billing", full())
        talk.session.append(ViewRecord(path="billing", removed=(first.id,)))
        talk.views["billing"] = Session(talk.session.path).views["billing"]
        assert talk.views["billing"].removed == {first.id}
        talk.hand_over("desk", "billing", full())
        assert "Forget this." not in [message.text for message in talk.history("billing")]
        assert Session(talk.session.path).views == talk.views


def test_a_seed_enters_the_targets_view_as_the_loop_lets_it_in(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("triage", user("I was charged twice."))
        talk.use_tool("triage", "look", "check", backwards=True)
        talk.hand_over("triage", "billing", default_handoff_filter(), beside="note")
        talk.say("billing", assistant("Which one?", agent="billing"))
        talk.hand_over("billing", "triage", last_n(1))
        talk.say("triage", assistant("Both.", agent="triage"))
        talk.hand_over("triage", "billing", full())
        assert Session(talk.session.path).views == talk.views


def test_the_views_of_a_sub_agent_end_with_its_call(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as talk:
        talk.say("desk", user("Find out."))
        talk.ask("desk", "research", full(), "What is it?", "It is blue.")
        records = list(Session(talk.session.path)._state.views)
    assert records == ["desk"]


def test_inside_a_call_a_view_starts_from_its_seed_each_time() -> None:
    start = SubagentRecord(
        event="start", path="desk", source="desk", target="w", target_path="desk/w@t", call_id="t", crossed=((0, 1),)
    )
    talk: list[AnyRecord] = [said(user("Hi", id="m1")), start, said(user("more", id="m2"), "desk/w@t")]
    assert ids(talk, "desk/w@t") == ["m1", "m2"]
    assert ids([*talk, start], "desk/w@t") == ["m1"]


def test_a_known_record_with_fields_of_the_future_counts() -> None:
    record = Unknown("message", b"{}", said(user("Hi", id="m1")))
    assert Views.of([record]).history("desk") == History([user("Hi", id="m1")])
