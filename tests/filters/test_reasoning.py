"""No thought leaves its agent."""

from typing import Any

import msgspec
import pytest

from handrail.filters import (
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
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
        ("<thinking>hm</thinking>yes", "yes"),
        ("<think >hm</think\n>yes", "yes"),
        ('a< Thinking budget="9">hm< / thinking >b', "ab"),
        ("<seed:think>hm</seed:think>yes", "yes"),
        ("<rethink>, <thinker>, <think", "<rethink>, <thinker>, <think"),
        ("x</think>y<think>z</think>w", "yw"),
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
        "<think " * 100_000,
        "<" + " " * 500_000,
        "<think" + " a" * 250_000,
    ],
)
def test_long_text_made_to_deceive_is_read_at_once_and_leaves_no_tag(text: str) -> None:
    said = spoken(text)
    assert "<think>" not in said
    assert "</think>" not in said
    assert spoken(said) == said


@pytest.mark.parametrize(
    ("content", "left"),
    [
        (["<think>", "the secret plan", "</think>answer"], ["answer"]),
        (["said<think>", "the secret plan"], ["said"]),
        (["the secret plan", "</think>answer"], ["answer"]),
        (["<thi", "nk>the secret plan</th", "ink>answer"], ["answer"]),
        (["<thi", " <think>x</think>", "nk>the secret plan"], []),
        (["a ", "b<think>", "c", "</think>d", " e"], ["a ", "b", "d", " e"]),
        ([Refusal("<think>the secret plan</think>I may not.")], [Refusal("I may not.")]),
        (["<think>", Refusal("the secret plan"), "</think>answer"], ["answer"]),
        (["<think>", ToolCall("c1", "pay"), "the secret plan</think>", "Paid."], [ToolCall("c1", "pay"), "Paid."]),
        ([" ", "answer", ""], [" ", "answer", ""]),
    ],
)
def test_a_thought_that_is_spread_over_parts_is_taken_whole(content: list[Any], left: list[Any]) -> None:
    stripped = strip_reasoning()((assistant([Text(part) if isinstance(part, str) else part for part in content]),))
    expected = tuple([Text(part) if isinstance(part, str) else part for part in left])
    assert [message.content for message in stripped] == ([expected] if expected else [])
    assert strip_reasoning()(stripped) == stripped


def test_a_thought_in_very_many_parts_is_taken_at_once() -> None:
    content = [part for _ in range(20_000) for part in ("<think>", "the secret plan", "</think>", "word ")]
    (said,) = strip_reasoning()((assistant(content),))
    assert said.text == "word " * 20_000


def test_tags_in_what_others_said_are_words() -> None:
    history = (user("What is <think> for?"), tool_result("c1", "<think>x</think>"))
    assert strip_reasoning()(history) == history


def test_signatures_in_extras_go_and_harmless_fields_stay() -> None:
    asked = ToolCall("c1", "x", extra='{"thought_signature":"c2ln"}')
    shown = Text("Hi", extra='{"citations":[1],"signature":"c2ln"}')
    (said,) = strip_reasoning()((assistant(shown, asked),))
    assert said == assistant(Text("Hi", extra='{"citations":[1]}'), ToolCall("c1", "x"))


@pytest.mark.parametrize(
    ("extra", "left"),
    [
        ('{"citations":[{"title":"a","encrypted_index":"c2ln"}],"title":"t"}', '{"title":"t"}'),
        ('{"context":{"signature":"c2ln"}}', None),
        ('{"citations":[[{"signature":"c2ln"}]]}', None),
        ('{"title":{"signature":"c2ln"},"title":"t"}', '{"title":"t"}'),
        ('{"signature":"c2ln","detail":"low","detail":"high"}', '{"detail":"high"}'),
        (
            '{"title":"t", "citations":[1, "a", null], "detail":"low"}',
            '{"title":"t", "citations":[1, "a", null], "detail":"low"}',
        ),
        ('{"context":1e999,"title":"t"}', '{"title":"t"}'),
    ],
)
def test_of_a_harmless_field_only_plain_values_cross(extra: str, left: str | None) -> None:
    for part in (
        Text("Hi", extra=extra),
        Image(url="https://x.test/a.png", extra=extra),
        ToolCall("c1", "x", extra=extra),
    ):
        (said,) = strip_reasoning()((assistant("Hello", part),))
        assert said.content[1] == msgspec.structs.replace(part, extra=left)


@pytest.mark.parametrize("extra", ["{broken", "[1]", "[" * 100_000, "null", '"a"', "[]", '[["title","t"]]'])
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
