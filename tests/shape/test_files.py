"""No file of the project knows a machine or a package index, and every module says what it is for."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

# Written in pieces, so that this file holds none of them itself.
HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))]
FOLDERS = ["/" + "/".join(parts) for parts in (("root", ""), ("home", ""), ("Users", ""), ("work", ""))]
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), *(rf"(?<![\w.]){re.escape(folder)}" for folder in FOLDERS)]))


@pytest.fixture(scope="module")
def files(root: Path) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, cwd=root, check=True).stdout.split("\0")
    return [root / name for name in listed if name and (root / name).is_file()]


def test_no_file_names_a_folder_of_some_machine_or_a_package_index(files: list[Path], root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := FORBIDDEN.search(line))
    ]
    assert found == []


@pytest.mark.parametrize("lock", ["requirements.txt", "requirements-node.txt"])
def test_a_lock_pins_and_hashes_everything_and_names_no_index(lock: str, root: Path) -> None:
    lines = (root / lock).read_text().splitlines()
    assert all(re.match(r"[a-z0-9-]+==\S+( ;.*)? \\$|    --hash=sha256:[0-9a-f]{64}( \\)?$", line) for line in lines)


def test_the_npm_lock_says_what_and_not_where_from(root: Path) -> None:
    lock = (root / "tests" / "servers" / "package-lock.json").read_text()
    assert '"integrity": "sha512-' in lock
    assert '"resolved"' not in lock


def test_every_module_opens_with_what_it_is_for(files: list[Path], root: Path) -> None:
    modules = [path for path in files if path.suffix == ".py"]
    silent = [path for path in modules if not ast.get_docstring(ast.parse(path.read_text()))]
    assert [str(path.relative_to(root)) for path in silent] == []
