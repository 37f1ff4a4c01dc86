"""What was said since the source got control."""

from typing import Any

import pytest

from handrail.filters import (
    EdgeInfo,
    InvalidFilter,
    assistant,
    call,
    compose,
    full,
    last_n,
    resolve,
    since_handoff,
    summary,
    system,
    tool_result,
    user,
)

ASKED = call("track", call_id="c1")
HISTORY = (
    system("s", id="m1"),
    user("Hello", id="m2"),
    user("8841", id="m3", pinned=True),
    assistant("Hi.", id="m4"),
    assistant(ASKED, id="m5"),
    tool_result(ASKED, "ok", id="m6"),
)
SAID = EdgeInfo(source="A", target="B", said=frozenset(["m5", "m6"]))


def test_system_and_pinned_messages_stand_and_the_rest_begins_after_the_message() -> None:
    assert [message.id for message in since_handoff("m4")(HISTORY)] == ["m1", "m3", "m5", "m6"]
    assert [message.id for message in since_handoff("m5")(HISTORY)] == ["m1", "m3"]
    assert [message.id for message in since_handoff("m6")(HISTORY)] == ["m1", "m3"]


def test_where_no_message_has_the_id_nothing_else_crosses() -> None:
    assert [message.id for message in since_handoff("m9")(HISTORY)] == ["m1", "m3"]


async def test_at_a_boundary_it_is_the_last_message_that_the_source_was_given() -> None:
    assert await resolve(since_handoff(), HISTORY, SAID) == since_handoff("m4")
    assert await resolve(compose(last_n(2), since_handoff()), HISTORY, SAID) == compose(last_n(2), full())


async def test_a_source_that_was_never_handed_anything_has_nothing_before() -> None:
    assert await resolve(since_handoff(), HISTORY, EdgeInfo(source="A", target="B")) == full()


async def test_what_a_step_before_made_was_not_said_by_the_source() -> None:
    found = await resolve(compose(summary("Hi", keep_last=2), since_handoff()), HISTORY, SAID)
    assert [message.id for message in found(HISTORY)][-2:] == ["m5", "m6"]


@pytest.mark.parametrize("wrong", ["", 3])
def test_after_is_an_id(wrong: Any) -> None:
    with pytest.raises(InvalidFilter, match="after is the id"):
        since_handoff(wrong)
