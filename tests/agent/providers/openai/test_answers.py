"""A whole answer is read for all it says, and what is no answer is an error that shows how it begins."""

from typing import Any

import pytest

from agent.providers.openai.asking import as_json
from handrail.agent.errors import InvalidResponse, ModelError, ModelRefused, ModelUnavailable
from handrail.agent.http.secrets import Secret, Where
from handrail.agent.models import ChatResponse
from handrail.agent.providers.openai.answers import mended, read_answer, read_usage
from handrail.filters import Refusal, Text, ToolCall
from handrail.sessions import Usage

HERE = Where("the model")


def answer(message: Any, reason: str | None = "stop", **fields: Any) -> ChatResponse:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return read_answer(as_json({"id": "x", "choices": [choice], **fields}).encode(), HERE)


def test_a_text_answer_is_an_assistant_message() -> None:
    heard = answer({"role": "assistant", "content": "Hi"}, usage={"prompt_tokens": 3, "completion_tokens": 1})
    assert (heard.message.role, heard.message.content, heard.message.id) == ("assistant", (Text("Hi"),), "")
    assert (heard.usage, heard.finish_reason) == (Usage(3, 1), "stop")


def test_calls_keep_their_arguments_as_text() -> None:
    function = {"name": "find", "arguments": '{"id": 123456789012345678901234567890, "f": 1.0}'}
    call = {"id": "c1", "type": "function", "function": function}
    heard = answer({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")
    assert heard.message.content == (ToolCall("c1", "find", function["arguments"]),)


def test_an_empty_text_is_no_part() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "health", "arguments": ""}}
    heard = answer({"role": "assistant", "content": "", "tool_calls": [call]})
    assert heard.message.content == (ToolCall("c1", "health"),)
    assert answer({"role": "assistant", "content": ""}).message.content == ()


def test_a_refusal_is_a_part_of_its_own() -> None:
    heard = answer({"role": "assistant", "content": None, "refusal": "I cannot."})
    assert heard.message.content == (Refusal("I cannot."),)


def test_lone_halves_of_surrogate_pairs_do_not_spoil_an_answer() -> None:
    message = rb'{"role":"assistant","content":"ok \ud83d end \ud83c\udf78 \\ud83d"}'
    heard = read_answer(b'{"choices":[{"message":%s,"finish_reason":"stop"}]}' % message, HERE)
    assert heard.message.text == "ok \ufffd end 🍸 \\ud83d"


@pytest.mark.parametrize(
    ("escaped", "clean"),
    [
        (rb"\ud83d", rb"\ufffd"),
        (rb"\uD83D\uDE42", rb"\uD83D\uDE42"),
        (rb"\ud83d\ud83d\ude42", rb"\ufffd\ud83d\ude42"),
        (rb"\ude42\ud83d", rb"\ufffd\ufffd"),
        (rb"\\ud83d", rb"\\ud83d"),
        (rb"\\\ud83d", rb"\\\ufffd"),
    ],
)
def test_only_escapes_of_lone_halves_are_mended(escaped: bytes, clean: bytes) -> None:
    assert mended(escaped) == clean


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "not JSON"),
        (b"<html>busy</html>", "not JSON; it begins '<html>busy</html>'"),
        (b'{"choices": [{"mess', "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "Expected `object`"),
        (b"null", "Expected `object`"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": null}', "no choices"),
        (b'{"choices": {}}', "Expected `array"),
        (b'{"choices": [{}]}', "missing required field `message`"),
        (b'{"choices": [{"message": null}]}', "its message cannot be read"),
        (b'{"choices": [{"message": "Hi"}]}', "its message cannot be read"),
        (b'{"choices": [{"message": {"role": "assistant", "content": 1}}]}', "its message cannot be read"),
        (b'{"choices": [{"message": {"role": "user", "content": "Hi"}}]}', "of the role 'user'"),
        (b'{"choices": [{"message": {"role": "assistant", "tool_calls": 1}}]}', "its message cannot be read"),
    ],
)
def test_what_is_no_answer_is_an_invalid_response(body: bytes, problem: str) -> None:
    with pytest.raises(InvalidResponse, match="sent what is no answer") as caught:
        read_answer(body, HERE)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"message": "upstream broke", "code": 502}, ModelUnavailable),
        ({"message": "upstream broke", "type": "invalid_request_error"}, ModelRefused),
        ("upstream broke", ModelUnavailable),
    ],
)
@pytest.mark.parametrize("choices", [[], {}, None])
def test_an_error_in_a_body_that_is_a_success_is_that_error(told: Any, error: type[Exception], choices: Any) -> None:
    with pytest.raises(error, match="upstream broke"):
        read_answer(as_json({"error": told, "choices": choices}).encode(), HERE)


@pytest.mark.parametrize(
    "body",
    [
        b'{"key": sk-test-0123456789',
        b'{"choices": [{"message": {"content": 7, "key": "sk-test-0123456789"}}]}',
        b'{"choices": [{"message": {"role": "sk-test-0123456789"}}]}',
        b'{"choices": [], "key": "sk-test-0123456789"}',
        b'{"choices": 7, "error": {"message": "sk-test-0123456789", "code": "sk-test-0123456789"}}',
        b'{"error": {"message": "sk-test-0123456789", "type": "sk-test-0123456789"}}',
        b"\xff sk-test-0123456789",
    ],
)
def test_an_error_holds_nothing_of_the_body_but_its_beginning_without_keys(body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        read_answer(body, Where("the model", (Secret("sk-test-0123456789"),)))
    error = caught.value
    assert error.__cause__ is error.__context__ is None
    assert "sk-test" not in f"{error}{error.code}{error.kind}{vars(error)}"


@pytest.mark.parametrize(
    "told", [None, [], "many", {}, {"prompt_tokens": "3", "completion_tokens": -1}, {"prompt_tokens": 1.5}]
)
def test_usage_that_is_not_told_in_numbers_counts_as_nothing(told: Any) -> None:
    assert read_usage(told) == Usage()
