"""Names that are made from agents' names fit every provider, and are the same everywhere."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.agent import UnfitName
from handrail.agent.errors import BuildError
from handrail.agent.names import check_agent_name, check_tool_name, tool_name


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("billing", "billing"),
        ("Billing Agent", "billing_agent"),
        ("Billing/Agent?", "billing_agent_"),
        ("a--b__c", "a--b__c"),
        ("Éa ß", "_a_"),
        ("Agent 7", "agent_7"),
    ],
)
def test_a_tool_name_is_lower_case_and_each_run_of_other_characters_becomes_one_underscore(
    name: str, made: str
) -> None:
    assert tool_name(name) == made
    assert tool_name(name, "transfer_to_") == f"transfer_to_{made}"


@pytest.mark.parametrize("name", ["!!!", "風林火山", "_", "-", "A" * 65])
def test_a_name_of_which_nothing_is_left_or_too_much_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnfitName, match=re.escape(repr(name))):
        tool_name(name)


@given(st.text())
def test_a_made_name_is_refused_or_fits_every_provider(name: str) -> None:
    with contextlib.suppress(UnfitName):
        assert re.fullmatch("transfer_to_[a-z0-9_-]{1,52}", tool_name(name, "transfer_to_"))


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "a" * 65, "a\n", None])
def test_a_given_tool_name_must_fit_as_it_is(name: str) -> None:
    with pytest.raises(UnfitName):
        check_tool_name(name, "the tool")


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "a\x00", 7])
def test_an_agents_name_is_printable_text(name: str) -> None:
    with pytest.raises(BuildError, match="printable text"):
        check_agent_name(name)
