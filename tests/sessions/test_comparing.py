"""What differs between two sessions by meaning, and what does not count."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.filters import assistant, last_user, none, system, tool_result, user
from handrail.filters.messages import Message, Reasoning, ToolCall
from handrail.sessions import (
    AgentRecord,
    DamagedSession,
    Difference,
    FormatError,
    MessageRecord,
    Session,
    StateRecord,
    ToolResultRecord,
    TurnRecord,
    Usage,
    diff,
    import_file,
)
from handrail.sessions.records import ModelCallRecord, ToolCallRecord, Unknown, ViewRecord, Writable
from sessions.conversations import Conversation, rechained


def written(path: Path, *records: Writable) -> Path:
    with Session(path, fsync="never") as session:
        session.append(*records)
    return path


def said(*messages: Message, path: str = "desk") -> list[Writable]:
    return [MessageRecord(path=path, message=message) for message in messages]


def compared(folder: Path, first: list[Writable], second: list[Writable]) -> Difference:
    return diff(written(folder / "a.jsonl", *first), written(folder / "b.jsonl", *second))


def fields(difference: Difference) -> list[tuple[str, object, object]]:
    return [(each.field, each.a, each.b) for row in difference.lanes[0].rows for each in row.changes]


def marks(difference: Difference) -> list[str]:
    return [row.what for row in difference.lanes[0].rows]


def asked(argument: str, id: str = "c1", call_id: str = "k1") -> Message:
    return assistant(ToolCall(call_id, "find", argument), id=id)


def test_a_session_and_itself_mean_the_same(tmp_path: Path) -> None:
    with Conversation(tmp_path / "a.jsonl") as talk:
        talk.say("triage", user("I was charged twice."))
        talk.use_tool("triage", "look", "find", backwards=True)
        talk.hand_over("triage", "billing", last_user())
        talk.ask("billing", "research", none(), "Why?", "Because.")
    difference = diff(tmp_path / "a.jsonl", tmp_path / "a.jsonl")
    assert difference.same
    assert str(difference).endswith("the same meaning")


def test_ids_times_and_call_ids_do_not_count(tmp_path: Path) -> None:
    first = said(user("Hi", id="m1", created_at=1), asked("{}"), tool_result("k1", "yes", id="m3"))
    again = [user("Hi", id="x1", created_at=9), asked("{}", "x2", "k9"), tool_result("k9", "yes", id="x3")]
    assert compared(tmp_path, first, said(*again)).same


def test_what_a_provider_signs_its_reasoning_with_does_not_count(tmp_path: Path) -> None:
    first, second = [said(assistant(Reasoning("So.", "p", signed), id="m1")) for signed in ('"one"', '"two"')]
    assert compared(tmp_path, first, second).same


@pytest.mark.parametrize(
    ("one", "other", "change"),
    [
        (user("Hi", id="m1"), user("Ho", id="m1"), ("content[0].text", "Hi", "Ho")),
        (asked('{"a":1,"b":2}'), asked('{"b": 3, "a": 1}'), ("content[0].arguments.b", 2, 3)),
        (asked("{broken"), asked("{}"), ("content[0].arguments", "{broken", {})),
        (
            tool_result("k", "x", id="r"),
            tool_result("k", "x", id="r", is_error=True),
            ("is_error", msgspec.UNSET, True),
        ),
        (tool_result("k", '{"n":1}', id="r"), tool_result("k", '{"n":2}', id="r"), ("content[0].text.n", 1, 2)),
        (tool_result("k", '{"n":1}', id="r"), tool_result("k", '{"n": 1}', id="r"), ("content[0].text",) * 0),
        (user("a", id="m"), user("a", id="m", sensitivity="secret"), ("sensitivity", msgspec.UNSET, "secret")),
    ],
)
def test_what_differs_in_a_pair_is_told_by_its_field(
    tmp_path: Path, one: Message, other: Message, change: tuple[object, ...]
) -> None:
    difference = compared(tmp_path, said(one), said(other))
    assert marks(difference) == ["changed"]
    assert fields(difference) == [change or ("content[0].text", '{"n":1}', '{"n": 1}')]


def test_a_message_that_is_one_more_leaves_the_others_aligned(tmp_path: Path) -> None:
    first = [user("one", id="m1"), assistant("two", id="m2"), user("three", id="m3")]
    difference = compared(tmp_path, said(*first), said(first[0], system("!", id="m9"), *first[1:]))
    assert marks(difference) == ["same", "added", "same", "same"]


def test_results_stand_in_the_order_of_their_calls_however_they_came_in(tmp_path: Path) -> None:
    for name, backwards in (("a", False), ("b", True)):
        with Conversation(tmp_path / f"{name}.jsonl") as talk:
            talk.say("triage", user("Hi"))
            talk.use_tool("triage", "look", "find", backwards=backwards)
    assert diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl").same


def test_a_call_that_was_made_differs_from_one_that_was_not(tmp_path: Path) -> None:
    made = ToolCallRecord(path="desk", call_id="k1", name="find", arguments='{"n":1}')
    difference = compared(tmp_path, [*said(asked('{"n":1}')), made], said(asked('{"n":1}')))
    (call,) = difference.lanes[0].calls
    assert [(each.field, each.a, each.b) for each in call.changes] == [("made", True, False)]


def test_an_unanswered_call_differs_from_an_answered_one_by_its_result(tmp_path: Path) -> None:
    result = ToolResultRecord(path="desk", message=tool_result("k1", "yes", id="m2"))
    (call,) = compared(tmp_path, said(asked("{}")), [*said(asked("{}")), result]).lanes[0].calls
    assert [each.field for each in call.changes] == ["made", "result"]


def test_another_filter_is_told_with_its_field_and_the_seed_with_what_no_longer_crossed(tmp_path: Path) -> None:
    for name, filter in (("a", last_user()), ("b", none())):
        with Conversation(tmp_path / f"{name}.jsonl") as talk:
            talk.say("triage", user("I was charged twice."))
            talk.hand_over("triage", "billing", filter)
    (crossing,) = diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl").crossings
    assert [each.field.split(".")[0].partition("[")[0] for each in crossing.pair.changes] == ["filter"]
    assert [row.what for row in crossing.seed] == ["changed"]


def test_sub_agents_stand_for_each_other_whatever_their_calls_are_called(tmp_path: Path) -> None:
    for name, before in (("a", 0), ("b", 2)):
        with Conversation(tmp_path / f"{name}.jsonl") as talk:
            talk.count = before
            talk.say("billing", user("Why?"))
            talk.ask("billing", "research", none(), "Why?", "Because." if name == "a" else "No idea.")
    difference = diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    inner = next(lane for lane in difference.lanes if lane.agent == "research")
    assert (inner.a, inner.b) == ("billing/research@s1", "billing/research@s3")
    assert [(each.field, each.a) for each in inner.rows[-1].changes] == [("content[0].text", "Because.")]
    (asked,) = difference.crossings
    assert ("answer", "Because.", "No idea.") in [(each.field, each.a, each.b) for each in asked.pair.changes]


def test_a_sub_agents_lane_stands_for_one_other_alone(tmp_path: Path) -> None:
    caller = [assistant(ToolCall("c1", "research"), id="m1"), assistant(ToolCall("c2", "research"), id="m1")]
    inner = {path: said(user(path, id="m2"), path=path) for path in ("desk/research@c1", "desk/research@c2")}
    first = [*said(caller[0]), *inner["desk/research@c1"], *inner["desk/research@c2"]]
    difference = compared(tmp_path, first, [*said(caller[1]), *inner["desk/research@c2"]])
    assert [(lane.a, lane.b) for lane in difference.lanes[1:]] == [
        ("desk/research@c1", "desk/research@c2"),
        ("desk/research@c2", None),
    ]


def test_how_both_ended_is_compared(tmp_path: Path) -> None:
    cost = Usage(input_tokens=3, requests=1)
    state = StateRecord(path="desk", values=msgspec.Raw(b'{"cart":["chair"]}'))
    end = TurnRecord(path="desk", run="r", event="end", status="failed", error="no answer")
    first = [*said(user("Hi", id="m1")), ModelCallRecord(path="desk", step=1, model="m", usage=cost), state]
    difference = compared(tmp_path, [*first, end], said(user("Hi", id="m1"), path="other"))
    changed = {each.field for each in difference.ends.changes}
    assert changed == {"active_agent", "state.cart", "models.m", "usage.input_tokens", "usage.requests"}
    assert difference.lanes[0].turns[0].a == {
        "status": "failed",
        "steps": 0,
        "usage": {},
        "error": "no answer",
    }


def test_agents_are_compared_by_what_they_are_told_and_what_they_can_do(tmp_path: Path) -> None:
    first, second = [[AgentRecord(name="desk", model=model, tools=("find",))] for model in ("one", "two")]
    difference = compared(tmp_path, [*first], [*second, AgentRecord(name="billing")])
    changed, added = difference.agents
    assert [(each.field, each.b) for each in changed.changes] == [("model", "two")]
    assert (added.what, added.b) == ("added", {"name": "billing"})


def test_what_an_agent_was_told_before_counts_beside_what_it_is_told_now(tmp_path: Path) -> None:
    def told(name: str, *instructions: str) -> Path:
        records = [AgentRecord(name="desk", instructions=(each,)) for each in instructions]
        return written(tmp_path / name, *records)

    first, second = told("a", "v1", "v2"), told("b", "v0", "v2")
    (pair,) = diff(first, second).agents
    assert [change.field for change in pair.changes] == ["earlier[0].instructions[0]"]
    assert diff(first, told("c", "v1", "v1", "v2")).same
    assert not diff(told("d", "v2"), first).same


@pytest.mark.parametrize(
    "request_",
    [{"instructions": {"agent": "Be kind."}}, {"tools": {}}, {"settings": {"temperature": 0.1}}, {"output": ""}],
)
def test_a_model_call_that_was_asked_otherwise_than_the_agent_is_told_differs(
    tmp_path: Path, request_: dict[str, Any]
) -> None:
    def answered(name: str, **asked: Any) -> Path:
        made = ModelCallRecord(path="desk", step=1, model="m", message_id="m1", **asked)
        return written(tmp_path / name, made, MessageRecord(path="desk", message=assistant("Yes.", id="m1")))

    plain, other = answered("a"), answered("b", **request_)
    for one, two in ((plain, other), (other, plain)):
        (row,) = diff(one, two).lanes[0].rows
        assert (row.what, row.changes[0].field.partition(".")[0]) == ("changed", "request")
    assert diff(other, answered("c", **request_)).same


def test_an_edit_of_a_view_is_compared_by_what_it_removed(tmp_path: Path) -> None:
    first = said(user("one", id="m1"), user("two", id="m2"))
    edit = ViewRecord(path="desk", removed=("m1",), reason="too long")
    (pair,) = compared(tmp_path, [*first, edit], [*first, ViewRecord(path="desk", removed=("m2",))]).lanes[0].edits
    assert {each.field.partition("[")[0] for each in pair.changes} == {"reason", "removed"}


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("model_call", "finish_reason", "length"),
        ("message", "aside", True),
        ("message", "rejects", "m1"),
        ("handoff", "notes", [{"label": "reason", "text": "Another."}]),
        ("handoff", "edited", "0" * 64),
        ("handoff", "returns", {"kind": "none"}),
        ("subagent", "sensitivity", "secret"),
        ("subagent", "returns", {"kind": "none"}),
        ("subagent", "reworded", True),
        ("state", "values", {"seen": 2}),
    ],
)
def test_whatever_of_a_record_means_something_is_told(tmp_path: Path, kind: str, field: str, value: object) -> None:
    with Conversation(tmp_path / "a.jsonl") as talk:
        talk.say("triage", user("I was charged twice."))
        talk.hand_over("triage", "billing", last_user())
        talk.ask("billing", "research", none(), "Why?", "Because.")
        talk.session.append(ModelCallRecord(path="billing", step=1, message_id="m9", finish_reason="stop"))
        talk.session.append(MessageRecord(path="billing", message=assistant("It is refunded.", id="m9")))
        values = msgspec.Raw(b'{"seen":1}')
        talk.session.append(StateRecord(path="billing", layer="memory", scope="session", values=values))

    def changed(lines: list[bytes]) -> list[bytes]:
        made = [json.loads(line) for line in lines]
        [record for record in made if record["kind"] == kind][-1][field] = value
        return [json.dumps(record).encode() for record in made]

    assert diff(tmp_path / "a.jsonl", rechained(tmp_path / "a.jsonl", list)).same
    difference = diff(tmp_path / "a.jsonl", rechained(tmp_path / "a.jsonl", changed))
    assert not difference.same
    assert ("seen" if kind == "state" else field) in str(difference)


def test_a_record_of_an_unknown_kind_counts(tmp_path: Path) -> None:
    first, second = [[Unknown("", b'{"kind":"later","n":%d}' % n)] for n in (1, 2)]
    assert [each.field for each in compared(tmp_path, [*first], [*second]).ends.changes] == ["unknown_records[0].n"]


def test_a_session_that_is_open_is_compared_as_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *said(user("Hi", id="m1")))
    with Session(path, fsync="never") as session:
        assert diff(session, path).same
        session.append(*said(user("Ho", id="m2")))
        assert diff(session, str(path)).same


def test_a_transcript_is_the_same_as_the_session_it_was_imported_as(tmp_path: Path, root: Path) -> None:
    chat = root / "examples" / "support_chat.json"
    import_file(chat, tmp_path / "a.jsonl", agent="desk")
    assert diff(tmp_path / "a.jsonl", chat, agent="desk").same
    assert not diff(tmp_path / "a.jsonl", chat, agent="other").same


def test_a_file_that_is_neither_a_session_nor_a_transcript_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("nothing of the kind")
    with pytest.raises(FormatError, match=r"a\.txt"):
        diff(tmp_path / "a.txt", tmp_path / "a.txt")


def test_a_record_that_does_not_fit_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", ViewRecord(path="desk", removed=("nobody",)))
    with pytest.raises(DamagedSession, match="line 2"):
        diff(path, path)


def test_what_only_differs_is_left_of_a_difference_and_goes_into_json(tmp_path: Path) -> None:
    first = [user("one", id="m1"), user("two", id="m2")]
    difference = compared(tmp_path, said(*first), said(first[0], user("other", id="m2"))).only_differing()
    told = msgspec.json.decode(msgspec.json.encode(difference))
    assert [row["what"] for row in told["lanes"][0]["rows"]] == ["changed"]
    assert not difference.same


def test_a_text_for_a_person_obeys_nothing_that_a_session_says(tmp_path: Path) -> None:
    first, second = [said(user(f"{word}\x1b[2J\u202e\nnext", id="m1\x1b")) for word in ("one", "two")]
    text = str(compared(tmp_path, first, [*second, *said(assistant("\x9b\x07", id="m2"))]))
    assert [character for character in text if ord(character) < 32 and character != "\n"] == []
    assert not set(text) & {"\x7f", "\x9b", "\u202e"}
    assert '"one' in text
