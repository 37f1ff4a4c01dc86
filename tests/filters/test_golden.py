"""Golden cases: what each kind and version of a filter makes of one history.

A golden case may never change: `(kind, version)` is a promise, and sessions that were recorded are checked against it.
A change of behaviour is a new version with a case of its own, beside the old one.
"""

import json
from pathlib import Path

import msgspec
import pytest

from handrail.filters import Filter, History, Message, filter_kind, from_descriptor, registered
from handrail.filters.messages import Messages
from laws.strategies import newest

FOLDER = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in FOLDER.glob("*.json"))
HISTORY = (Message("user", (), "m1"), Message("assistant", (), "m2"))


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_descriptor_gives_what_it_gave(case: str) -> None:
    assert newest(HISTORY)  # the function that the case of `custom` names is registered
    golden = json.loads((FOLDER / f"{case}.json").read_text())
    filter = from_descriptor(golden["descriptor"])
    assert filter.descriptor == golden["descriptor"]
    assert f"{filter.kind}@{filter.version}" == case.split("+")[0]
    given = History(msgspec.convert(golden["input"], tuple[Message, ...]))
    assert json.loads(msgspec.json.encode(list(filter(given)))) == golden["output"]


def test_every_kind_and_version_of_ours_has_a_golden_case() -> None:
    ours = {f"{kind}@{version}" for kind, version in registered() if "/" not in kind}
    assert ours - {case.split("+")[0] for case in CASES} == set()


def test_two_versions_of_a_kind_both_run() -> None:
    @filter_kind("tests/end", version=1)
    class End(Filter, frozen=True):
        """The last message."""

        def __call__(self, history: Messages) -> Messages:
            return history[-1:]

    @filter_kind("tests/end", version=2)
    class EndOfTwo(Filter, frozen=True):
        """The last messages, two where not told."""

        n: int = 2

        def __call__(self, history: Messages) -> Messages:
            return history[-self.n :]

    old, new = from_descriptor({"kind": "tests/end"}), from_descriptor({"kind": "tests/end", "version": 2})
    assert (type(old), type(new)) == (End, EndOfTwo)
    assert [message.id for message in old(HISTORY)] == ["m2"]
    assert [message.id for message in new(HISTORY)] == ["m1", "m2"]
    assert (old.descriptor["version"], new.descriptor["version"]) == (1, 2)
