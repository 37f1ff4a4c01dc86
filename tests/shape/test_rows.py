"""The page that says what shows a feature names every row it is to name, and only tests that there are."""

import ast
import re
from pathlib import Path

import pytest

ROW = re.compile(r"^\| ([BWG]\d+) \| (.+) \| `(tests/[\w/]+\.py)::(\w+)` \|$", re.MULTILINE)
WANTED = [
    *[f"B{n}" for n in (*range(1, 10), *range(12, 33), *range(37, 48), 56, 61)],
    *[f"W{n}" for n in (*range(1, 14), *range(41, 46), *range(47, 51), 53, 58, 61, 65, 69)],
    *[f"G{n}" for n in (18, 25, 29, 30, 34, 35, 43, 49, 50, *range(54, 62))],
]


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "rows.md").read_text()


def test_every_row_is_told_once_and_no_line_of_the_table_is_of_another_shape(page: str) -> None:
    rows = [found[0] for found in ROW.findall(page)]
    assert sorted(rows) == sorted(WANTED)
    lines = [line for line in page.splitlines() if re.match(r"\| [A-Z]\d", line)]
    assert [line for line in lines if not ROW.match(line)] == []


def test_every_test_that_the_page_names_exists(page: str, root: Path) -> None:
    missing = [
        f"{row}: {file}::{name}" for row, _, file, name in ROW.findall(page) if name not in defined_in(root / file)
    ]
    assert missing == []


def test_every_row_that_the_translation_names_is_told(page: str, root: Path) -> None:
    told = {found[0] for found in ROW.findall(page)}
    lines = (root / "docs" / "translation.md").read_text().splitlines()
    there = [line for line in lines if "| not yet" not in line]
    named = set(re.findall(r"\b([BWG]\d+)\b", "\n".join(there)))
    assert named - told <= {"B10", "B33", "B34", "B35", "W22"}


NAMED = """
    Summarization HumanInTheLoop when predicate interrupt_mode Command default_system_suffix index_module index_opts
    accumulate max_results tool_name add_tool_module presets production development DynamicPrompt SwitchModel
    ModelFallback ModelRetry ToolSelection TrimMessages PII PII.stream_transform context_schema state_schema
    ModelRequest.override ToolCallRequest.override system_prompts memory_filter token_transform
    safeguard_filter timeout_filter approval_filter validation_turn_filter schema_validation_turn_filter
    token_redact_filter hold_release_filter logging_filter filter_state set_filter_state beamai_filter_chain
"""


@pytest.mark.parametrize("name", NAMED.split())
def test_what_the_two_documents_name_is_on_a_line_of_the_translation_with_its_row(name: str, root: Path) -> None:
    lines = (root / "docs" / "translation.md").read_text().splitlines()
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found = [line for line in lines if re.match(r"\| [BW]\d", line) and word.search(line.split(" | ")[0])]
    assert found != []


def defined_in(path: Path) -> set[str]:
    """The names of the tests in a file; none where there is no such file."""
    if not path.is_file():
        return set()
    nodes = ast.walk(ast.parse(path.read_text()))
    return {each.name for each in nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
