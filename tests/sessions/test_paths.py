"""Agent paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.sessions.paths import in_scope, is_top, name_of, sibling_path, sub_path, top_path

NAMES = ["Boss", "a/b", "c@d", "50%", "%2F", "x y"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_gives_its_agents_name_back(name: str) -> None:
    path = sub_path(top_path(name), name, "t/1@2")
    assert name_of(top_path(name)) == name_of(path) == name
    assert is_top(top_path(name))
    assert not is_top(path)


def test_a_sub_agents_path_says_who_called_it_and_by_which_call() -> None:
    assert sub_path("Boss", "W1", "t1") == "Boss/W1@t1"
    assert sibling_path("Boss/W1@t1", "W2") == "Boss/W2@t1"
    assert sibling_path("Boss", "Desk") == "Desk"


def test_each_of_several_that_one_call_asks_has_a_scope_of_its_own() -> None:
    assert sub_path("Boss", "W1", "t1", 2) == "Boss/W1@t1@2"
    assert sibling_path("Boss/W1@t1@2", "W2") == "Boss/W2@t1@2"
    assert name_of("Boss/W1@t1@2") == "W1"
    assert in_scope("Boss/W2@t1@2/X@t2", "Boss", "t1", 2)
    assert not in_scope("Boss/W1@t1@2", "Boss", "t1", 1)
    assert not in_scope("Boss/W1@t1@2", "Boss", "t1")
    assert not in_scope(sub_path("Boss", "W1", "t1@2"), "Boss", "t1", 2)


def test_a_scope_holds_everyone_below_its_call_and_nobody_else() -> None:
    assert in_scope("Boss/W1@t1", "Boss", "t1")
    assert in_scope("Boss/W2@t1/X@t2", "Boss", "t1")
    assert not in_scope("Boss/W1@t1/X@t2", "Boss", "t2")
    assert not in_scope("Boss", "Boss", "t1")
    assert not in_scope("Bossy/W1@t1", "Boss", "t1")


@given(st.text(), st.text())
def test_two_names_never_share_a_place_in_a_path(first: str, second: str) -> None:
    assert (top_path(first) == top_path(second)) == (first == second)
