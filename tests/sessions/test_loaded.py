"""What is known of a session as a whole once its records were gone through."""

from pathlib import Path

import msgspec
import pytest

from handrail.sessions import DamagedSession, Session, StateRecord, verify


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


@pytest.mark.parametrize("number", [b"1e999", b"9" * 5_000])
def test_a_state_that_cannot_be_read_is_damage_for_whoever_opens_and_whoever_verifies(
    tmp_path: Path, number: bytes
) -> None:
    path = tmp_path / "s.jsonl"
    with Session(path, fsync="never") as session:
        session.append(wrote("desk", tone=1))
    path.write_bytes(path.read_bytes().replace(b'"tone":1', b'"tone":' + number))
    with pytest.raises(DamagedSession, match="line 2"):
        Session.open(path)
    verdict = verify(path)
    assert (verdict.state, verdict.line) == ("damaged", 2)
