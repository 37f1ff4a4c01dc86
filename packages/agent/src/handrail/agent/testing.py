"""What tests of agents use.

    def test_billing_gets_it():
        assert_handoffs(triage.run_sync("I was charged twice."), ["triage -> billing"])

Its fixtures, options and hooks come with `pytest_plugins = ["handrail.agent.testing"]` in the `conftest.py` of the
folder that pytest is started in; `from handrail.agent.testing import scripted` in any `conftest.py` brings that one
alone. So agents are loaded by those tests alone that use them, and not by every pytest.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pytest

from handrail.agent.cassettes.cassettes import Cassette
from handrail.agent.cassettes.fixtures import (
    cassette,
    cassette_redact,
    forbid_real_calls,
    pytest_addoption,
    pytest_configure,
    pytest_runtest_makereport,
)
from handrail.agent.reports import Crossing
from handrail.agent.runs import RunResult
from handrail.agent.scripted import ScriptedModel
from handrail.filters.reports import crossed as boundary

__all__ = [
    "Cassette",
    "Scripted",
    "assert_handoffs",
    "cassette",
    "cassette_redact",
    "forbid_real_calls",
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_makereport",
    "scripted",
]

Scripted: TypeAlias = Callable[..., ScriptedModel]
"""Makes a `ScriptedModel` of its answers, as the class itself does."""


def assert_handoffs(result: RunResult, expected: Sequence[str], *, subagents: bool = False) -> None:
    """The boundaries that a run crossed, in order: handoffs as `triage -> billing`, and with `subagents=True` also the
    sub-agents that were asked, as `billing asks research`.

    Raises `AssertionError` with the difference, and with what crossed each time.
    """
    __tracebackhide__ = True
    crossed = [each for each in result.handoffs if subagents or each.kind == "handoff"]
    found = [_way(each) for each in crossed]
    wanted = [" ".join(each.split()) for each in expected]
    if found != wanted:
        raise AssertionError(
            "\n  ".join(["the boundaries that were crossed are others:", *_difference(wanted, crossed)])
        )


def _way(crossing: Crossing) -> str:
    return f"{crossing.source} {'->' if crossing.kind == 'handoff' else 'asks'} {crossing.target}"


def _difference(wanted: Sequence[str], crossed: Sequence[Crossing]) -> Iterator[str]:
    from difflib import SequenceMatcher

    found = [_way(each) for each in crossed]
    for change, start, end, first, last in SequenceMatcher(None, wanted, found, autojunk=False).get_opcodes():
        if change != "equal":
            yield from [f"- {way}" for way in wanted[start:end]]
        mark = "  " if change == "equal" else "+ "
        for each in crossed[first:last]:
            yield f"{mark}{_way(each)} ({boundary(each.edge.messages, each.seed)})"
    if not wanted and not crossed:
        yield "none"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """Makes scripted models whose answers must all have been asked for when the test ends: `scripted("Hello.")`."""
    made: list[ScriptedModel] = []

    def make(*answers: object, name: str = "scripted") -> ScriptedModel:
        model = ScriptedModel(*answers, name=name)  # type: ignore[arg-type]  # the class says what answers may be
        made.append(model)
        return model

    yield make
    for model in made:
        model.done()
