"""`handrail graph`: agents, their tools, and the ways between them."""

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.conftest import Run, one_line

SHOP = '''
from handrail.agent import Agent, ScriptedModel, handoff, to_tool, tool
from handrail.filters import compose, full, last_n, last_user, none, strip_tool_calls


@tool(side_effects="read_only", output_sensitivity="secret")
def find_payments(invoice: str) -> str:
    """The payments of an invoice."""
    return ""


Model = ScriptedModel
research = Agent("research", model=Model(name="small"))
asked = to_tool(research, filter=none(), returns=last_n(1))
billing = Agent("billing", model=Model(), tools=[find_payments, asked])
ask = handoff("billing", name="ask", filter=last_user(), returns=full())
short = handoff(billing, filter=compose(last_n(6), strip_tool_calls()))
triage = Agent("triage", model=Model(), handoffs=[short, ask])
alone = Agent("alone", model=Model())
odd = Model(name="a\\x1b[2J|`%%{`;\\n-->")
evil = Agent('</text><script>"]', model=odd, handoffs=[handoff(alone, filter=last_user())])
late = Agent("late", model=Model(), handoffs=["nobody"])
ways = {n: {(n * 7 + 1) % 40, (n * 7 + 2) % 40} - {n} for n in range(1, 40)}
crowd = [Agent(f"a{n}", model=Model(), handoffs=[f"a{m}" for m in sorted(ways[n])]) for n in ways]
many = Agent("a0", model=Model(), handoffs=crowd)
'''
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chart_shop.py").write_text(SHOP)
    monkeypatch.delitem(sys.modules, "chart_shop", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))


def texts(path: Path) -> list[str]:
    return [each.text or "" for each in ET.parse(path).iter(f"{SVG}text")]


def test_mermaid_text_names_agents_tools_ways_and_filters(handrail_here: Run) -> None:
    outcome = handrail_here("graph", "chart_shop:triage")
    assert outcome.stdout.splitlines() == [
        "flowchart TB",
        '    a0["<b>triage</b><br/>scripted"]',
        '    a1["<b>billing</b><br/>scripted<br/>find_payments (read only, secret)"]',
        '    a2["<b>research</b><br/>small"]',
        '    a0 -->|"transfer_to_billing<br/>last_n(n=6, keep_user=False)<br/>#124; strip_tool_calls()"| a1',
        '    a0 -->|"ask<br/>last_user()<br/>and back"| a1',
        '    a1 -.->|"research<br/>none()<br/>and back: last_n(n=1, keep_user=False)"| a2',
        "    classDef first stroke-width:3px",
        "    class a0 first",
    ]


def test_a_picture_shows_the_same(handrail_here: Run, tmp_path: Path) -> None:
    outcome = handrail_here("graph", "chart_shop:triage", "-o", "shop.svg")
    assert outcome.stdout == "shop.svg: 3 agents, 3 ways between them\n"
    shown = texts(tmp_path / "shop.svg")
    assert {"triage", "find_payments (read only, secret)", "transfer_to_billing", "| strip_tool_calls()"} <= set(shown)
    arrows = ET.parse(tmp_path / "shop.svg").iter(f"{SVG}polygon")
    assert [arrow.get("class") for arrow in arrows] == ["tip", "tip", "tip purple"]


def test_a_picture_is_the_same_every_time(handrail_anew: Run) -> None:
    pictures = {handrail_anew("graph", "chart_shop:triage", "--format", "svg").stdout for _ in range(2)}
    assert len(pictures) == 1
    assert pictures.pop().startswith("<svg")


def test_nothing_in_a_picture_covers_another(handrail_here: Run, tmp_path: Path) -> None:
    handrail_here("graph", "chart_shop:many", "-o", "many.svg")
    found = [each.attrib for each in ET.parse(tmp_path / "many.svg").iter(f"{SVG}rect") if each.get("class") != "paper"]
    boxes = [[float(each[side]) for side in ("x", "y", "width", "height")] for each in found]
    assert len(boxes) > 100
    for place, (x, y, width, height) in enumerate(boxes):
        for other in boxes[:place]:
            beside = x + width <= other[0] or other[0] + other[2] <= x
            assert beside or y + height <= other[1] or other[1] + other[3] <= y


def test_names_are_words_and_never_markup(handrail_here: Run, tmp_path: Path) -> None:
    handrail_here("graph", "chart_shop:evil", "-o", "evil.svg")
    assert '</text><script>"]' in texts(tmp_path / "evil.svg")
    assert list(ET.parse(tmp_path / "evil.svg").iter(f"{SVG}script")) == []
    drawn = handrail_here("graph", "chart_shop:evil").stdout
    assert "<script" not in drawn
    assert re.fullmatch(r'    a0\["<b>[^"\]<>]*</b><br/>[^"\]<>|`%]*"\]', drawn.splitlines()[1])


def test_an_agent_alone_is_a_picture_too(handrail_here: Run, tmp_path: Path) -> None:
    assert handrail_here("graph", "chart_shop:alone", "-o", "alone.svg").returncode == 0
    assert texts(tmp_path / "alone.svg")[1:] == ["alone", "scripted"]


def test_as_json_there_are_boxes_and_arrows(handrail_here: Run) -> None:
    drawn = json.loads(handrail_here("graph", "chart_shop:triage", "--json").stdout)
    assert [box["name"] for box in drawn["boxes"]] == ["triage", "billing", "research"]
    assert drawn["arrows"][2] == {
        "kind": "subagent",
        "source": 1,
        "target": 2,
        "lines": ["research", "none()", "and back: last_n(n=1, keep_user=False)"],
    }


def test_no_file_is_overwritten(handrail_here: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.mmd").write_text("mine")
    assert "mine.mmd" in one_line(handrail_here("graph", "chart_shop:triage", "-o", "mine.mmd"), 2)
    assert (tmp_path / "mine.mmd").read_text() == "mine"


@pytest.mark.parametrize(
    ("place", "said"),
    [("chart_shop:nobody", "agents there: alone, billing"), ("chart_shop:late", "late hands off to 'nobody'")],
)
def test_what_cannot_be_drawn_is_told_in_one_line(handrail_here: Run, place: str, said: str) -> None:
    assert said in one_line(handrail_here("graph", place), 2)


def test_without_the_library_for_layout_it_says_what_to_do(handrail_here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphlay", None)
    said = one_line(handrail_here("graph", "chart_shop:triage", "--format", "svg"), 2)
    assert said == (
        "handrail: a picture needs graphlay: install the extra 'graph' of the package handrail (from this project's "
        "folder: pip install './packages/cli[graph]'), or take --format mermaid"
    )
