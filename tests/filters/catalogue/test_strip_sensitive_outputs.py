"""Tool outputs that others may not see."""

from typing import Any

import pytest

from handrail.filters import (
    InvalidFilter,
    Message,
    Opaque,
    Text,
    assistant,
    call,
    seal,
    strip_sensitive_outputs,
    tool_result,
    user,
)

BALANCE, TRACK = call("balance", call_id="c1"), call("track", call_id="c2")
TOKEN = "[REDACTED:internal:iban]"


def desk(result: Message) -> tuple[Message, ...]:
    return (user("How much?"), assistant("One moment.", BALANCE, TRACK), result, tool_result(TRACK, "in Porto"))


SENSITIVE = {
    "labelled": tool_result(BALANCE, "12,400", sensitivity="secret"),
    "unknown label": tool_result(BALANCE, "12,400", sensitivity="topsecret"),
    "part": tool_result(BALANCE, [Text("12,400", sensitivity="secret")]),
    "one of its parts": tool_result(BALANCE, ["yours:", Text("12,400", sensitivity="secret")]),
    "token": tool_result(BALANCE, f"of {TOKEN}"),
    "token beside its words": tool_result(BALANCE, [Text("yours", extra=f'{{"note":"{TOKEN}"}}')]),
    "public token": tool_result(BALANCE, "[REDACTED:public]"),
    "malformed token": tool_result(BALANCE, "[REDACTED"),
    "pinned": tool_result(BALANCE, "12,400", sensitivity="secret", pinned=True),
    "empty": tool_result(BALANCE, "", sensitivity="secret"),
}


@pytest.mark.parametrize("why", SENSITIVE)
def test_a_sensitive_result_goes_with_its_call_alone(why: str) -> None:
    left = strip_sensitive_outputs()(desk(SENSITIVE[why]))
    assert left == (user("How much?"), assistant("One moment.", TRACK), tool_result(TRACK, "in Porto"))


@pytest.mark.parametrize(
    "result",
    [
        tool_result(BALANCE, "12,400"),
        tool_result(BALANCE, "12,400", sensitivity="internal"),
        tool_result(BALANCE, f"of {TOKEN}", sensitivity="internal"),
        tool_result(BALANCE, [Text(TOKEN, sensitivity="public")]),
    ],
)
def test_a_result_that_is_not_secret_and_not_redacted_without_a_label_stays(result: Message) -> None:
    assert strip_sensitive_outputs()(desk(result)) == desk(result)


@pytest.mark.parametrize("why", SENSITIVE)
def test_a_placeholder_keeps_the_call_and_is_internal(why: str) -> None:
    filter = strip_sensitive_outputs(on_drop="placeholder")
    left = filter(desk(SENSITIVE[why]))
    assert left[1].tool_calls == (BALANCE, TRACK)
    assert [(part.sensitivity, part.text[:10]) for part in left[2].content if isinstance(part, Text)] == [
        ("internal", "[REDACTED:")
    ]
    assert left[2].sensitivity is None
    assert filter(left) == strip_sensitive_outputs()(left) == left


def test_a_call_message_left_empty_goes() -> None:
    history = (user("How much?"), assistant(BALANCE), SENSITIVE["labelled"])
    assert strip_sensitive_outputs()(history) == history[:1]


def test_an_id_that_comes_back_takes_only_the_call_of_its_own_turn() -> None:
    history = (
        assistant("first", BALANCE),
        tool_result(BALANCE, "closed"),
        assistant("second", BALANCE),
        SENSITIVE["labelled"],
    )
    assert strip_sensitive_outputs()(history) == (*history[:2], assistant("second"))


def test_words_of_people_and_agents_are_not_outputs() -> None:
    history = (user(TOKEN, sensitivity="secret"), assistant(f"I see {TOKEN}."))
    assert strip_sensitive_outputs()(history) is history


def test_hosted_tools_of_a_message_go_together() -> None:
    used = Opaque("anthropic", "server_tool_use", "{}", "tool")
    gave = Opaque("anthropic", "web_search_tool_result", "{}", "tool", sensitivity="secret")
    said = assistant(used, gave, "It is sunny.")
    assert strip_sensitive_outputs()((said,)) == (assistant("It is sunny."),)
    (kept,) = strip_sensitive_outputs(on_drop="placeholder")((said,))
    assert kept.content == (Text("[REDACTED:secret]", sensitivity="internal"), Text("It is sunny."))


def test_what_is_left_is_lawful_at_a_boundary() -> None:
    seed = seal(strip_sensitive_outputs())(desk(SENSITIVE["token"]))
    assert [message.text for message in seed] == ["How much?", "One moment.", "in Porto"]


@pytest.mark.parametrize("on_drop", ["keep", "", None, 1])
def test_what_to_leave_is_one_of_two(on_drop: Any) -> None:
    with pytest.raises(InvalidFilter, match="'remove' or 'placeholder'"):
        strip_sensitive_outputs(on_drop=on_drop)
