"""Finding an agent by module and name."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.cli.errors import NoSuchAgent
from handrail.cli.finding import find_agent

SHOP = """
from handrail.agent import Agent, ScriptedModel
clerk = Agent("clerk", model=ScriptedModel("Hello."))
class desk:
    inner = clerk
number = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "some_shop.py").write_text(SHOP)
    yield tmp_path
    sys.modules.pop("some_shop", None)
    sys.modules.pop("broken_shop", None)


def test_an_agent_is_found_in_the_current_folder() -> None:
    assert find_agent("some_shop:clerk").name == "clerk"
    assert find_agent("some_shop:desk.inner").name == "clerk"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("some_shop", "write module:agent"),
        (":clerk", "write module:agent"),
        ("some_shop:nobody", "there is no 'nobody' in the module some_shop; agents there: clerk"),
        ("some_shop:number", "this is no agent but int; agents there: clerk"),
        ("no_such_shop:clerk", "there is no module no_such_shop here"),
        ("some_shop.deeper:clerk", "there is no module some_shop.deeper here"),
        ("..up:clerk", "..up"),
    ],
)
def test_a_place_without_an_agent_says_what_is_there(place: str, said: str) -> None:
    with pytest.raises(NoSuchAgent) as caught:
        find_agent(place)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("raise SystemExit(3)", "SystemExit"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why_and_where(folder: Path, source: str, said: str) -> None:
    (folder / "broken_shop.py").write_text(f"\n{source}\n")
    with pytest.raises(NoSuchAgent) as caught:
        find_agent("broken_shop:clerk")
    assert said in str(caught.value)
    assert "broken_shop.py, line 2" in str(caught.value)
