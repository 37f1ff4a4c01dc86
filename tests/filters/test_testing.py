"""The pytest plugin for filters: snapshots of what crosses, and assertions on it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest
from syrupy.assertion import SnapshotAssertion

from handrail.filters import (
    FilterFailed,
    FixedClock,
    FixedIds,
    Messages,
    Note,
    assistant,
    call,
    compose,
    custom,
    default_handoff_filter,
    full,
    last_n,
    none,
    strip_reasoning,
    strip_sensitive_outputs,
    strip_tool_calls,
    summary,
    tool_result,
    user,
)
from handrail.filters.messages import File, Image, Opaque, Reasoning, Text, ToolCall
from handrail.filters.testing import assert_filter, assert_never_crosses, assert_seals, transcript
from servers.forks import Fork, Outcome

Pytest: TypeAlias = Callable[..., Outcome]

HISTORY = (
    user("I was charged twice.", id="m1"),
    assistant("Let me look.", call("find_payments", call_id="c1", invoice="1042"), id="m2", agent="triage"),
    tool_result(call("find_payments", call_id="c1"), "Card 4929 8801", id="m3", sensitivity="secret"),
    assistant("You were.", id="m4", agent="triage"),
)
SUITE = """
from handrail.filters import assistant, last_n, user
from handrail.filters.testing import assert_filter, transcript

HISTORY = (user("Hi.", id="m1"), assistant("Hello.", id="m2"), user("I was charged twice.", id="m3"))


def test_the_last_two_cross(snapshot):
    assert assert_filter(last_n(2), HISTORY) == snapshot
    assert transcript(HISTORY) == snapshot(name="all")
"""


def pytest_in(folder: Path, fork: Fork, *arguments: str) -> Outcome:
    """Runs pytest on what stands in a folder, as a person would, with the plugins found by their entry points."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    command = ["pytest", "-W", "error", "-p", "no:asyncio", "-p", "no:cacheprovider", *arguments]
    return fork(*command, cwd=folder, env=environment)


@pytest.fixture
def run_pytest(tmp_path: Path, fork: Fork) -> Pytest:
    """Runs pytest on what stands in `tmp_path`."""
    return partial(pytest_in, tmp_path, fork)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, fork: Fork) -> Path:
    """A folder with a suite, its snapshots written."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "test_shop.py").write_text(SUITE)
    assert pytest_in(folder, fork, "--snapshot-update").returncode == 0
    return folder


@pytest.fixture
def suite(written: Path, tmp_path: Path) -> Path:
    """A suite of one's own, with its snapshots."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return tmp_path / "test_shop.py"


def test_a_snapshot_that_is_not_there_fails_and_says_so(tmp_path: Path, run_pytest: Pytest) -> None:
    (tmp_path / "test_shop.py").write_text(SUITE)
    outcome = run_pytest()
    assert outcome.returncode == 1
    assert "Snapshot 'test_the_last_two_cross' does not exist!" in outcome.stdout


def test_snapshots_are_readable_files_and_hold_from_then_on(suite: Path, run_pytest: Pytest) -> None:
    folder = suite.parent / "__snapshots__" / "test_shop"
    written = (folder / "test_the_last_two_cross.hand").read_text()
    assert written == "[assistant] m2\n  Hello.\n\n[user] m3\n  I was charged twice.\n"
    assert (folder / "test_the_last_two_cross[all].hand").is_file()
    outcome = run_pytest()
    assert outcome.returncode == 0
    assert "2 snapshots passed" in outcome.stdout


def test_a_changed_filter_fails_with_a_readable_difference(suite: Path, run_pytest: Pytest) -> None:
    suite.write_text(SUITE.replace("last_n(2)", "last_n(3)"))
    outcome = run_pytest()
    assert outcome.returncode == 1
    assert re.search(r"\[\+ received\] == \[- snapshot\]\nE +\+ \[user\] m1\nE +\+   Hi\.\n", outcome.stdout)
    assert "1 snapshot failed" in outcome.stdout


def test_a_changed_filter_is_taken_over_when_asked(suite: Path, run_pytest: Pytest) -> None:
    suite.write_text(SUITE.replace("last_n(2)", "last_n(3)"))
    assert "1 snapshot updated" in run_pytest("--snapshot-update").stdout
    assert run_pytest().returncode == 0


def test_a_snapshot_whose_test_is_gone_is_reported_and_removed(suite: Path, run_pytest: Pytest) -> None:
    suite.write_text(SUITE.replace('    assert transcript(HISTORY) == snapshot(name="all")\n', ""))
    outcome = run_pytest()
    assert outcome.returncode == 1
    assert "1 snapshot unused" in outcome.stdout
    assert run_pytest("--snapshot-update").returncode == 0
    assert [path.name for path in suite.parent.rglob("*.hand")] == ["test_the_last_two_cross.hand"]


def test_other_values_keep_the_snapshots_that_they_had(suite: Path, run_pytest: Pytest) -> None:
    suite.write_text("def test_a_number(snapshot):\n    assert 42 == snapshot\n")
    assert run_pytest("--snapshot-update").returncode == 0
    assert (suite.parent / "__snapshots__" / "test_shop.ambr").is_file()


def test_snapshots_hold_with_several_workers(suite: Path, run_pytest: Pytest) -> None:
    outcome = run_pytest("-n", "2")
    assert outcome.returncode == 0, outcome.stdout
    assert "2 snapshots passed" in outcome.stdout


def test_the_readme_shows_a_filter_with_a_snapshot_that_works(root: Path, tmp_path: Path, run_pytest: Pytest) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    shown = next(block for block in blocks if "== snapshot" in block)
    assert len([line for line in shown.splitlines() if line]) <= 10
    (tmp_path / "test_shop.py").write_text(shown)
    assert run_pytest("--snapshot-update").returncode == 0
    assert run_pytest().returncode == 0
    (tmp_path / "test_shop.py").write_text(shown.replace('startswith("DRAFT")', 'startswith("Draft")'))
    assert "DRAFT Dear Ada" in run_pytest().stdout


@pytest.mark.parametrize("package", ["filters", "agent"])
def test_no_test_library_is_loaded_outside_of_tests(package: str) -> None:
    program = f"import sys, handrail.{package}; print(*{{'pytest', 'syrupy', '_pytest'}} & set(sys.modules))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.split() == []


def test_without_syrupy_the_plugin_still_loads_and_compares_with_text(tmp_path: Path, run_pytest: Pytest) -> None:
    (tmp_path / "test_shop.py").write_text(SUITE.replace("snapshot(name", "dict(name").replace("(snapshot)", "()"))
    outcome = run_pytest("-p", "no:syrupy")
    assert "NameError: name 'snapshot' is not defined" in outcome.stdout
    assert assert_filter(last_n(1), HISTORY[:1]) == "[user] m1\n  I was charged twice.\n"
    assert assert_filter(last_n(1), HISTORY[:1]) != "[user] m2\n"


def test_what_crosses_is_sealed_unless_the_filter_alone_is_asked_for(snapshot: SnapshotAssertion) -> None:
    unsealed = compose(last_n(2), strip_reasoning())
    assert assert_filter(unsealed, HISTORY, sealed=False) == transcript(unsealed(HISTORY))
    assert assert_filter(last_n(2, keep_user=True), HISTORY) == snapshot


def test_a_filter_that_leaves_nothing_says_so() -> None:
    assert assert_filter(none(), HISTORY).startswith("(nothing that could be answered")


def test_a_filter_that_gives_something_else_each_time_is_refused() -> None:
    turns = iter(range(1, 5))
    with pytest.raises(AssertionError, match="gave something else the second time:\n") as caught:
        assert_filter(lambda history: history[: next(turns)], HISTORY, sealed=False)
    assert "+ [assistant] m2 by triage" in str(caught.value)


def test_a_filter_that_fails_fails_as_at_a_boundary() -> None:
    with pytest.raises(FilterFailed, match="raised IndexError"):
        assert_filter(lambda history: [history[99]], HISTORY)


@pytest.mark.parametrize(
    "filter",
    [full(), none(), last_n(3), default_handoff_filter(), strip_tool_calls(), summary("They met.", keep_last=3)],
    ids=repr,
)
def test_our_own_filters_seal(filter: Callable[[Messages], Messages]) -> None:
    assert_seals(filter)
    assert assert_filter(filter, HISTORY)


def test_a_filter_that_does_not_seal_is_told_by_the_histories_it_fails_on() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_seals(custom(lambda history: (history[0], history[0])))
    said = str(caught.value)
    assert "one question: the filter step 1, custom(an anonymous function), gives the message id 'm1' twice" in said
    assert "nothing at all: the filter step 1, custom(an anonymous function), raised IndexError" in said


def test_a_filter_that_is_not_the_same_twice_does_not_seal() -> None:
    flags = iter([True, False] * 1000)
    with pytest.raises(AssertionError, match="gave something else the second time"):
        assert_seals(lambda history: history if next(flags) else history[-1:])


SECRET = "4929 8801"
HIDING = [
    user(f"My card is {SECRET}.", id="m1"),
    user("Hi.", id=f"m-{SECRET}"),
    user("Hi.", id="m1", name=SECRET),
    user("Hi.", id="m1", agent=SECRET),
    user([Text("4929"), Text(" 8801")], id="m1"),
    user([Text("Hi.", extra='{"detail":"4929\\u0020880\\u0031"}')], id="m1"),
    user([Image(url="https://shop.example/?card=4929%208801")], id="m1"),
    user([File(name=f"{SECRET}.txt", data="aGk=")], id="m1"),
    user([File(name="a.txt", data="IDQ5MjkgODgwMQ==")], id="m1"),
    user([Opaque("x", "search", '{"a":[{"4929 8801":1}]}', family="tool")], id="m1"),
    user([Opaque("x", "search", '{"a":"{\\"b\\":\\"4929\\\\u00208801\\"}"}', family="other")], id="m1"),
]


@pytest.mark.parametrize("message", HIDING)
def test_no_text_is_overlooked(message: object) -> None:
    with pytest.raises(AssertionError, match=r"'4929 8801' crosses full\(\):"):
        assert_never_crosses(full(), (message,), SECRET)  # type: ignore[arg-type]  # they are messages


@pytest.mark.parametrize(
    "arguments", ['{"a":{"b":["x 4929 8801"]}}', '{"a":1,"a":"4929\\u00208801"}', "4929 8801", '{"4929 8801":1}']
)
def test_no_argument_is_overlooked(arguments: str) -> None:
    asked = assistant(ToolCall("c1", "find", arguments), id="m2")
    with pytest.raises(AssertionError, match=r"assistant m2, part 1 \(ToolCall\), .*4929 8801"):
        assert_never_crosses(full(), (HISTORY[0], asked, tool_result("c1", "none", id="m3")), SECRET)


def test_what_a_note_brings_along_is_looked_at() -> None:
    note = Note("input", f"Refund {SECRET}.")
    with pytest.raises(AssertionError, match=r"user f\S+, part 1 \(Text\), text: Refund 4929 8801\."):
        assert_never_crosses(strip_tool_calls(), HISTORY, SECRET, notes=[note])


def test_a_pattern_is_a_text_as_it_stands_or_a_compiled_expression() -> None:
    assert_never_crosses(full(), HISTORY, r"\d+")
    with pytest.raises(AssertionError, match="crosses"):
        assert_never_crosses(full(), HISTORY, re.compile(r"\d{4} \d{4}"))


def test_what_stays_is_no_failure() -> None:
    assert_never_crosses(strip_sensitive_outputs(), HISTORY, SECRET)
    assert_never_crosses(none(), HISTORY, SECRET)
    assert_never_crosses(full(), (HISTORY[0], assistant(Reasoning(SECRET), "Hm.", id="m2")), SECRET)


def test_clock_and_ids_are_fixed(fixed_clock: FixedClock, fixed_ids: FixedIds) -> None:
    assert [fixed_clock(), fixed_clock(), fixed_ids.next(), fixed_ids.next()] == [0, 1, "m-1", "m-2"]


growing = count()


@pytest.mark.parametrize(
    "fails",
    [
        lambda: assert_filter(lambda history: history[: next(growing)], (user("4929", id="m1"),)),
        lambda: assert_never_crosses(full(), (user("4929", id="m1"),), "4929"),
    ],
)
def test_a_failure_is_shown_where_the_test_asked(fails: Callable[[], object]) -> None:
    with pytest.raises(AssertionError) as caught:
        fails()
    assert caught.traceback.filter(caught)[-1].name == "<lambda>"
