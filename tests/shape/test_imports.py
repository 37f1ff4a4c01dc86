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

SELDOM = {
    "json",
    "handrail.agent.delegating",
    "handrail.agent.evaluating",
    "handrail.agent.fanning",
    "handrail.agent.teams",
    "handrail.filters.expressions",
    "handrail.filters.finders",
    "handrail.filters.redaction",
    "handrail.filters.strings",
    "handrail.sessions.again",
    "handrail.sessions.boundaries",
    "handrail.sessions.comparing",
    "handrail.sessions.compressions",
    "handrail.sessions.exports",
    "handrail.sessions.formats",
    "handrail.sessions.looking",
    "handrail.sessions.replay",
    "handrail.sessions.vaults",
}
FIRST_RUN = """
import sys
from handrail.agent import Agent, ScriptedModel, tool
from handrail.filters import call

@tool
def pay(amount: int) -> str:
    return "paid"

billing = Agent("billing", model=ScriptedModel(["Paid."]))
asked = [call("pay", call_id="c1", amount=3), call("transfer_to_billing", call_id="c2", reason="to be billed")]
desk = Agent("desk", model=ScriptedModel(asked), tools=[pay], handoffs=[billing])
desk.check()
before = set(sys.modules)
print(desk.run_sync("Bill me.", session=sys.argv[1]).output)
print(*sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in ("handrail", "json")))
"""


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


def test_importing_agents_opens_no_room_that_an_ordinary_run_does_without() -> None:
    program = f"import sys, handrail.agent; print(*sorted({SELDOM} & set(sys.modules)))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == []


def test_what_a_first_run_needs_is_there_when_its_agent_is_built(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST_RUN, str(tmp_path / "run.jsonl")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["Paid."]


FIRST_CALLS = """
import sys
from handrail.agent import Agent, ScriptedModel, evaluate_and_retry, fan_out, handoff, to_tool
from handrail.filters import call, full

def helper():
    return Agent("helper", model=ScriptedModel("Found."))

ways = {
    "handoff": (call("transfer_to_helper", call_id="c", reason="r"), {"handoffs": [helper()]}),
    "waiting": (call("transfer_to_helper", call_id="c", reason="r"), {"handoffs": [handoff(helper(), returns=full())]}),
    "subagent": (call("helper", call_id="c", input="x"), {"tools": [to_tool(helper())]}),
    "fan": (call("fan_out", call_id="c", input="x"), {"tools": [fan_out([helper()])]}),
    "retry": (
        call("evaluate_and_retry", call_id="c", input="x"),
        {"tools": [evaluate_and_retry(helper(), lambda text, number: True, max_iterations=1)]},
    ),
    "output": (call("final_answer", call_id="c", value=1), {"output_type": int}),
}
asked, options = ways[sys.argv[1]]
desk = Agent("desk", model=ScriptedModel(asked, "Done."), **options)
for name in ("json", "_json"):  # `call` has loaded it
    del sys.modules[name]
desk.check()
before = set(sys.modules)
desk.run_sync("Go on.")
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("way", ["handoff", "waiting", "subagent", "fan", "retry", "output"])
def test_the_first_call_of_a_run_loads_nothing_that_building_its_agent_could_have(way: str) -> None:
    command = [sys.executable, "-c", FIRST_CALLS, way]
    outcome = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {name for name in outcome.stdout.split() if name.startswith("handrail.") or name in ("json", "hashlib")}
    assert loaded == set()


def test_the_packages_share_one_namespace_without_a_file_of_its_own(root: Path) -> None:
    assert list(root.glob("packages/*/src/handrail/__init__.py")) == []
    program = "import handrail; print(len(list(handrail.__path__)))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == ["4"]
