"""No thought leaves its agent."""

import pytest

from handrail.filters import (
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    assistant,
    full,
    seal,
    strip_reasoning,
    system,
    tool_result,
    user,
)
from handrail.filters.messages import canonical_json
from handrail.filters.reasoning import spoken


def test_no_reasoning_crosses_and_what_stood_around_it_stays_whole() -> None:
    asked = ToolCall("c1", "limits", '{"client":12}')
    history = (
        system("You are Triage."),
        user("Raise my limit."),
        assistant(Reasoning("Customer looks risky; stall."), "Let me check that.", asked),
        tool_result(asked, "limit 500"),
        assistant(Reasoning("Nothing to say yet.", "anthropic", '{"signature":"c2lnLTE="}')),
        assistant(Reasoning("Pass on.", "openai", '{"encrypted_content":"ZW5j"}'), "I will pass you to Credit."),
    )
    seed = seal(full())(history)
    assert list(seed[1:]) == [
        user("Raise my limit."),
        assistant("Let me check that.", asked),
        tool_result(asked, "limit 500"),
        assistant("I will pass you to Credit."),
    ]
    written = b"".join(map(canonical_json, seed))
    assert not [word for word in (b"looks risky", b"Nothing", b"Pass on.", b"c2lnLTE", b"ZW5j") if word in written]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no tags", "no tags"),
        ("<think>hm</think>yes", "yes"),
        ("a<THINK>b</Think>c", "ac"),
        ("before<think>never closed", "before"),
        ("opened elsewhere</think>said", "said"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("<thi<think>x</think>nk>hidden</think>said", "said"),
        ("2 < 3", "2 < 3"),
    ],
)
def test_thoughts_between_tags_are_not_spoken(text: str, said: str) -> None:
    assert spoken(text) == said


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 100_000,
        "</think>" * 100_000,
        "<thi" * 50_000 + "<think></think>" + "nk>" * 50_000,
        "<think>a</think>" * 50_000,
        "<" * 500_000,
    ],
)
def test_long_text_made_to_deceive_is_read_at_once_and_leaves_no_tag(text: str) -> None:
    said = spoken(text)
    assert "<think>" not in said
    assert "</think>" not in said
    assert spoken(said) == said


def test_tags_in_what_others_said_are_words() -> None:
    history = (user("What is <think> for?"), tool_result("c1", "<think>x</think>"))
    assert strip_reasoning()(history) == history


def test_signatures_in_extras_go_and_harmless_fields_stay() -> None:
    asked = ToolCall("c1", "x", extra='{"thought_signature":"c2ln"}')
    shown = Text("Hi", extra='{"citations":[1],"signature":"c2ln"}')
    (said,) = strip_reasoning()((assistant(shown, asked),))
    assert said == assistant(Text("Hi", extra='{"citations":[1]}'), ToolCall("c1", "x"))


@pytest.mark.parametrize("extra", ["{broken", "[1]", "[" * 100_000, "null"])
def test_an_extra_that_cannot_be_read_goes(extra: str) -> None:
    (said,) = strip_reasoning()((assistant(Text("Hi", extra=extra)),))
    assert said == assistant("Hi")


def test_a_message_left_empty_goes_and_a_result_keeps_an_empty_text() -> None:
    hidden = Opaque("openai", "reasoning", "{}")
    history = (system(hidden), user(hidden), assistant(hidden), tool_result("c1", hidden, id="r"))
    assert strip_reasoning()(history) == (tool_result("c1", [Text("")], id="r"),)


def test_a_message_without_reasoning_is_the_same_object() -> None:
    said: Message = assistant("Hi", Opaque("openai", "web_search_call", "{}", "tool"), id="m1")
    assert strip_reasoning()((said,))[0] is said
