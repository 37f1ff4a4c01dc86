"""Where commands read from and write to."""

import os
import stat
from pathlib import Path

import pytest

from cli.conftest import Run, one_line
from handrail.cli.errors import UnfitInput
from handrail.cli.sources import new_name, on_disk, write_new
from handrail.sessions import SessionExists, open_store


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("-", "stdin.sealed.jsonl"),
        ("logs/chat.json", "chat.sealed.jsonl"),
        ("desk.session.jsonl", "desk.sealed.jsonl"),
        ("plain", "plain.sealed.jsonl"),
        ("desk.session.jsonl.gz", "desk.sealed.jsonl"),
        ("desk.jsonl.zst", "desk.sealed.jsonl"),
    ],
)
def test_a_new_file_is_named_after_the_old_one_and_stands_here(name: str, made: str) -> None:
    assert new_name(name, ".sealed.jsonl") == Path(made)


def test_a_file_that_is_not_there_is_told_before_anything_is_done() -> None:
    with pytest.raises(FileNotFoundError), on_disk("nowhere.json"):
        pytest.fail("nothing is there to work on")


def test_a_new_file_overwrites_nothing_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    write_new(tmp_path / "a.json", b"[]")
    with pytest.raises(SessionExists):
        write_new(tmp_path / "a.json", b"{}")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"[]")]


@pytest.mark.parametrize("command", ["view", "export --to openai-chat -o desk.json", "export", "export -o desk.gz"])
def test_what_is_made_of_a_session_is_for_its_owner_alone_as_the_session_is(
    handrail_here: Run, desk_session: Path, tmp_path: Path, command: str
) -> None:
    assert handrail_here(command.split()[0], desk_session, *command.split()[1:]).returncode == 0
    (made,) = [path for path in tmp_path.iterdir() if path.is_file() and path != desk_session]
    assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_a_folder_of_pages_is_for_its_owner_alone(handrail_here: Run, desk_session: Path, tmp_path: Path) -> None:
    assert handrail_here("view", tmp_path, "-o", tmp_path.parent / f"{tmp_path.name}-pages").returncode == 0
    assert stat.S_IMODE((tmp_path.parent / f"{tmp_path.name}-pages").stat().st_mode) == 0o700


@pytest.mark.parametrize("command", ["stats", "verify", "view", "filter", "export", "import"])
def test_a_store_where_a_session_is_meant_is_told_with_what_to_type(
    handrail_here: Run, tmp_path: Path, command: str
) -> None:
    with open_store("chats.db") as store:
        store.create("one")
    said = one_line(handrail_here(command, "chats.db"), 2)
    assert "chats.db: is a store; name a session of it, as chats.db#ID" in said


def test_a_pipe_that_a_shell_made_is_read_once_and_then_a_file(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"all of it")
    os.close(writing)
    with on_disk(f"/dev/fd/{reading}") as path:
        assert (path.read_bytes(), path.read_bytes()) == (b"all of it", b"all of it")
    os.close(reading)


@pytest.mark.parametrize("place", ["pipe", "/dev/zero", "/dev/null"])
def test_another_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnfitInput, match="and no file"), on_disk(str(tmp_path / place)):
        pytest.fail("it cannot be read twice")


@pytest.mark.parametrize("command", ["verify", "stats", "filter", "export --to openai-chat", "audit --policy p"])
@pytest.mark.parametrize("place", ["/dev/stdin", "-"])
def test_every_command_reads_standard_input_under_either_name(
    handrail: Run, desk_session: Path, tmp_path: Path, place: str, command: str
) -> None:
    (tmp_path / "p").write_text("[[rule]]\nname = 'nothing of parcels'\nforbid_patterns = ['no such words']\n")
    outcome = handrail(*command.split(), place, input=desk_session.read_text())
    assert "Traceback" not in outcome.stderr
    assert outcome.returncode == 0, outcome.stderr


def test_a_run_whose_session_is_a_device_says_so(handrail: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from handrail.agent import Agent, ScriptedModel\nmute = Agent('mute', model=ScriptedModel())"
    )
    said = one_line(handrail("run", "shop:mute", "Hi", "--session", "/dev/full"), 2)
    assert "it is a device, and a session is a regular file" in said
