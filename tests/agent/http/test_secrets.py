"""Keys are sent and never shown."""

import copy
import json
import pickle
from urllib.parse import quote

import pytest

from handrail.agent.errors import BuildError
from handrail.agent.http.secrets import Secret, Where, in_query

KEY = "sk-test-0123456789"


def test_a_secret_shows_itself_only_in_the_header() -> None:
    secret = Secret(KEY, scheme="Bearer")
    assert secret.header() == f"Bearer {KEY}"
    assert KEY not in f"{secret!r}{secret!s}{[secret]}{Where('here', (secret,))}{Where('here', (secret,))!r}"


def test_a_secret_is_not_written_down_but_may_be_copied() -> None:
    secret = Secret(KEY)
    assert copy.deepcopy({"key": secret})["key"] is copy.copy(secret) is secret
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(secret)


def test_what_a_service_says_of_a_secret_is_hidden() -> None:
    where = Where("here", (Secret(KEY), Secret("no")))
    assert where.hide(f"wrong key {KEY}, not found") == "wrong key ***, not found"


@pytest.mark.parametrize("scheme", ["", "Bearer "])
@pytest.mark.parametrize(
    "told",
    [
        "sk-test-\n0123456789",
        "sk-test-\\n0123456789",
        "sk-te st-012 345\r\n6789",
        "\\u0073k\\u002dtest-0123456789",
        "sk%2Dtest%2d0123456789",
        "sk\\-test-0123456789",
    ],
)
def test_a_secret_is_hidden_however_it_is_written(told: str, scheme: str) -> None:
    assert Where("here", (Secret(f"{scheme}{KEY}"),)).hide(f"wrong key {told}, not found") == "wrong key ***, not found"


def test_signs_of_a_secret_are_not_taken_for_a_pattern() -> None:
    secret = Secret('a.b*c(d"e\\f/g+')
    assert secret.hide("aXbbc(d") == "aXbbc(d"
    assert secret.hide(json.dumps({"key": 'a.b*c(d"e\\f/g+'})) == '{"key": "***"}'
    assert (
        secret.hide(f"key={quote('a.b*c(d', safe='')}{quote(chr(34) + 'e' + chr(92) + 'f/g+', safe='')}") == "key=***"
    )


def test_a_long_secret_is_hidden_in_a_long_text_at_once() -> None:
    text = "aaaaaaaa\\n\\n \\u0061" * 50_000
    secret = Secret("a" * 2_000 + "b")
    hidden = secret.hide(f"{text}b, {text}.")
    assert hidden.count("***") == 2
    assert hidden.endswith("***.")
    assert "b" not in hidden


def test_the_values_of_a_query_are_secrets() -> None:
    where = Where("here", in_query("https://h/v1?key=abc%2Fdefgh&v=3&word-alone"))
    assert where.hide("/v1?key=abc%2fdefgh or abc/defgh or word-alone; v=3") == "/v1?key=*** or *** or ***; v=3"


@pytest.mark.parametrize("value", [f"{KEY}\n", "sk-é", "sk-\x00"])
def test_a_value_that_no_header_can_hold_is_refused_unshown(value: str) -> None:
    with pytest.raises(BuildError, match="copied whole") as caught:
        Secret(value)
    assert value not in str(caught.value)
