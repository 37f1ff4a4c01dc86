"""Keys are sent and never shown."""

import copy
import pickle

import pytest

from handrail.agent.errors import BuildError
from handrail.agent.http.secrets import Secret, Where

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


@pytest.mark.parametrize("value", [f"{KEY}\n", "sk-é", "sk-\x00"])
def test_a_value_that_no_header_can_hold_is_refused_unshown(value: str) -> None:
    with pytest.raises(BuildError, match="copied whole") as caught:
        Secret(value)
    assert value not in str(caught.value)
