"""Transcripts that others wrote become sessions, and sessions become transcripts."""

import json
from pathlib import Path

import pytest

from handrail.filters import FixedClock, FixedIds, full, user
from handrail.sessions import (
    FormatError,
    JournalFailed,
    MessageRecord,
    Session,
    SessionExists,
    ToolResultRecord,
    export_to,
    import_file,
    read,
    verify,
)
from sessions.conversations import Conversation


def talk(*results: str) -> str:
    """A message list with two calls and results for these ids."""
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ("a", "b")]
    said = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": calls}]
    return json.dumps([*said, *[{"role": "tool", "tool_call_id": each, "content": f"of {each}"} for each in results]])


def imported(folder: Path, text: str) -> Session:
    (folder / "f.json").write_text(text)
    (path,) = import_file(folder / "f.json", folder / "s.jsonl", agent="helper")
    assert verify(path).state == "intact"
    return Session(path)


def test_the_one_who_answers_has_the_name_that_was_given(tmp_path: Path) -> None:
    session = imported(tmp_path, talk("a", "b"))
    assert [message.agent for message in session.history("helper")] == [None, "helper", None, None]
    assert list(session.agents) == ["helper"]
    assert session.about is not None
    assert session.about.source == "openai-chat"


def test_ids_are_made_from_place_and_content_and_are_the_same_every_time(tmp_path: Path) -> None:
    first = imported(tmp_path, talk("a", "b"))
    ids = [message.id for message in first.history()]
    assert [each.partition("-")[0] for each in ids] == ["i1", "i2", "i3", "i4"]
    assert all([len(each.partition("-")[2]) == 12 for each in ids])
    (again,) = import_file(tmp_path / "f.json", tmp_path / "again.jsonl", agent="helper")
    assert [message.id for message in Session(again).history()] == ids


def test_the_same_import_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(talk("a"))
    made = [
        import_file(tmp_path / "f.json", tmp_path / name, clock=FixedClock(1), ids=FixedIds("s"))[0]
        for name in ("x", "y")
    ]
    assert made[0].read_bytes() == made[1].read_bytes()


@pytest.mark.parametrize("order", ["ab", "ba", "a", "", "aab", "xab"])
def test_the_transcript_stays_in_the_order_it_had(tmp_path: Path, order: str) -> None:
    session = imported(tmp_path, talk(*order))
    assert [message.call_id for message in session.history()[2:]] == list(order)
    assert [message.call_id for message in session.log[2:]] == list(order)


def test_what_breaks_the_laws_is_listed_and_not_mended(tmp_path: Path) -> None:
    about = imported(tmp_path, talk("b", "b", "x")).about
    assert about is not None
    assert [breach.partition(" ")[0].rstrip(",") for breach in about.breaches] == ["P2", "P1", "P1"]


def test_a_result_in_its_place_is_a_tool_result_record(tmp_path: Path) -> None:
    records = list(read(imported(tmp_path, talk("a", "b")).path).records())
    assert [type(record) for record in records[-2:]] == [ToolResultRecord, ToolResultRecord]
    assert isinstance(records[-3], MessageRecord)


def test_several_transcripts_become_a_folder(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text(
        json.dumps([{"messages": [{"role": "user", "content": str(n)}]} for n in range(12)])
    )
    paths = import_file(tmp_path / "many.json", tmp_path / "out")
    assert [path.name for path in paths[:2]] == ["many-01.session.jsonl", "many-02.session.jsonl"]
    assert [Session(path).history()[0].text for path in paths] == [str(n) for n in range(12)]
    with pytest.raises(SessionExists):
        import_file(tmp_path / "many.json", tmp_path / "out")


def test_one_transcript_goes_into_a_folder_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(talk())
    (tmp_path / "out").mkdir()
    assert import_file(tmp_path / "one.json", tmp_path / "out") == [tmp_path / "out" / "one.session.jsonl"]


def test_nothing_is_written_where_the_file_cannot_be_read_whole(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text('[{"messages":[{"role":"user","content":"a"}]},{"messages":[{"role":"imp"}]}]')
    with pytest.raises(FormatError):
        import_file(tmp_path / "many.json", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["many.json"]


def test_a_place_that_cannot_be_written_to_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(talk())
    with pytest.raises(JournalFailed):
        import_file(tmp_path / "one.json", tmp_path / "missing" / "s.jsonl")
    with pytest.raises(FileNotFoundError):
        import_file(tmp_path / "missing.json", tmp_path / "s.jsonl")


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    session = imported(tmp_path, talk())
    with pytest.raises(FormatError, match="known: openai-chat"):
        export_to(session.path, "parchment")


def test_an_export_holds_all_that_was_said_at_the_level_of_the_session(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as conversation:
        conversation.say("desk", user("Find out."))
        conversation.ask("desk", "research", full(), "What is it?", "It is blue.")
        conversation.use_tool("desk", "one", "two", backwards=True)
    exported = export_to(tmp_path / "s", "openai-chat")
    wire = json.loads(exported.body)
    assert [each["role"] for each in wire] == ["user", "assistant", "tool", "assistant", "tool", "tool"]
    assert [each["content"] for each in wire[-2:]] == ["one says yes", "two says yes"]
    assert "message of a sub-agent (1)" in exported.losses


def test_an_export_of_one_agents_view_holds_that_alone(tmp_path: Path) -> None:
    with Conversation(tmp_path / "s") as conversation:
        conversation.say("desk", user("Help."))
        conversation.hand_over("desk", "billing", full())
    assert [each["content"] for each in json.loads(export_to(tmp_path / "s", "openai-chat", agent="billing").body)] == [
        "Help."
    ]
