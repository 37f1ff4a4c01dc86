"""What services say of their failures is read in every shape they have for it."""

import pytest

from handrail.agent.errors import ModelError, ModelRefused, ModelTimeout, ModelUnavailable
from handrail.agent.http.failures import Told, failed_within, refusal, told, unreadable
from handrail.agent.http.secrets import Secret, Where

HERE = Where("the model", (Secret("sk-test-0123456789"),))


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
        ("[" * 100_000, "[" * 500 + "…", None, None),
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
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_a_failure_within_an_answer_is_judged_by_its_own_words(reason: Told, retryable: bool, streaming: bool) -> None:
    assert failed_within(reason, HERE, streaming=streaming).retryable is retryable


def test_no_error_shows_a_key_that_the_service_echoes() -> None:
    reason = Told("bad key sk-test-0123456789")
    errors = [refusal(status, reason, HERE) for status in (401, 408, 429, 500)]
    errors += [failed_within(reason, HERE, streaming=True), unreadable(HERE, "it is odd", "sk-test-0123456789")]
    assert [str(error).count("***") for error in errors] == [1] * 6
    assert "sk-test" not in "".join(map(str, errors))
