"""Older versions of the format: read as they are, and migrated to today's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.filters import last_n, user
from handrail.sessions import (
    DamagedSession,
    Journal,
    MessageRecord,
    OutdatedSession,
    Passphrase,
    Session,
    SessionExists,
    Unknown,
    UnsupportedVersion,
    crossings,
    export,
    read,
    verify,
)
from handrail.sessions.lines import ZEROS, link
from handrail.sessions.migrations import migrate, readable_versions, register_migration
from sessions.conversations import Conversation, secret


def step(line: dict[str, Any]) -> dict[str, Any]:
    """In version 0, which is made up, a message stood under `said`, and where it was said under `view`."""
    if line.get("kind") in ("message", "tool_result"):
        if "said" not in line:
            raise ValueError("it says nothing")
        line = {"message": line.pop("said"), "path": line.pop("view")} | line
    return line


@pytest.fixture
def version_0() -> Iterator[None]:
    take_out = register_migration(0, step)
    yield
    take_out()


def as_version_0(path: Path) -> Path:
    """The session as version 0 would have written it."""
    head, lines = ZEROS, []
    for line in path.read_bytes().splitlines():
        fields = json.loads(line) | {"prev": head}
        if fields["kind"] == "header":
            fields["version"] = 0
        if fields["kind"] in ("message", "tool_result"):
            fields = {
                "said" if name == "message" else "view" if name == "path" else name: fields[name] for name in fields
            }
        if fields["kind"] == "footer":
            fields["head"] = head
        lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())
        head = link(lines[-1])
    old = path.with_name("old.jsonl")
    old.write_bytes(b"".join([line + b"\n" for line in lines]))
    return old


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    with Conversation(path) as conversation:
        conversation.say("triage", user("I was charged twice."))
        conversation.hand_over("triage", "billing", last_n(1))
        conversation.say("billing", user("Well?"))
    return path


@pytest.fixture
def old(path: Path) -> Path:
    return as_version_0(path)


@pytest.mark.usefixtures("version_0")
def test_an_older_session_reads_and_verifies_as_one_of_today(path: Path, old: Path) -> None:
    assert [record for _, _, record in read(old)][2:] != []
    assert Session(old).history("billing") == Session(path).history("billing")
    verdict = verify(old)
    assert (verdict.state, verdict.run_again, verdict.counts) == ("intact", 1, verify(path).counts)
    assert (read(old).version, read(old).header.version) == (0, 1)
    assert len(list(crossings(old))) == 1


@pytest.mark.usefixtures("version_0")
def test_a_migrated_session_is_one_of_today_with_the_same_id(path: Path, old: Path, tmp_path: Path) -> None:
    done = migrate(old, tmp_path / "new.jsonl")
    assert (done.before, done.after, done.sealed) == (0, 1, False)
    assert done.records == sum(verify(path).counts.values())
    assert (done.old_head, done.head) == (read(old).head, verify(done.path).head)
    assert "from version 0 to 1" in str(done)
    assert read(done.path).header.id == read(path).header.id
    assert Session(done.path).history("billing") == Session(path).history("billing")
    with Session(done.path) as session:
        session.append(MessageRecord(path="billing", message=user("One more thing.")))
    assert verify(done.path).ok


@pytest.mark.usefixtures("version_0")
def test_a_sealed_older_copy_is_sealed_again_and_a_torn_end_is_told(path: Path, tmp_path: Path) -> None:
    sealed = as_version_0(export(path, tmp_path / "sealed.jsonl"))
    assert verify(sealed).sealed
    done = migrate(sealed, tmp_path / "new.jsonl")
    assert (done.sealed, verify(done.path).sealed, verify(done.path).state) == (True, True, "intact")
    torn = as_version_0(path)
    torn.write_bytes(torn.read_bytes() + b'{"torn')
    assert migrate(torn, tmp_path / "torn.jsonl").torn is not None


@pytest.mark.usefixtures("version_0")
def test_unknown_kinds_and_fields_and_every_number_stay_as_they_were(path: Path, tmp_path: Path) -> None:
    with Journal.open(path) as journal:
        journal.append(Unknown("audit", b'{"kind":"audit","path":"x","name":"y","colour":"red"}'))
        journal.append(Unknown("weather", b'{"kind":"weather","sun":[1.50,12345678901234567890123]}'))
    old = as_version_0(path)
    old.write_bytes(old.read_bytes().replace(b"[1.5,", b"[1.50,"))
    *_, audit, weather = read(migrate(old, tmp_path / "new.jsonl").path).records()
    assert isinstance(weather, Unknown)
    assert isinstance(audit, Unknown)
    assert b'"sun":[1.50,12345678901234567890123]' in weather.line
    assert b'"colour":"red"' in audit.line


@pytest.mark.usefixtures("version_0")
def test_an_older_session_is_not_written_to_or_sealed(old: Path, tmp_path: Path) -> None:
    size = old.stat().st_size
    for act in (Journal.open, lambda path: export(path, tmp_path / "sealed.jsonl")):
        with pytest.raises(OutdatedSession) as caught:
            act(old)
        assert (caught.value.found, caught.value.today) == (0, 1)
    assert old.stat().st_size == size
    with Session.continue_from(old, tmp_path / "next.jsonl") as session:
        session.append(MessageRecord(path="billing", message=user("One more thing.")))
    assert verify(tmp_path / "next.jsonl").ok


@pytest.mark.usefixtures("version_0")
def test_a_line_that_cannot_be_migrated_is_damage_with_its_number(path: Path, old: Path) -> None:
    lines = old.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"said"', b'"sung"')
    old.write_bytes(b"".join(lines))
    assert (verify(old).state, verify(old).line, verify(old).problem) == ("damaged", 2, "it says nothing")
    with pytest.raises(DamagedSession):
        migrate(old, path.with_name("new.jsonl"))
    assert not path.with_name("new.jsonl").exists()


def test_without_its_step_an_older_version_is_refused_and_a_newer_one_always(path: Path, old: Path) -> None:
    for found in (0, 2):
        with pytest.raises(UnsupportedVersion) as caught:
            read(old)
        assert (caught.value.found, caught.value.supported) == (found, (1,))
        old.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))
    assert list(readable_versions()) == [1]


def test_a_step_leads_from_an_older_version_and_only_one_does() -> None:
    for version in (-1, 1, 2):
        with pytest.raises(ValueError, match="before 1"):
            register_migration(version, step)
    take_out = register_migration(0, step)
    assert list(readable_versions()) == [1, 0]
    with pytest.raises(ValueError, match="already"):
        register_migration(0, lambda line: line)
    take_out()
    assert list(readable_versions()) == [1]


def test_a_session_of_today_is_copied_and_overwrites_nothing(path: Path, tmp_path: Path) -> None:
    done = migrate(path, tmp_path / "new.jsonl")
    assert "already" in str(done)
    assert done.path.read_bytes() == path.read_bytes()
    with pytest.raises(SessionExists):
        migrate(path, done.path)


def test_an_encrypted_session_is_encrypted_again(tmp_path: Path) -> None:
    passphrase: Passphrase = secret()
    with Session(tmp_path / "secret.jsonl", passphrase=passphrase) as session:
        session.append(MessageRecord(path="desk", message=user("Hello")))
    done = migrate(tmp_path / "secret.jsonl", tmp_path / "new.jsonl", passphrase=passphrase)
    assert "Hello" not in done.path.read_text()
    assert verify(done.path, passphrase=passphrase).ok
