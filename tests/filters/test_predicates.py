"""Predicates by name."""

import pytest

from handrail.filters import InvalidFilter, Message, predicate
from handrail.filters.predicates import predicates


def test_ready_predicates_are_listed_with_their_versions() -> None:
    assert {"mentions@1", "from_agent@1", "has_tool_calls@1", "is_error@1"} <= set(predicates())


def test_a_name_and_version_is_a_promise() -> None:
    @predicate("tests/one")
    def one(message: Message) -> bool:
        return True

    def other(message: Message) -> bool:
        return False

    with pytest.raises(ValueError, match=r"'tests/one' version 1 is .*one"):
        predicate("tests/one")(other)
    assert predicate("tests/one", version=2)(other) is other


def test_a_coroutine_function_answers_too_late() -> None:
    async def later(message: Message) -> bool:
        return True

    with pytest.raises(InvalidFilter, match="plain function"):
        predicate("tests/later")(later)  # type: ignore[type-var]


@pytest.mark.parametrize("name", ["version", "predicate"])
def test_a_parameter_may_not_be_called_as_those_of_keep_are(name: str) -> None:
    made: dict[str, object] = {}
    exec(f"def asked(message, {name}): return True", made)
    with pytest.raises(InvalidFilter, match="may not call a parameter"):
        predicate("tests/named")(made["asked"])  # type: ignore[type-var]
