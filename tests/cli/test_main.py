"""The command while it loads."""

import subprocess
import sys

import pytest

LOADING = """
import signal
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from handrail.cli.main import main

sys.exit(main(["--version"]))
"""


@pytest.mark.parametrize(
    "module",
    [
        "handrail.cli.performing",
        "handrail.cli.exits",
        "handrail.filters",
        "msgspec",
        "typer",
        "handrail.cli.commands.app",
    ],
)
def test_an_interrupt_while_the_command_loads_is_one_line(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOADING, module], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "handrail: interrupted\n")
