"""What the README, the docs and the examples show works, without a network and without a key."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from servers.forks import Fork, Outcome, standing_by

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("README.md"), *ROOT.glob("docs/**/*.md")])
OFFLINE = ROOT / "tests" / "shape" / "offline.py"
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


Run: TypeAlias = Callable[[Path], Outcome]


@pytest.fixture(scope="module")
def offline() -> Iterator[tuple[Fork, dict[str, str]]]:
    """Has a process stand by, in an environment without keys and addresses."""
    kept = {key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))}
    environment = {**kept, "COLUMNS": "100"}
    with standing_by("-W", "error", env=environment) as fork:
        yield fork, environment


@pytest.fixture
def run_offline(offline: tuple[Fork, dict[str, str]], tmp_path: Path) -> Run:
    """Runs a page or an example in a folder of its own."""
    fork, environment = offline
    return lambda path: fork(str(OFFLINE), str(path), cwd=tmp_path, env=environment)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_python_block_of_a_page_runs(page: Path, run_offline: Run) -> None:
    outcome = run_offline(page)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_every_example_runs_offline_and_says_something(example: Path, run_offline: Run) -> None:
    outcome = run_offline(example)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.strip()


def test_a_page_that_reaches_out_is_refused(tmp_path: Path, run_offline: Run) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nimport socket\nsocket.create_connection(('203.0.113.1', 80), timeout=1)\n```\n")
    outcome = run_offline(page)
    assert outcome.returncode == 1
    assert "PermissionError" in outcome.stderr
    assert f'"{page}", line 3' in outcome.stderr
