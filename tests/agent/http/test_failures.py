"""What services say of their failures is read in every shape they have for it."""

import msgspec
import pytest

from handrail.agent.errors import ModelError, ModelRefused, ModelTimeout, ModelUnavailable
from handrail.agent.http.failures import Told, failed_within, refusal, told, told_by, unreadable
from handrail.agent.http.secrets import Secret, Where

KEY = "sk-test-0123456789"
HERE = Where("the model", (Secret(KEY),))


@pytest.mark.parametrize(
    ("body", "message", "kind", "code"),
    [
        ('{"error": {"message": "m", "type": "t", "code": "c"}}', "m", "t", "c"),
        ('{"error": {"message": "m", "type": "t", "code": 502}}', "m", "t", 502),
        ('{"error": "m"}', "m", None, None),
        ('{"object": "error", "message": "m", "type": "t", "code": 400}', "m", "t", 400),
        ('[{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}]', "m", "INVALID_ARGUMENT", 400),
        ('{"detail": "m"}', "m", None, None),
        ('{"detail": [{"loc": ["body", "n"], "msg": "too big", "input": "a secret"}]}', "body.n: too big", None, None),
        ("upstream\n broke", "upstream broke", None, None),
        ("<!DOCTYPE html><title>502\nBad Gateway</title>", "a page of HTML (502 Bad Gateway)", None, None),
        ("<html></html>", "a page of HTML", None, None),
        ("{}", "no reason given", None, None),
        ("[]", "[]", None, None),
        ("", "no reason given", None, None),
        ("[" * 100_000, "[" * 100_000, None, None),
        ('{"message": {"a": [1]}, "code": true, "type": 3}', '{"a":[1]}', None, None),
        ('{"detail": [{"loc": 7, "msg": ["m"]}, {"loc": null}, 5]}', '7: ["m"]; :', None, None),
    ],
)
def test_every_shape_of_an_error_gives_its_message_kind_and_code(
    body: str, message: str, kind: str | None, code: str | int | None
) -> None:
    assert told(body.encode()) == Told(message, kind, code)


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (307, ModelRefused, False),
        (400, ModelRefused, False),
        (401, ModelRefused, False),
        (404, ModelRefused, False),
        (408, ModelTimeout, True),
        (429, ModelUnavailable, True),
        (500, ModelUnavailable, True),
        (503, ModelUnavailable, True),
        (529, ModelUnavailable, True),
    ],
)
def test_each_status_has_its_error(status: int, error: type[ModelError], retryable: bool) -> None:
    raised = refusal(status, Told("m", "t", "c"), HERE, 3.0)
    assert (type(raised), raised.retryable, raised.status, raised.kind, raised.code, raised.retry_after) == (
        *(error, retryable, status, "t", "c"),
        3.0,
    )


def test_a_quota_that_is_used_up_does_not_come_back_by_waiting() -> None:
    assert not refusal(429, Told("m", "insufficient_quota"), HERE).retryable


@pytest.mark.parametrize(
    ("reason", "retryable"),
    [
        (Told("m", "overloaded_error"), True),
        (Told("m", "server_error", 502), True),
        (Told("m", None, "429"), True),
        (Told("m"), True),
        (Told("m", "invalid_request_error"), False),
        (Told("m", None, 400), False),
        (Told("m", None, "404"), False),
        (Told("m", None, "4" * 10_000), True),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_a_failure_within_an_answer_is_judged_by_its_own_words(reason: Told, retryable: bool, streaming: bool) -> None:
    assert failed_within(reason, HERE, streaming=streaming).retryable is retryable


def every_error(reason: Told) -> list[ModelError]:
    errors: list[ModelError] = [refusal(status, reason, HERE) for status in (307, 401, 404, 408, 429, 500)]
    return errors + [failed_within(reason, HERE, streaming=streaming) for streaming in (True, False)]


def test_a_long_message_is_cut() -> None:
    assert all(len(str(error)) < 600 and "x…" in str(error) for error in every_error(Told("x" * 10_000)))


def test_an_error_is_one_that_can_be_written_down() -> None:
    reason = told_by({"error": {"message": "half \ud83d", "code": "\ud83d", "type": "\ud83d"}})
    for error in every_error(reason):
        assert f"{error}{error.code}{error.kind}".encode().count("\N{REPLACEMENT CHARACTER}".encode()) == 3


@pytest.mark.parametrize("before", range(430, 500, 3))
def test_no_place_where_a_text_is_cut_leaves_a_part_of_a_key(before: int) -> None:
    reason = told(msgspec.json.encode({"error": {"message": "y" * before + KEY + " is wrong"}}))
    texts = [str(error) for error in every_error(reason)]
    texts += [str(unreadable(HERE, "it is odd", "y" * (before - 430) + KEY + "z" * 100))]
    texts += [str(unreadable(HERE, "y" * before + KEY))]
    assert [text for text in texts if KEY[:6] in text] == []


@pytest.mark.parametrize("length", range(6, len(KEY)))
def test_the_beginning_of_a_key_that_the_service_cut_off_is_hidden(length: int) -> None:
    for end in ("", "…", "...", '"', '"}', "…'."):
        assert HERE.hide(f"bad key {KEY[:length]}{end}") == f"bad key ***{end}"


def test_a_key_in_the_code_or_the_type_of_an_error_is_hidden() -> None:
    for error in every_error(Told("m", "x" * 495 + KEY, KEY)):
        assert (error.code, error.kind) == ("***", "x" * 495 + "***")


def test_no_error_shows_a_key_that_the_service_echoes() -> None:
    reason = Told("bad key sk-test-0123456789")
    errors = [refusal(status, reason, HERE) for status in (401, 408, 429, 500)]
    errors += [failed_within(reason, HERE, streaming=True), unreadable(HERE, "it is odd", "sk-test-0123456789")]
    assert [str(error).count("***") for error in errors] == [1] * 6
    assert "sk-test" not in "".join(map(str, errors))
