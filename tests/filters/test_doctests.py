"""What the docstrings show is what happens."""

import doctest
import importlib
import pkgutil

import pytest

import handrail.filters

MODULES = [found.name for found in pkgutil.walk_packages(handrail.filters.__path__, "handrail.filters.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_constructor_of_the_catalogue_has_an_example() -> None:
    catalogue = [name for name in MODULES if ".catalogue." in name]
    assert [name for name in catalogue if doctest.testmod(importlib.import_module(name)).attempted == 0] == []
