"""The command as a person runs it: a process of its own, in a folder of its own."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TypeAlias

import pytest

from handrail.cli.main import main
from servers.forks import Fork, Outcome, standing_by

COMMAND = [sys.executable, "-W", "error", "-m", "handrail.cli"]
Run: TypeAlias = Callable[..., Outcome]


def quiet_environment() -> dict[str, str]:
    """The environment without keys and without what would make the command colourful or talkative."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "HANDRAIL_"))}
    return {**kept, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}


@pytest.fixture(scope="session")
def forked() -> Iterator[Fork]:
    """Starts commands in processes that have imported what commands import, which is most of what a start takes."""
    with standing_by("-W", "error", env=quiet_environment()) as fork:
        yield fork


@pytest.fixture
def handrail(tmp_path: Path, forked: Fork) -> Run:
    """Runs the command in `tmp_path`: `handrail("stats", "a.jsonl", input="")`."""

    def run(*arguments: str | Path, input: str = "") -> Outcome:
        return forked("handrail.cli", *map(str, arguments), cwd=tmp_path, env=quiet_environment(), input=input)

    return run


@pytest.fixture
def handrail_anew(tmp_path: Path) -> Run:
    """The same with an interpreter that is started for it, after `before()`: for what its start and its end decide."""

    def run(*arguments: str | Path, input: str = "", before: Callable[[], None] | None = None) -> Outcome:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=input,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=quiet_environment(),
            timeout=60,
            preexec_fn=before,
            check=False,
        )

    return run


@pytest.fixture
def handrail_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same in this process, which is quicker, for what ends before anything runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path, input: str = "") -> Outcome:
        given = [str(argument) for argument in arguments]
        out, err = io.BytesIO(), io.BytesIO()
        with (
            monkeypatch.context() as streams,
            redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
            redirect_stderr(io.TextIOWrapper(err, "utf-8", write_through=True)),
        ):
            streams.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(input.encode()), "utf-8"))
            code = main(given)
            said = out.getvalue().decode(), err.getvalue().decode()
        return subprocess.CompletedProcess(given, code, *said)

    return run


@pytest.fixture
def desk_session(tmp_path: Path) -> Path:
    """A session of the desk with two handoffs and a sub-agent."""
    from handrail.cli.desk import support_desk

    path = tmp_path / "desk.session.jsonl"
    desk = support_desk()
    for line in ("Where is parcel 8841?", "Was I charged twice on invoice 1042?", "When are you open on Sunday?"):
        desk.run_sync(line, session=str(path))
    return path


def one_line(outcome: Outcome, code: int) -> str:
    """What the command said when it failed with this exit code, after seeing that it was one line."""
    assert outcome.returncode == code, outcome.stderr + outcome.stdout
    lines: Sequence[str] = outcome.stderr.splitlines()
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("handrail: ")
    return lines[0]
