"""Modules that are run in forked processes are run as by an interpreter of their own."""

import os
from pathlib import Path

import pytest

from servers.forks import Fork

SAYS = """
import os, sys
print(__name__, sys.argv[1:], os.getcwd() == sys.path[0], os.environ["WORD"], sys.stdin.read())
print("beside it", file=sys.stderr)
"""


def test_a_run_has_its_own_arguments_folder_environment_and_streams(tmp_path: Path, fork: Fork) -> None:
    (tmp_path / "says.py").write_text(SAYS)
    outcome = fork("says", "a", "b", cwd=tmp_path, env={"WORD": "hush"}, input="é")
    assert outcome.stdout == "__main__ ['a', 'b'] True hush é\n"
    assert (outcome.returncode, outcome.stderr) == (0, "beside it\n")


@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
        ("raise SystemExit('no more')", 1, "no more\n"),
        ("import atexit, sys; atexit.register(lambda: print('bye', file=sys.stderr))", 0, "bye\n"),
        ("import sys; sys.stdout.close(); sys.stderr.write('shut')", 0, "shut"),
    ],
)
def test_it_ends_as_an_interpreter_ends(tmp_path: Path, fork: Fork, program: str, code: int, said: str) -> None:
    (tmp_path / "ends.py").write_text(program)
    outcome = fork("ends", cwd=tmp_path, env=os.environ)
    assert (outcome.returncode, outcome.stderr) == (code, said)


def test_an_error_that_nobody_caught_is_a_traceback(tmp_path: Path, fork: Fork) -> None:
    (tmp_path / "fails.py").write_text("{}['key']")
    outcome = fork(str(tmp_path / "fails.py"), cwd=tmp_path, env=os.environ)
    assert (outcome.returncode, outcome.stderr.splitlines()[-1]) == (1, "KeyError: 'key'")


def test_what_a_run_changes_no_other_sees(tmp_path: Path, fork: Fork) -> None:
    (tmp_path / "own.py").write_text("")
    (tmp_path / "changes.py").write_text(
        "import colorsys, os, own, sys\n"
        "print(hasattr(colorsys, 'mine'), os.environ.get('MINE'), os.getcwd() in sys.path[1:])\n"
        "colorsys.mine = os.environ['MINE'] = 'x'\n"
    )
    told = [fork("changes", cwd=tmp_path, env={}).stdout for _ in range(2)]
    assert told == ["False None False\n"] * 2


def test_the_next_need_not_import_what_is_installed_and_imports_what_is_its_own(tmp_path: Path, fork: Fork) -> None:
    (tmp_path / "own.py").write_text("")
    (tmp_path / "imports.py").write_text(
        "import sys\nprint('colorsys' in sys.modules, 'own' in sys.modules)\nimport colorsys, own\n"
    )
    fork("imports", cwd=tmp_path, env={})
    assert fork("imports", cwd=tmp_path, env={}).stdout == "True False\n"
