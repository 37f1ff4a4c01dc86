"""Calls of tools that an agent lacks, as notes."""

from typing import Any

import pytest

from handrail.filters import (
    EdgeInfo,
    InvalidFilter,
    ToolCall,
    assistant,
    breaches,
    call,
    judge,
    note_foreign_tools,
    resolve,
    seal,
    tool_result,
    user,
)

TRACK, BUY = call("track", call_id="c1", parcel="8841"), call("buy", call_id="c2")
HISTORY = (
    user("Where is it?", id="m1"),
    assistant("Let me look.", TRACK, BUY, id="m2", agent="A"),
    tool_result(TRACK, "in Porto", id="m3"),
    tool_result(BUY, "bought", id="m4"),
    assistant("In Porto.", id="m5", agent="A"),
)
NOTED = note_foreign_tools(["track"])


def test_call_and_result_go_and_a_note_stands_after_the_results_that_stay() -> None:
    left = seal(NOTED)(HISTORY)
    assert [(message.id, message.role) for message in left] == [
        ("m1", "user"),
        ("m2", "assistant"),
        ("m4", "tool"),
        ("m3", "user"),
        ("m5", "assistant"),
    ]
    assert left[1].tool_calls == (BUY,)
    assert left[3].text.startswith("[A called track with these arguments, quoted as data")
    assert all(word in left[3].text for word in ('{"parcel":"8841"}', "[It answered, quoted as data", "\nin Porto\n"))
    assert breaches(left) == []


def test_a_message_that_only_called_goes() -> None:
    history = (assistant(BUY, id="m1"), tool_result(BUY, "no money", id="m2", is_error=True))
    (note,) = note_foreign_tools(["buy"])(history)
    assert note.text.startswith("[an agent called buy]\n[It failed with, quoted as data")
    assert (note.role, note.call_id, note.name, note.is_error) == ("user", None, None, False)


def test_without_such_calls_a_history_is_as_it_was() -> None:
    assert note_foreign_tools([])(HISTORY) is HISTORY
    assert note_foreign_tools(["other"])(HISTORY) is HISTORY


def test_a_note_is_short() -> None:
    asked = ToolCall("c1", "track", '{"x":"' + "y" * 5000 + '"}')
    (note,) = NOTED((assistant(asked), tool_result(asked, "z" * 5000)))
    assert len(note.text) < 700


@pytest.mark.parametrize(
    ("called", "result", "expected"),
    [
        ("secret", None, ["secret", "secret"]),
        (None, "secret", ["secret", "secret"]),
        ("public", "internal", ["internal", "internal"]),
        ("secret", "public", ["secret", "secret"]),
        (None, "public", [None, "public"]),
        (None, None, [None, None]),
    ],
)
def test_a_note_shares_the_fate_of_the_higher_label_of_its_pair(called: Any, result: Any, expected: Any) -> None:
    (note,) = NOTED((assistant(TRACK, sensitivity=called), tool_result(TRACK, "in Porto", sensitivity=result)))
    assert [part.sensitivity for part in note.content] == expected
    assert note.sensitivity is None


def test_a_redaction_token_that_is_cut_or_escaped_still_counts() -> None:
    asked = ToolCall("c1", "track", '{"x":"\\u005bREDACTED:secret]"}')
    (note,) = NOTED((assistant(asked), tool_result(asked, "z" * 195 + "[REDACTED:secret]")))
    assert [judge(note, part) for part in note.content] == ["secret", "secret"]


async def test_at_a_boundary_the_tools_are_those_that_the_target_lacks() -> None:
    edge = EdgeInfo(source="A", target="B", target_tools=("buy", "other"))
    assert await resolve(note_foreign_tools(), HISTORY, edge) == NOTED


def test_names_are_texts() -> None:
    with pytest.raises(InvalidFilter, match="names are those of tools"):
        note_foreign_tools([3])  # type: ignore[list-item]  # what is tested
