"""The examples in the docstrings are true."""

import doctest
import importlib
import pkgutil

import pytest

import handrail.sessions

MODULES = [module.name for module in pkgutil.walk_packages(handrail.sessions.__path__, "handrail.sessions.")]


@pytest.mark.parametrize("module", MODULES)
def test_every_example_gives_what_it_says(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS).failed == 0
