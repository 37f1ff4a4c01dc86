"""Imports point one way, and importing costs nothing that is not used."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

PACKAGES = ("handrail.filters", "handrail.sessions", "handrail.agent", "handrail.cli")
LEAVES = (
    "handrail.filters.catalogue",
    "handrail.sessions.formats",
    "handrail.sessions.migrations",
    "handrail.sessions.stores",
    "handrail.agent.interop",
    "handrail.agent.middleware",
    "handrail.agent.providers",
    "handrail.cli.viewer",
)
LISTS = ("handrail.sessions.formats",)
HEAVY = {
    "pydantic",
    "httpx",
    "httpx_sse",
    "jsonschema",
    "jsonschema_rs",
    "referencing",
    "tiktoken",
    "typer",
    "rich",
    "orjson",
    "tenacity",
    "rfc8785",
    "cryptography",
    "backports.zstd",
    "compression.zstd",
    "gzip",
    "hashlib",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def room(module: str) -> str | None:
    """The room of leaves in which a module stands, if it stands in one."""
    return next((leaf for leaf in LEAVES if module == leaf or module.startswith(f"{leaf}.")), None)


def test_the_contracts_on_imports_are_kept(root: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    outcome = subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)
    assert outcome.returncode == 0, outcome.stdout


def test_no_core_module_imports_a_leaf(graph: grimp.ImportGraph) -> None:
    # A package's list of names shows its leaves; a command is the place where they are put together. The list of a
    # room, where it has one, may be asked for by whoever keeps what is registered.
    core = [
        module
        for module in graph.modules
        if room(module) is None and module not in PACKAGES and not module.startswith("handrail.cli")
    ]
    broken = [
        f"{module} imports {other}"
        for module in core
        for other in graph.find_modules_directly_imported_by(module)
        if room(other) is not None and other not in LISTS
    ]
    assert sorted(broken) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_no_heavy_library(package: str) -> None:
    program = f"import sys, {package}; print(*sorted({HEAVY} & set(sys.modules)))"
    command = [sys.executable, "-c", program]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == []


def test_the_packages_share_one_namespace_without_a_file_of_its_own(root: Path) -> None:
    assert list(root.glob("packages/*/src/handrail/__init__.py")) == []
    program = "import handrail; print(len(list(handrail.__path__)))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["4"]
