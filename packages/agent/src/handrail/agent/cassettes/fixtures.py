"""What pytest takes from cassettes: two options, the fixtures, and the news that a test has passed.

pytest_plugins = ["handrail.agent.testing"]  # in the conftest.py of the folder that pytest is started in
"""

import os
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import get_args

import pytest

from handrail.agent.cassettes.cassettes import Cassette, Mode, Redact
from handrail.agent.doors import real_calls_forbidden

_PASSED = pytest.StashKey[bool]()
_LONGEST = 120
_NO_OPTION = "no such option"
_UNFIT = re.compile(r"[^\w\-\[\],=+]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cassette` and `--no-model-calls`."""
    group = parser.getgroup("handrail", "agents and their models")
    group.addoption(
        "--cassette",
        choices=get_args(Mode),
        help="what cassettes do: none answers from recordings alone; once also records where there is no file; new "
        "records what is missing; all records everything anew (default: none where CI is set, else once)",
    )
    group.addoption("--no-model-calls", action="store_true", help="fail whatever asks a model's service, in any test")


def pytest_configure(config: pytest.Config) -> None:
    """Closes the door to models' services for the whole session, where that is asked for."""
    if config.getoption("--no-model-calls", False):
        doors = ExitStack()
        doors.enter_context(real_calls_forbidden("--no-model-calls"))
        config.add_cleanup(doors.close)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps whether the test itself has passed, for the fixtures that end after it."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture
def cassette_redact() -> Redact | None:
    """What is applied to each text before it is written to a cassette; override it in a `conftest.py`."""
    return None


@pytest.fixture
def cassette(request: pytest.FixtureRequest, cassette_redact: Redact | None) -> Iterator[Cassette]:
    """Model calls of this test, recorded once in `cassettes/<module>/<test>.jsonl` beside it, and answered from there.

    Every agent's model is stood in for, but for those that answer in the process; `cassette.model(…)` makes a stand-in
    for any other. The file is written when the test has passed.
    """
    cassette = Cassette(cassette_path(request.node), mode=_mode(request.config), redact=cassette_redact)
    cassette.open()
    try:
        yield cassette
    finally:
        cassette.close()
    if request.node.stash.get(_PASSED, False):
        cassette.finish()


@pytest.fixture
def forbid_real_calls() -> Iterator[None]:
    """Whatever asks a model's service in this test raises `RealCallForbidden`."""
    with real_calls_forbidden("the fixture forbid_real_calls"):
        yield


def cassette_path(item: pytest.Item) -> Path:
    """Where the cassette of a test is: what a file's name cannot hold, or would make too long, is told by a digest."""
    _, _, own = item.nodeid.partition("::")
    name = own.replace("::", ".")
    fit = ".".join([_UNFIT.sub("_", part) for part in name.split(".")])[:_LONGEST]
    if fit != name:
        fit = f"{fit}-{sha256(name.encode()).hexdigest()[:8]}"
    return item.path.parent / "cassettes" / item.path.stem / f"{fit}.jsonl"


def _mode(config: pytest.Config) -> Mode:
    if config.getoption("--cassette", _NO_OPTION) == _NO_OPTION:
        place = "the conftest.py of the folder that pytest is started in"
        raise pytest.UsageError(f'the fixture cassette needs pytest_plugins = ["handrail.agent.testing"] in {place}')
    chosen: Mode | None = config.getoption("--cassette")
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return chosen or ("none" if in_ci else "once")
