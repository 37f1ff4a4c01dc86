"""What the README, the docs and the examples show works, without a network and without a key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("README.md"), *ROOT.glob("docs/**/*.md")])
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run_offline(path: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    kept = {key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "tests" / "shape" / "offline.py"), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**kept, "COLUMNS": "100"},
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_python_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    outcome = run_offline(page, tmp_path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_every_example_runs_offline_and_says_something(example: Path, tmp_path: Path) -> None:
    outcome = run_offline(example, tmp_path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.strip()


def test_a_page_that_reaches_out_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nimport socket\nsocket.create_connection(('203.0.113.1', 80), timeout=1)\n```\n")
    outcome = run_offline(page, tmp_path)
    assert outcome.returncode == 1
    assert "PermissionError" in outcome.stderr
    assert f'"{page}", line 3' in outcome.stderr
