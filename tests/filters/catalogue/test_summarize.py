"""A summary that a model writes at the boundary."""

from typing import Any

import pytest

from handrail.filters import (
    EdgeInfo,
    FilterFailed,
    InvalidFilter,
    Messages,
    Text,
    assistant,
    breaches,
    call,
    full,
    last_user,
    resolve,
    since_handoff,
    summarize,
    system,
    tool_result,
    user,
)

EDGE = EdgeInfo(source="A", target="B")
ASKED = call("track", call_id="c1")
HISTORY = (
    system("s", id="m1"),
    user("Order 8841", id="m2", pinned=True),
    user("Where is it?", id="m3"),
    assistant("<think>Hm.</think>Let me look.", ASKED, id="m4"),
    tool_result(ASKED, "in Porto", id="m5"),
    assistant("In Porto.", id="m6"),
)


class Ask:
    """Answers with a text, and keeps what it was asked."""

    def __init__(self, text: Any = "They talked.") -> None:
        self.text = text
        self.asked: Messages = ()

    async def __call__(self, messages: Messages) -> Any:
        self.asked = messages
        return self.text


async def test_it_is_asked_about_what_the_summary_replaces_and_nothing_else() -> None:
    ask = Ask()
    found = await resolve(summarize(ask, instructions="", keep_last=1), HISTORY, EDGE)
    assert [message.id for message in ask.asked] == ["m3", "m4", "m5"]
    assert ask.asked[1].text == "Let me look."
    assert breaches(ask.asked) == []
    left = found(HISTORY)
    assert [message.id for message in left] == ["m1", "m2", "", "m6"]
    assert (left[2].role, "\nThey talked.\n" in left[2].text) == ("user", True)


async def test_the_instructions_follow_as_a_user_message() -> None:
    ask = Ask()
    await resolve(summarize(ask, instructions="In French."), HISTORY, EDGE)
    assert (ask.asked[-1].role, ask.asked[-1].text) == ("user", "In French.")


async def test_where_nothing_would_be_replaced_nobody_is_asked() -> None:
    ask = Ask()
    assert await resolve(summarize(ask), HISTORY[:2], EDGE) == full()
    assert await resolve(summarize(ask, keep_last=9), HISTORY, EDGE) == full()
    assert ask.asked == ()


@pytest.mark.parametrize("text", ["", " \n", None, 7, ["They talked."]])
async def test_a_summary_that_says_nothing_fails(text: Any) -> None:
    with pytest.raises(FilterFailed, match=r"summarize\(Ask\) raised"):
        await resolve(summarize(Ask(text)), HISTORY, EDGE)
    assert await resolve(summarize(Ask(text), on_error=last_user()), HISTORY, EDGE) == last_user()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((None, None), None),
        (("public", "public"), "public"),
        (("public", None), None),
        (("internal", None), "internal"),
        (("public", "secret"), "secret"),
        (("nonsense", None), "secret"),
    ],
)
async def test_a_summary_has_the_highest_label_of_what_it_stands_for(labels: Any, expected: str | None) -> None:
    history = tuple([user(Text("said", sensitivity=label)) for label in labels])
    found = await resolve(summarize(Ask()), history, EDGE)
    assert [message.sensitivity for message in found(history)] == [expected]


async def test_a_summary_of_a_redacted_text_is_labelled_by_its_token() -> None:
    history = (user("my key is [REDACTED:secret:key]"), user("hello"))
    found = await resolve(summarize(Ask()), history, EDGE)
    assert found(history)[0].sensitivity == "secret"


@pytest.mark.parametrize(
    "wrong",
    [
        {"ask": None},
        {"instructions": None},
        {"keep_last": -1},
        {"keep_last": True},
        {"on_error": "fall back"},
        {"on_error": since_handoff()},
        {"timeout": 0},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilter):
        summarize(**{"ask": Ask(), **wrong})
