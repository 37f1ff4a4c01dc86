"""Encrypted sessions on the command line: where the passphrase comes from, and what is said without it."""

import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.filters import user
from handrail.sessions import MessageRecord, Session, read, verify
from sessions.conversations import WORDS, secret

AGENT = """
from handrail.agent import Agent, ScriptedModel

clerk = Agent("clerk", model=ScriptedModel("It is on its way.", "It is.", "Yes."))
"""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key.txt"
    path.write_text(f"{WORDS}\nwhat comes after it is not read\n")
    return path


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    path = tmp_path / "hidden.jsonl"
    with Session(path, passphrase=secret()) as session:
        session.append(MessageRecord(path="desk", message=user("Where is parcel 8841?", id="m1")))
    return path


def test_verify_without_the_passphrase_says_that_nothing_was_decrypted_and_ends_with_one(
    handrail_here: Run, hidden: Path, key: Path
) -> None:
    outcome = handrail_here("verify", hidden)
    assert outcome.returncode == 1
    assert "not decrypted, not sealed, encrypted (nothing was decrypted)" in outcome.stdout
    outcome = handrail_here("verify", hidden, "--integrity-only", "--json")
    said = json.loads(outcome.stdout)
    assert (outcome.returncode, said["state"], said["encrypted"], said["decrypted"]) == (0, "intact", True, False)
    outcome = handrail_here("verify", hidden, "--passphrase-file", key)
    assert (outcome.returncode, "intact, not sealed, encrypted" in outcome.stdout) == (0, True)


def test_a_wrong_a_missing_and_a_needless_passphrase_end_with_two(
    handrail_here: Run, hidden: Path, desk_session: Path, key: Path, tmp_path: Path
) -> None:
    assert "--passphrase-file" in one_line(handrail_here("stats", hidden), 2)
    (tmp_path / "wrong").write_text("not it")
    said = one_line(handrail_here("stats", hidden, "--passphrase-file", "wrong"), 2)
    assert "not that of this session" in said
    assert "not it" not in said
    assert "not encrypted" in one_line(handrail_here("stats", desk_session, "--passphrase-file", key), 2)
    (tmp_path / "empty").write_text("\n")
    assert "first line is empty" in one_line(handrail_here("stats", hidden, "--passphrase-file", "empty"), 2)


def test_the_environment_opens_what_is_encrypted_and_leaves_plain_sessions_plain(
    handrail_here: Run, hidden: Path, desk_session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_PASSPHRASE", WORDS)
    outcome = handrail_here("verify", hidden, desk_session)
    assert outcome.returncode == 0
    assert f"{hidden}: intact, not sealed, encrypted" in outcome.stdout
    assert f"{desk_session}: intact, not sealed\n" in outcome.stdout
    assert "1 (user 1)" in handrail_here("stats", hidden).stdout
    assert "8841" in handrail_here("filter", hidden, "--filter", "full").stdout
    assert "8841" in handrail_here("export", hidden, "--to", "openai-chat").stdout


def test_a_run_an_import_and_an_export_encrypt_what_they_write(
    handrail_here: Run, desk_session: Path, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop_with_a_secret.py").write_text(AGENT)
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "parcel 8841"}]')
    given = ("--passphrase-file", key)
    for _ in range(2):
        run = handrail_here("run", "shop_with_a_secret:clerk", "Where is 8841?", "--session", "run.jsonl", *given)
        assert run.returncode == 0, run.stderr
    assert handrail_here("import", "chat.json", "-o", "chat.jsonl", *given).returncode == 0
    assert handrail_here("export", desk_session, "-o", "desk.zst", *given).returncode == 0
    for name in ("run.jsonl", "chat.jsonl", "desk.zst"):
        assert b"8841" not in (tmp_path / name).read_bytes()
        verdict = verify(tmp_path / name, passphrase=WORDS)
        assert (verdict.state, verdict.encrypted) == ("intact", True)
    assert len(Session(tmp_path / "run.jsonl", passphrase=WORDS).log) == 4
    handrail_here("export", "run.jsonl", "-o", "sealed.jsonl", *given)
    outcome = handrail_here(
        *("run", "shop_with_a_secret:clerk", "And?", "--continue-from", "sealed.jsonl", "--session", "next.jsonl"),
        *given,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert len(Session(tmp_path / "next.jsonl", passphrase=WORDS).log) == 6


def test_an_audit_of_a_folder_opens_the_encrypted_sessions_in_it(
    handrail_here: Run, desk_session: Path, hidden: Path, key: Path, tmp_path: Path
) -> None:
    (tmp_path / "policy.toml").write_text('[[rule]]\nname = "no secrets"\nmax_tier = "internal"\n')
    outcome = handrail_here("audit", tmp_path, "--policy", "policy.toml", "--passphrase-file", key, "--json")
    states = {Path(each["file"]).name: each["state"] for each in map(json.loads, outcome.stdout.splitlines())}
    assert states == {"desk.session.jsonl": "clean", "hidden.jsonl": "clean"}


def test_an_encrypted_copy_means_the_same_as_the_plain_session(
    handrail_here: Run, desk_session: Path, key: Path
) -> None:
    handrail_here("export", desk_session, "-o", "copy.jsonl", "--passphrase-file", key)
    assert "passphrase" in one_line(handrail_here("diff", desk_session, "copy.jsonl"), 2)
    outcome = handrail_here("diff", desk_session, "copy.jsonl", "--passphrase-file", key)
    assert outcome.returncode == 0, outcome.stderr


def test_migrate_writes_a_new_file_and_says_what_was_done(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    outcome = handrail_here("migrate", desk_session, "-o", "new.jsonl", "--json")
    said = json.loads(outcome.stdout)
    assert (outcome.returncode, said["before"], said["after"], said["sealed"]) == (0, 1, 1, False)
    assert (said["head"], said["records"]) == (verify("new.jsonl").head, sum(1 for _ in read("new.jsonl")))
    assert "there is a file already" in one_line(handrail_here("migrate", desk_session, "-o", "new.jsonl"), 2)


def test_a_made_up_older_version_is_migrated_once_its_step_is_imported(
    handrail_here: Run, desk_session: Path, tmp_path: Path
) -> None:
    (tmp_path / "steps_from_0.py").write_text(
        "from handrail.sessions.migrations import register_migration\ntake_out = register_migration(0, dict)\n"
    )
    old = tmp_path / "old.jsonl"
    old.write_bytes(desk_session.read_bytes().splitlines(keepends=True)[0].replace(b'"version":1', b'"version":0'))
    assert "format version 0" in one_line(handrail_here("migrate", old, "-o", "new.jsonl"), 2)
    outcome = handrail_here("migrate", old, "-o", "new.jsonl", "--import", "steps_from_0")
    sys.modules["steps_from_0"].take_out()
    assert (outcome.returncode, "migrated from version 0 to 1" in outcome.stdout) == (0, True)
    assert verify(tmp_path / "new.jsonl").state == "intact"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_copy_is_read_like_any_and_not_written_to(
    handrail_here: Run, desk_session: Path, tmp_path: Path, suffix: str
) -> None:
    packed = tmp_path / f"desk.jsonl{suffix}"
    assert handrail_here("export", desk_session, "-o", packed).returncode == 0
    outcome = handrail_here("verify", packed)
    assert (outcome.returncode, "intact, sealed" in outcome.stdout) == (0, True)
    assert handrail_here("stats", packed).stdout.partition("\n")[2].partition("  records")[0] in (
        handrail_here("stats", desk_session).stdout
    )
    (tmp_path / "shop_of_parcels.py").write_text(AGENT)
    said = one_line(handrail_here("run", "shop_of_parcels:clerk", "And?", "--session", packed, "--start", "self"), 2)
    assert "--continue-from" in said
    packed.write_bytes(packed.read_bytes()[:-20])
    outcome = handrail_here("verify", packed)
    assert (outcome.returncode, "damaged" in outcome.stdout) == (1, True)
