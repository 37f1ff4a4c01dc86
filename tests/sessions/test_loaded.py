"""What is known of a session as a whole once its records were gone through."""

from pathlib import Path

import msgspec
import pytest

from handrail.sessions import Session, StateRecord


def wrote(path: str, layer: str = "", scope: str = "turn", **values: int) -> StateRecord:
    return StateRecord(path=path, layer=layer, scope=scope, values=msgspec.Raw(msgspec.json.encode(values)))  # type: ignore[arg-type]  # the scopes are told by the table


@pytest.mark.parametrize("again", [False, True])
def test_the_state_that_lives_on_is_the_conversations_own(tmp_path: Path, again: bool) -> None:
    session = Session(tmp_path / "a.jsonl")
    session.append(wrote("desk", tone=1, left=1), wrote("desk", tone=2))
    session.append(wrote("desk", "Memory", "session", seen=1), wrote("desk", "Limit", "turn", calls=7))
    session.append(wrote("desk/child@c1", tone=9), wrote("desk/child@c1", "Memory", "session", seen=9))
    if again:
        session.close()
        session = Session.open(tmp_path / "a.jsonl")
    assert session.state == {"tone": 2, "left": 1}
    assert session.private_states == {("desk", "Memory"): {"seen": 1}}
    session.close()
