"""What a page is given of a session."""

from itertools import pairwise
from pathlib import Path

import pytest

from cli.viewer import books
from handrail.agent import Agent, FunctionModel, ScriptedModel, fan_out, handoff
from handrail.cli.viewer.pages import page
from handrail.cli.viewer.shapes import BoundaryRow, CallRow, MessageRow, NoteRow, Sheet
from handrail.cli.viewer.sheets import sheet
from handrail.filters import File, Messages, ToolCall, assistant, call, full, tool_result, user
from handrail.sessions import (
    FormatError,
    MessageRecord,
    ModelCallRecord,
    NotASession,
    Session,
    ToolCallRecord,
    ToolResultRecord,
    Usage,
    import_file,
)


def seen(path: Path) -> Sheet:
    return sheet(path, path.name)


def cards(found: Sheet) -> list[BoundaryRow]:
    return [row for row in found.rows if isinstance(row, BoundaryRow)]


def test_every_message_of_the_log_is_in_a_row(tmp_path: Path) -> None:
    found = seen(books.shop(tmp_path / "a.jsonl", rounds=3))
    rows = [row for row in found.rows if isinstance(row, MessageRow)]
    assert len(rows) + sum([len(row.results) for row in rows]) == found.totals.messages == 39
    assert [row.line for row in found.rows] == sorted([row.line for row in found.rows])


def test_a_card_names_what_crossed_what_stayed_and_each_reason(tmp_path: Path) -> None:
    handed, asked, back = cards(seen(books.shop(tmp_path / "a.jsonl")))
    assert (handed.source, handed.target, handed.before, handed.after) == ("triage", "billing", 2, 2)
    assert handed.notes[0].text == "a double charge"
    assert [(group.why, group.count) for group in asked.stayed] == [("nothing crosses but the reason or the input", 6)]
    assert [(each.why != "", each.message is not None) for each in asked.passed] == [(True, True)]
    assert asked.end is not None
    assert (asked.end.status, asked.end.answer) == ("completed", "A double charge is always refunded in full.")
    assert back.steps[0].text == "last_n(n=10, keep_user=False)"


def test_a_filter_that_cannot_run_here_leaves_what_crossed_and_says_that_the_reason_is_not_known(
    tmp_path: Path,
) -> None:
    def only_last(history: Messages) -> Messages:
        return history[-1:]

    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=only_last)])
    triage.run_sync([user("One"), user("Two")], session=str(tmp_path / "a.jsonl"))
    (card,) = cards(seen(tmp_path / "a.jsonl"))
    assert (len(card.passed), card.stayed[0].count) == (1, 1)
    assert card.stayed[0].why == "the filter that left it out cannot run here"
    assert card.problem


def test_a_card_lists_no_more_than_it_can_and_counts_the_rest(tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel("Yes."))
    model = ScriptedModel(call("transfer_to_billing", call_id="h1"))
    triage = Agent("triage", model=model, handoffs=[handoff(billing, filter=full())])
    triage.run_sync([user(f"Line {number}") for number in range(100)], session=str(tmp_path / "a.jsonl"))
    (card,) = cards(seen(tmp_path / "a.jsonl"))
    assert (card.after, len(card.passed), card.passed_more) == (100, 60, 40)


def test_a_model_call_stands_with_its_answer_and_one_without_an_answer_by_itself(tmp_path: Path) -> None:
    usage = Usage(1000, 100, requests=1)
    records = [
        ModelCallRecord(path="a", step=1, model="gpt-4o-mini", message_id="m1", usage=usage, error="cut off"),
        ModelCallRecord(path="a", step=1, attempt=2, model="gpt-4o-mini", message_id="m2", usage=usage),
        MessageRecord(path="a", message=assistant("Hello", id="m2", agent="a")),
    ]
    found = seen(books.write(tmp_path / "a.jsonl", *records))
    alone, said = found.rows
    assert isinstance(alone, CallRow)
    assert isinstance(said, MessageRow)
    assert (alone.call.error, said.call.attempt if said.call else 0) == ("cut off", 2)
    assert (found.totals.calls, found.totals.priced, found.totals.cost > 0) == (2, 2, True)
    assert [(lane.first, lane.last) for lane in found.lanes] == [(0, 1)]


def test_a_call_tells_how_often_it_was_started_and_with_what(tmp_path: Path) -> None:
    part = ToolCall("c1", "add", '{"a": 1}')
    records = [
        MessageRecord(path="a", message=assistant(part, ToolCall("c2", "add", "{}"), id="m1")),
        ToolCallRecord(path="a", call_id="c1", name="add", arguments='{"a":1}'),
        ToolCallRecord(path="a", call_id="c1", name="add", arguments='{"a":2}', attempt=2),
        ToolResultRecord(path="a", message=tool_result(part, "3", id="r1")),
        ToolCallRecord(path="a", call_id="c2", name="add", arguments="{}"),
    ]
    (row,) = seen(books.write(tmp_path / "a.jsonl", *records)).rows
    assert isinstance(row, MessageRow)
    assert (row.starts, row.ran, list(row.results)) == ({0: 2, 1: 1}, {0: '{"a":2}'}, [0])


def test_a_result_that_nothing_waits_for_has_a_row_of_its_own(tmp_path: Path) -> None:
    record = ToolResultRecord(path="a", message=tool_result("c9", "late", id="r1"))
    (row,) = seen(books.write(tmp_path / "a.jsonl", record)).rows
    assert isinstance(row, MessageRow)
    assert row.message.id == "r1"


def test_a_lane_of_a_sub_agent_ends_with_its_call_and_its_column_is_used_again(tmp_path: Path) -> None:
    found = seen(books.shop(tmp_path / "a.jsonl", rounds=4))
    within = [lane for lane in found.lanes if lane.depth]
    assert {lane.column for lane in within} == {2}
    assert len(within) == 4
    assert all([one.last < other.first for one, other in pairwise(within)])


def test_the_bytes_of_a_file_are_not_on_the_page_and_their_number_is(tmp_path: Path) -> None:
    message = user(File(data="QUJD" * 1000, media_type="application/pdf"), id="m1")
    (row,) = seen(books.write(tmp_path / "a.jsonl", MessageRecord(path="a", message=message))).rows
    assert isinstance(row, MessageRow)
    part = row.message.content[0]
    assert isinstance(part, File)
    assert part.data == "3,000 bytes"


def test_a_broken_line_ends_the_rows_with_a_note_that_names_it(tmp_path: Path) -> None:
    path = books.shop(tmp_path / "a.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:8], b"{broken\n", *lines[9:]]))
    found = seen(path)
    last = found.rows[-1]
    assert isinstance(last, NoteRow)
    assert (found.verified.state, last.bad, "line 9" in last.head) == ("damaged", True, True)
    assert len(found.rows) > 2


def test_messages_of_a_crossing_that_were_changed_later_are_not_shown_as_what_crossed(tmp_path: Path) -> None:
    path = books.shop(tmp_path / "a.jsonl")
    path.write_bytes(path.read_bytes().replace(b"charged twice on invoice", b"charged never on invoice", 1))
    found = seen(path)
    assert (found.verified.state, found.verified.ok) == ("tampered", False)
    assert (cards(found)[0].passed, cards(found)[0].before) == ([], None)
    assert "are not those whose digest it holds" in cards(found)[0].problem


def test_each_agent_that_one_call_asks_has_a_card_and_a_lane_of_its_own(tmp_path: Path) -> None:
    maps, signs = Agent("maps", model=ScriptedModel("Left.")), Agent("signs", model=ScriptedModel("Right."))
    model = ScriptedModel(call("fan_out", call_id="c1", input="Which way?"), "Left or right.")
    Agent("guide", model=model, tools=[fan_out([maps, signs])]).run_sync("Way?", session=str(tmp_path / "a.jsonl"))
    found = seen(tmp_path / "a.jsonl")
    assert [(card.target, card.end.answer if card.end else "") for card in cards(found)] == [
        ("maps", "Left."),
        ("signs", "Right."),
    ]
    assert [lane.path for lane in found.lanes] == ["guide", "guide/maps@c1@1", "guide/signs@c1@2"]


def test_every_real_transcript_that_can_be_imported_is_a_page_with_all_its_messages(
    shared: Path, tmp_path: Path
) -> None:
    shown = 0
    for number, path in enumerate(sorted(shared.glob("corpus/*/*.*")) + sorted(shared.glob("corpus/*/*/*.*"))):
        try:
            sessions = import_file(path, tmp_path / f"{number}.jsonl")
        except FormatError:
            continue
        for session in sessions:
            found = seen(session)
            rows = [row for row in found.rows if isinstance(row, MessageRow)]
            assert len(rows) + sum([len(row.results) for row in rows]) == len(Session(session).log), path
            assert page("page", found).count(b"</script>") == 2
            shown += 1
    assert shown > 5


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    with pytest.raises(NotASession, match="handrail import"):
        seen(tmp_path / "chat.json")


def test_the_answer_that_a_handoff_brings_back_is_named_on_its_card(tmp_path: Path) -> None:
    billing = Agent("billing", model=ScriptedModel("It is refunded."))
    says = iter([call("transfer_to_billing", call_id="h1"), None])
    model = FunctionModel(lambda _: assistant(part) if (part := next(says)) else "Done.")
    triage = Agent("triage", model=model, handoffs=[handoff(billing, returns=full())])
    triage.run_sync("Twice?", session=str(tmp_path / "a.jsonl"))
    (card,) = cards(seen(tmp_path / "a.jsonl"))
    assert (card.returns, card.returned != "") == ("full()", True)
