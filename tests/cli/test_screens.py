"""What the commands print with."""

import os
import subprocess
from pathlib import Path

import pytest

from cli.conftest import COMMAND, quiet_environment
from handrail.cli.screens import progress_bar, say, say_json, shortened
from handrail.filters import user


def test_a_shortened_text_is_one_line_of_the_width() -> None:
    assert shortened("a\nb", 10) == "a b"
    assert shortened("abcdefghij", 5) == "abcd…"


def test_structs_become_json_by_their_fields(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"said": user("Grüße", id="m1")})
    printed = '{"said":{"role":"user","content":[{"kind":"text","text":"Grüße"}],"id":"m1"}}\n'
    assert capsys.readouterr().out == printed


def test_text_that_goes_to_a_file_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[31mred", style="bold")
    assert capsys.readouterr().out == "\x1b[31mred\n"


def test_there_is_no_bar_where_there_is_no_terminal(tmp_path: Path) -> None:
    with progress_bar("reading", tmp_path) as progress:
        assert progress is None


def test_on_a_terminal_a_bar_shows_how_far_it_is(desk_session: Path) -> None:
    terminal, end = os.openpty()
    environment = {**quiet_environment(), "TERM": "xterm"}
    try:
        outcome = subprocess.run(
            [*COMMAND, "verify", str(desk_session)], stdout=subprocess.PIPE, stderr=end, env=environment, check=False
        )
        shown = os.read(terminal, 1 << 16)
    finally:
        os.close(terminal)
        os.close(end)
    assert b"verifying" in shown
    assert outcome.returncode == 0
