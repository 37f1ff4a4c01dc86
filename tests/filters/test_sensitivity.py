"""Tiers, labels and redaction tokens."""

import pytest

from handrail.filters import File, Image, Message, Opaque, Part, Text, Tier, ToolCall, judge, user
from handrail.filters.sensitivity import highest, rank, tier, token, token_tier


def said(part: Part, label: str | None = None) -> Message:
    return user(part, sensitivity=label)


def test_tiers_are_in_order_and_what_is_no_tier_is_secret() -> None:
    assert [rank("public"), rank("internal"), rank("secret"), rank("Public"), rank("")] == [0, 1, 2, 2, 2]
    assert tier("classified") == "secret"
    assert highest("public", None, "internal") == "internal"
    assert highest(None) is None


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("nothing", None),
        ("[REDACTED:public]", "public"),
        ("a [REDACTED:public:name] b [REDACTED:internal:email] c", "internal"),
        ("[REDACTED:secret:api-key_2.0]", "secret"),
        ("[REDACTED]", "secret"),
        ("[REDACTED:]", "secret"),
        ("[REDACTED:public", "secret"),
        ("[REDACTED:Public]", "secret"),
        ("[REDACTED:public:]", "secret"),
        ("[REDACTED:public:a b]", "secret"),
        ("[REDACTED:top]", "secret"),
        ("[redacted]", None),
    ],
)
def test_a_token_that_does_not_follow_the_grammar_is_secret(text: str, tier: str | None) -> None:
    assert token_tier(text) == tier


@pytest.mark.parametrize("tier", ["public", "internal", "secret"])
def test_a_token_that_is_written_can_be_read(tier: Tier) -> None:
    assert token_tier(token(tier)) == token_tier(token(tier, "email")) == tier


@pytest.mark.parametrize(
    ("label", "part", "judged"),
    [
        (None, Text("a"), "internal"),
        ("public", Text("a"), "public"),
        ("public", Text("a", sensitivity="internal"), "internal"),
        ("internal", Text("a", sensitivity="public"), "internal"),
        ("public", Text("a", sensitivity="hush"), "secret"),
        ("public", Text("[REDACTED:secret]"), "public"),
        (None, Text("[REDACTED:public]"), "public"),
        (None, Text("[REDACTED:oops"), "secret"),
        (None, ToolCall("c1", "x", '{"q":"[REDACTED:secret]"}'), "secret"),
        (None, ToolCall("c1", "x", '{"q":"\\u005bREDACTED:secret]"}'), "secret"),
        (None, Opaque("openai", "x", '{"q":"[REDACTED:public:name]"}'), "public"),
        (None, File(name="[REDACTED:secret].pdf"), "secret"),
        (None, Image(data="aQ=="), "internal"),
    ],
)
def test_labels_judge_first_then_tokens_then_the_default(label: str | None, part: Part, judged: str) -> None:
    assert judge(said(part, label), part) == judged


def test_the_default_is_a_setting() -> None:
    assert judge(said(Text("a")), Text("a"), "public") == "public"
