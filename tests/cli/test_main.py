"""The command itself: how it ends, and what it says when it cannot do what was typed."""

from pathlib import Path

import pytest

from cli.conftest import Run, one_line


def test_without_arguments_it_shows_what_it_can_do(handrail: Run) -> None:
    outcome = handrail()
    assert outcome.returncode == 0
    assert all(name in outcome.stdout for name in ("demo", "run", "filter", "import", "export", "verify", "stats"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fly"], "No such command 'fly'"),
        (["stats"], "Missing argument 'FILE'"),
        (["stats", "a", "b"], "unexpected extra argument"),
        (["stats", "--upside-down", "a"], "No such option: --upside-down"),
        (["filter", "a", "--pick", "many"], "--pick"),
        (["stats", "nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
        (["verify", "."], ".: is a folder; name a file"),
    ],
)
def test_a_slip_of_the_keyboard_is_told_in_one_line(handrail_here: Run, arguments: list[str], said: str) -> None:
    assert said in one_line(handrail_here(*arguments), 2)


def test_a_traceback_is_shown_when_it_is_asked_for_and_only_then(handrail: Run) -> None:
    assert "Traceback" not in handrail("stats", "nowhere.jsonl").stderr
    outcome = handrail("stats", "nowhere.jsonl", "--debug")
    assert "Traceback" in outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("handrail: nowhere.jsonl: there is no such file")
    assert outcome.returncode == 2


def test_it_says_which_version_it_is(handrail: Run) -> None:
    assert handrail("--version").stdout.startswith("handrail 0.")


def test_a_file_cannot_move_the_cursor_or_add_lines(handrail: Run, tmp_path: Path) -> None:
    (tmp_path / "hostile").write_text('\x1b[2J\x1b]0;title\x07\nsecond\r\n{"role": 1}')
    said = one_line(handrail("stats", "hostile"), 2)
    assert "\x1b" not in said
    assert "\x07" not in said


def test_standard_output_that_nobody_reads_is_no_traceback(handrail: Run, desk_session: Path) -> None:
    import os

    def close_output() -> None:
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)

    outcome = handrail("filter", desk_session, "--agent", "triage", "--filter", "full", before=close_output)
    assert "Traceback" not in outcome.stderr
    assert outcome.returncode == 1
