"""The command itself: how it ends, and what it says when it cannot do what was typed."""

from pathlib import Path

import pytest

from cli.conftest import Run, one_line


def test_without_arguments_it_shows_what_it_can_do(handrail_anew: Run) -> None:
    outcome = handrail_anew()
    assert outcome.returncode == 0
    commands = ("demo", "run", "filter", "import", "export", "verify", "diff", "stats")
    assert all(name in outcome.stdout for name in commands)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fly"], "No such command 'fly'"),
        (["stats"], "Missing argument 'FILE'"),
        (["stats", "a", "b"], "unexpected extra argument"),
        (["stats", "--upside-down", "a"], "No such option: --upside-down"),
        (["filter", "a", "--pick", "many"], "--pick"),
        (["run", "a:b", "Hi", "--start", "there"], "'--start': 'there' is not one of 'active', 'self'"),
        (["run", "a:b", "Hi", "--import", "nothing"], "there is no module nothing here"),
        (["stats", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["verify", "."], ".: is a folder; name a file"),
    ],
)
def test_a_slip_of_the_keyboard_is_told_in_one_line(handrail_here: Run, arguments: list[str], said: str) -> None:
    assert said in one_line(handrail_here(*arguments), 2)


def test_a_flag_takes_no_value_in_its_help(handrail_here: Run) -> None:
    assert "--require-sealed" in handrail_here("verify", "--help").stdout
    assert "bool" not in handrail_here("verify", "--help").stdout


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_new_file_in_a_folder_that_is_not_there_is_no_failure_of_the_disk(
    handrail_here: Run, desk_session: Path, tmp_path: Path, command: str
) -> None:
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "Hello"}]')
    file = desk_session if command == "export" else "chat.json"
    outcome = handrail_here(command, file, "-o", "nowhere/a.jsonl")
    assert "nowhere/a.jsonl: there is no folder nowhere; make it first" in one_line(outcome, 2)


def test_a_traceback_is_shown_when_it_is_asked_for_and_only_then(handrail: Run) -> None:
    assert "Traceback" not in handrail("stats", "nowhere.jsonl").stderr
    outcome = handrail("stats", "nowhere.jsonl", "--debug")
    assert "Traceback" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("handrail: nowhere.jsonl: there is no such file")
    assert outcome.returncode == 2


def test_it_says_which_version_it_is(handrail_anew: Run) -> None:
    assert handrail_anew("--version").stdout.startswith("handrail 0.")


def test_a_file_cannot_move_the_cursor_or_add_lines(handrail: Run, tmp_path: Path) -> None:
    (tmp_path / "hostile").write_text('\x1b[2J\x1b]0;title\x07\nsecond\r\n{"role": 1}')
    said = one_line(handrail("stats", "hostile"), 2)
    assert "\x1b" not in said
    assert "\x07" not in said


def test_standard_output_that_nobody_reads_is_no_traceback(handrail_anew: Run, desk_session: Path) -> None:
    import os

    def close_output() -> None:
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)

    outcome = handrail_anew("filter", desk_session, "--agent", "triage", "--filter", "full", before=close_output)
    assert "Traceback" not in outcome.stderr
    assert outcome.returncode == 1


@pytest.mark.parametrize(
    "command", [["verify"], ["verify", "--json"], ["stats"], ["filter"], ["export", "--to", "openai-chat"]]
)
def test_standard_output_that_is_full_is_one_line_and_a_failure(
    handrail_anew: Run, desk_session: Path, command: list[str]
) -> None:
    outcome = handrail_anew(*command, desk_session, before=lambda: _output_to("/dev/full"))
    assert "the output could not be written: No space left on device" in one_line(outcome, 1)


def test_help_that_has_no_room_is_a_failure_too(handrail_anew: Run) -> None:
    assert "could not be written" in one_line(handrail_anew("--help", before=lambda: _output_to("/dev/full")), 1)


def _output_to(place: str) -> None:
    import os

    os.dup2(os.open(place, os.O_WRONLY), 1)


@pytest.mark.parametrize("command", ["verify", "stats", "filter"])
def test_a_command_whose_standard_streams_are_closed_does_its_work(
    handrail_anew: Run, desk_session: Path, command: str
) -> None:
    import os

    outcome = handrail_anew(command, desk_session, before=lambda: os.closerange(0, 3))
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")


@pytest.mark.parametrize("command", [["filter"], ["stats"], ["verify"]])
def test_a_file_whose_name_is_no_utf_8_is_told_as_json_all_the_same(
    handrail_anew: Run, desk_session: Path, command: list[str]
) -> None:
    import json

    odd = desk_session.rename(desk_session.with_name("odd \udcff.jsonl"))
    outcome = handrail_anew(*command, odd.name, "--json")
    assert outcome.returncode == 0, outcome.stderr
    assert json.loads(outcome.stdout)["file"] == "odd \ufffd.jsonl"
