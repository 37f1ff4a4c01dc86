"""The gate on labels."""

import pytest

from handrail.filters import (
    FilterNotRunnable,
    InvalidFilter,
    Message,
    Note,
    Text,
    ToolCall,
    assistant,
    breaches,
    by_sensitivity,
    call,
    from_descriptor,
    seal,
    system,
    tool_result,
    user,
)
from handrail.filters.messages import Messages

READ = call("read_vault", call_id="c1", client=12)
DESK = (
    system("You are Desk.", id="m0", sensitivity="public"),
    user("I am client 12.", id="m1", sensitivity="public"),
    assistant(READ, id="m2", sensitivity="public"),
    tool_result(READ, "PIN 9041", id="m3", sensitivity="secret"),
    assistant("The PIN was checked.", id="m4", sensitivity="internal"),
    user("What does [REDACTED:secret] mean on your form?", id="m5", sensitivity="public"),
)


def ids(messages: Messages) -> list[str]:
    return [message.id for message in messages]


def test_labels_decide_and_not_words_and_a_pair_goes_whole() -> None:
    for filter in (by_sensitivity("public"), seal(by_sensitivity("public"))):
        assert ids(filter(DESK)) == ["m0", "m1", "m5"]


def test_a_placeholder_is_one_text_with_the_label_of_the_boundary() -> None:
    kept = by_sensitivity("public", on_drop="placeholder")(DESK)
    assert ids(kept) == ["m0", "m1", "m2", "m3", "m4", "m5"]
    assert kept[3] == tool_result(READ, Text("[REDACTED:secret]", sensitivity="public"), id="m3")
    assert kept[4] == assistant(
        Text("[REDACTED:internal]", sensitivity="public"), id="m4", sensitivity="internal"
    ).replace(sensitivity=None)
    assert breaches(kept) == []


def test_a_part_above_the_tier_goes_and_the_rest_of_its_message_stays() -> None:
    history = (
        user([Text("My PIN is"), Text("9041", sensitivity="secret"), Text("."), Text("x", sensitivity="secret")]),
    )
    assert by_sensitivity()(history)[0].text == "My PIN is."
    assert by_sensitivity(on_drop="placeholder")(history)[0].text == "My PIN is[REDACTED:secret]."


@pytest.mark.parametrize("on_drop", ["remove", "placeholder"])
def test_a_call_above_the_tier_takes_its_result_along(on_drop: str) -> None:
    hidden = ToolCall("c1", "read_vault", '{"key":"k-77"}', sensitivity="secret")
    history = (user("Go.", id="m1"), assistant("One moment.", hidden, id="m2"), tool_result(hidden, "ok", id="m3"))
    kept = by_sensitivity("internal", on_drop)(history)  # type: ignore[arg-type]
    assert ids(kept) == ["m1", "m2"]
    assert kept[1].tool_calls == ()
    assert breaches(kept) == []


@pytest.mark.parametrize("label", ["SECRET", "confidental", "", "internal "])
def test_a_label_that_is_none_counts_as_secret(label: str) -> None:
    assert by_sensitivity()((user("x", sensitivity=label),)) == ()


@pytest.mark.parametrize(
    ("text", "crosses"), [("[REDACTED:internal:email]", True), ("[REDACTED:secret]", False), ("[REDACTED", False)]
)
def test_a_token_judges_what_has_no_label(text: str, crosses: bool) -> None:
    assert bool(by_sensitivity()((user(text),))) is crosses


@pytest.mark.parametrize(("unlabelled", "crosses"), [("public", True), ("internal", False)])
def test_what_unlabelled_text_counts_as_is_a_setting(unlabelled: str, crosses: bool) -> None:
    assert bool(by_sensitivity("public", unlabelled=unlabelled)((user("Hello"),))) is crosses  # type: ignore[arg-type]


def test_a_finding_of_a_detector_raises_text_without_a_label() -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    history = (
        user(f"My key: {key}", id="m1"),
        user(f"Not a secret: {key}", id="m2", sensitivity="public"),
        assistant(call("store", call_id="c1", nested='{"password":"hunter2"}'), id="m3"),
        tool_result("c1", "ok", id="m4"),
        user("Hello", id="m5"),
    )
    assert ids(by_sensitivity(detect="secrets")(history)) == ["m2", "m5"]
    assert ids(by_sensitivity()(history)) == ["m1", "m2", "m3", "m4", "m5"]


def test_a_detector_nobody_registered_does_not_run_and_round_trips() -> None:
    filter = by_sensitivity(detect=["acme/passports"])
    assert from_descriptor(filter.descriptor) == filter
    with pytest.raises(FilterNotRunnable, match="acme/passports"):
        filter(DESK)


def test_a_note_above_the_tier_does_not_cross_and_what_stands_in_has_its_own_label() -> None:
    notes = [Note("reason", "PIN 9041", "secret"), Note("input", "Check it.", "internal")]
    assert [message.text for message in seal(by_sensitivity()).hand_over((), notes)] == ["Check it."]
    seed = seal(by_sensitivity(on_drop="placeholder")).hand_over((), [Note("input", "PIN 9041", "secret")])
    assert [(message.text, message.sensitivity) for message in seed] == [("[REDACTED:secret]", "internal")]


def test_an_empty_message_is_judged_by_its_own_label() -> None:
    asked = call("read", call_id="c1")
    history = (assistant("Look.", asked, id="m1"), Message("tool", (), "m2", call_id="c1", sensitivity="secret"))
    assert by_sensitivity()(history) == (assistant("Look.", id="m1"),)


def test_a_message_that_the_laws_left_empty_is_gone_the_first_time_it_crosses() -> None:
    call_in_system = ToolCall("c1", "track", "{}", sensitivity="public")
    gate = seal(by_sensitivity("public"))
    crossed = gate((Message("system", (call_in_system,), "m1"), user("Hello.", id="m2", sensitivity="public")))
    assert ids(crossed) == ["m2"]
    assert gate(crossed) == crossed


@pytest.mark.parametrize("wrong", [{"max_tier": "top"}, {"on_drop": "hide"}, {"unlabelled": ""}, {"detect": [3]}])
def test_a_wrong_setting_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidFilter):
        by_sensitivity(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["max_tier", "unlabelled"])
def test_a_wrong_tier_is_named_with_its_setting(setting: str) -> None:
    with pytest.raises(InvalidFilter, match=f"^{setting} is one of public, internal, secret, not 'top'$"):
        by_sensitivity(**{setting: "top"})  # type: ignore[arg-type]
