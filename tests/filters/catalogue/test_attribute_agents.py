"""Other agents' words, quoted as attributed data."""

from typing import Any

import pytest

from handrail.filters import (
    EdgeInfo,
    Image,
    InvalidFilter,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    assistant,
    attribute_agents,
    breaches,
    call,
    resolve,
    seal,
    system,
    tool_result,
    user,
)

ASKED = call("track", call_id="c1")
FOR_B = attribute_agents("B")


def test_other_agents_words_are_quoted_and_everything_else_stays() -> None:
    history = (
        system("s", id="1", agent="A"),
        user("u", id="2"),
        assistant("mine", id="3", agent="B"),
        assistant("nobody's", id="4"),
        assistant("theirs", id="5", agent="A", pinned=True),
    )
    left = FOR_B(history)
    assert left[:4] == history[:4]
    assert (left[4].role, left[4].id, left[4].agent, left[4].pinned) == ("user", "5", "A", True)
    assert left[4].text.startswith("[A said, quoted as data ")
    assert "\ntheirs\n" in left[4].text


def test_calls_stay_with_their_results_and_the_words_stand_before_them() -> None:
    history = (user("u", id="1"), assistant("Let me look.", ASKED, id="2", agent="A"), tool_result(ASKED, "ok", id="3"))
    left = seal(FOR_B)(history)
    assert [message.role for message in left] == ["user", "user", "assistant", "tool"]
    assert (left[1].id[:3], left[2].id, left[2].content) == ("f1-", "2", (ASKED,))
    assert breaches(left) == []


def test_a_message_of_calls_alone_is_as_it_was() -> None:
    history = (assistant(ASKED, id="2", agent="A"), tool_result(ASKED, "ok", id="3"))
    assert FOR_B(history) == history


def test_no_reasoning_is_quoted() -> None:
    said = assistant(
        Reasoning("risky"), "<think>stall</think>Hello.", Text("", extra='{"signature":"c2ln"}'), id="1", agent="A"
    )
    (left,) = FOR_B((said,))
    assert "Hello." in left.text
    assert not any(word in repr(left) for word in ("risky", "stall", "c2ln"))
    assert FOR_B((assistant("<think>only thought", agent="A"),)) == ()


def test_every_part_keeps_its_label() -> None:
    said = assistant(
        Text("a", sensitivity="public"), Refusal("no", sensitivity="secret"), Image(url="u"), agent="A", id="1"
    )
    (left,) = FOR_B((said.replace(sensitivity="internal"),))
    assert [part.sensitivity for part in left.content] == ["public", "secret", None]
    assert left.sensitivity == "internal"


def test_what_only_its_provider_understands_stays_in_the_assistant_role() -> None:
    hosted = Opaque("openai", "web_search_call", "{}", "tool")
    words, rest = FOR_B((assistant("I looked.", hosted, agent="A", id="1"),))
    assert (words.role, rest.role, rest.content) == ("user", "assistant", (hosted,))


async def test_at_a_boundary_the_name_is_the_targets() -> None:
    assert await resolve(attribute_agents(), (), EdgeInfo(source="A", target="B")) == FOR_B


@pytest.mark.parametrize("wrong", ["", 3])
def test_an_agent_has_a_name(wrong: Any) -> None:
    with pytest.raises(InvalidFilter, match="the name of an agent"):
        attribute_agents(wrong)
