"""Redaction in every text of a message."""

import base64
import json
import re
from hashlib import sha256

import msgspec
import pytest

from handrail.filters import (
    File,
    FilterFailed,
    FilterNotRunnable,
    Image,
    InvalidExpression,
    InvalidFilter,
    Message,
    Note,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    from_descriptor,
    parse,
    redact,
    seal,
    tool_result,
    user,
)

SECRET = "zq77"
INLINE = base64.b64encode(f"the code is {SECRET}".encode()).decode()


def arguments(filter: object, text: str) -> str:
    (message,) = filter((assistant(ToolCall("c1", "run", text)),))  # type: ignore[operator]
    written: str = message.tool_calls[0].arguments
    return written


def test_arguments_still_parse_with_the_same_keys_and_types() -> None:
    key, other = "sk-test-" + "abcdef1234567890", "sk-test-" + "zzzzzz1234567890"
    raw = f'{{"cmd":"API_KEY={key}","note":"line1\\nTOKEN=\\"{other}\\"","t":1.50}}'
    written = arguments(redact("secrets"), raw)
    read = json.loads(written)
    assert key not in written
    assert other not in written
    assert list(read) == ["cmd", "note", "t"]
    assert read["cmd"] == "API_KEY=[REDACTED:secret:openai_key]"
    assert read["note"].startswith("line1\n")
    assert written.endswith('"t":1.50}')


@pytest.mark.parametrize(
    "part",
    [
        Text(SECRET, extra=f'{{"detail":"{SECRET}"}}'),
        Refusal(f"no {SECRET}"),
        Reasoning(SECRET, data=f'{{"summary":"{SECRET}"}}'),
        Image(url=f"loopback:{SECRET}.png", name=SECRET, extra=f'["{SECRET}"]'),
        File(name="a.txt", media_type="text/plain", data=INLINE, digest="0" * 64),
        ToolCall("c1", "run", json.dumps({"a": [{"b": json.dumps({"c": SECRET, SECRET: 1})}]})),
        ToolCall("c1", "run", '{"a":"z\\u007177"}'),
        ToolCall("c1", "run", '{"a":"z\\u007177", broken'),
        Opaque("openai", "web_search_call", f'{{"query":"{SECRET}"}}', "tool"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_no_text_of_a_part_is_passed_over(part: Part) -> None:
    (message,) = redact(SECRET, kind="code")((Message("assistant", (part,), "m1"),))
    text = msgspec.json.encode(message).decode()
    assert SECRET not in text.replace("\\\\", "\\").replace("\\u0071", "q")
    assert "[REDACTED:secret:code]" in text or base64.b64encode(b"the code is [REDACTED:secret:code]").decode() in text


def test_the_digest_of_an_inline_text_is_that_of_what_is_left() -> None:
    (message,) = redact(SECRET)((user(File(media_type="text/plain", data=INLINE, digest="0" * 64)),))
    assert message.content[0].digest == sha256(b"the code is [REDACTED:secret]").hexdigest()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "before", "after"),
    [
        (r"\d{4,}", '{"pin":9041,"n":12,"f":1.50}', '{"pin":"[REDACTED:secret]","n":12,"f":1.50}'),
        (r'"pin":\d+', '{"pin":9041,"n":12}', '{"pin":"[REDACTED:secret]","n":12}'),
        ("a.*z", '{"x":"a","y":"z"}', '{"x":"[REDACTED:secret]","y":"[REDACTED:secret]"}'),
        ("b", '{"b":1, "a" : [2.0,true], "b":"b"}', None),
    ],
)
def test_json_stays_json_whatever_a_pattern_finds(pattern: str, before: str, after: str | None) -> None:
    written = arguments(redact(pattern), before)
    assert json.loads(written) is not None
    assert after is None or written == after
    assert re.search(pattern, written) is None or pattern == "a.*z"


def test_big_numbers_and_odd_spaces_stay_as_they_were_written() -> None:
    raw = '{ "id" : 2512292042121000001,\n "e":1e3, "neg0":-0.0, "s":"zq77" }'
    assert arguments(redact(SECRET), raw) == raw.replace("zq77", "[REDACTED:secret]")


def test_a_result_that_is_json_stays_json() -> None:
    result = tool_result("c1", '{"mail":"ann@example.org","n":1}')
    (left,) = redact("email")((result,))
    assert json.loads(left.text) == {"mail": "[REDACTED:internal:email]", "n": 1}


def test_redacting_again_changes_nothing() -> None:
    for filter in (redact("(?:secret)"), redact(["personal", "secrets"]), redact(r"\w{4,}", kind="word")):
        once = filter((user("My secret mail is ann@example.org, password: hunter2x"),))
        assert filter(once) is once or filter(once) == once


def test_a_token_is_never_cut_in_two() -> None:
    hidden = "AKIA" + "IOSFODNN7EXAMPLE"
    (message,) = redact("secrets")((user(f"x [REDACTED:public:{hidden}] y"),))
    assert message.text == "x [REDACTED:secret:aws_key] y"
    (message,) = redact("REDACTED:int")((user("x [REDACTED:internal:email] y"),))
    assert message.text == "x [REDACTED:secret] y"


def test_what_has_a_label_keeps_it() -> None:
    (message,) = redact(SECRET)((user(Text(SECRET, sensitivity="secret"), sensitivity="public"),))
    assert (message.sensitivity, message.content[0].sensitivity) == ("public", "secret")


def test_a_note_is_redacted() -> None:
    seed = seal(redact("email")).hand_over((), [Note("input", "Write to ann@example.org")])
    assert seed[0].text == "Write to [REDACTED:internal:email]"


def test_a_pattern_that_backtracks_without_end_is_an_error_that_names_it() -> None:
    with pytest.raises(FilterFailed, match=r"\(a\|aa\)\+"):
        redact("(a|aa)+$")((user("a" * 60 + "c"),))


@pytest.mark.parametrize("pattern", ["(", "", "a*", "x" * 10_001, "(?P<a>"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidFilter):
        redact(pattern)


@pytest.mark.parametrize(("written", "meant"), [("credit_card", "card"), ("emial", "email"), ("secret", "secrets")])
def test_what_is_nearly_a_detector_is_refused_naming_it_and_the_word_itself_can_be_written(
    written: str, meant: str
) -> None:
    refused = f"no detector '{written}'; did you mean {meant}"
    with pytest.raises(InvalidFilter, match=refused):
        redact([written])
    with pytest.raises((InvalidFilter, InvalidExpression), match=refused):
        parse(f"redact('{written}')")
    assert redact([f"(?:{written})", "hunter"])((user(f"the {written}"),))[0].text == "the [REDACTED:secret]"
    recorded = from_descriptor({"kind": "redact", "params": {"patterns": [written]}})
    assert recorded((user("x"),)) == (user("x"),)


@pytest.mark.parametrize("wrong", [{"kind": "a b"}, {"kind": "]"}, {"tier": "top"}, {"patterns": []}])
def test_a_wrong_setting_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidFilter):
        redact(**{"patterns": "x", **wrong})  # type: ignore[arg-type]


def test_a_detector_that_is_missing_at_replay_is_not_taken_for_a_pattern() -> None:
    filter = from_descriptor({"kind": "redact", "params": {"detect": ["acme/passport"]}})
    with pytest.raises(FilterNotRunnable, match="acme/passport"):
        filter((user("x"),))


def test_it_is_written_as_an_expression() -> None:
    assert parse("redact(['email', 'PIN \\\\d+'], kind='x')") == redact(["email", r"PIN \d+"], kind="x")
