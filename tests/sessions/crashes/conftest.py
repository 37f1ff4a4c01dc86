"""What kills processes, for the tests of a module."""

from collections.abc import Iterator

import pytest

from sessions.crashes.killing import SEED, Killer, killing


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    """Has jobs done by processes that are killed; says at a failure how to take the same moments again."""
    print(f"KILL_SEED={SEED}")
    with killing() as killer:
        yield killer
