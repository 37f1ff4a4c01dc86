"""A chart as an SVG picture, laid out by graphlay."""

import unicodedata
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from handrail.cli.charts.charts import Arrow, Box, Chart
from handrail.cli.errors import CommandError

MARGIN = 24.0
PAD = 12.0
NAME_SIZE, TEXT_SIZE = 15.0, 11.0
NAME_LINE, TEXT_LINE = 22.0, 16.0
GLYPH = 0.61
"""The width of a monospaced character, in sizes of its font."""
LONGEST = 44
"""Characters of a line; the whole line is in the picture's tooltip."""

LEGEND = "solid: handoff, dashed: sub-agent; on each its tool, and what its filter lets cross"
_STYLE = """
svg { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: 11px; }
.paper { fill: #ffffff; }
.box { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.2; }
.first { fill: #eaf2ff; stroke: #1f5fbf; stroke-width: 2.4; }
.name { font-size: 15px; font-weight: bold; fill: #1f2328; }
.model { fill: #6a737d; }
.tool { fill: #24292f; }
.line { fill: none; stroke: #1f2328; stroke-width: 1.4; }
.line.purple { stroke: #8250df; stroke-dasharray: 6 4; }
.tip { fill: #1f2328; }
.gate { fill: #eefaf3; stroke: #9fd8b9; stroke-width: 1; }
.way { font-weight: bold; fill: #1f2328; }
.filter { fill: #0a5f38; }
.tip.purple, .way.purple { fill: #8250df; }
"""


class NoLayout(CommandError):
    """The library that lays pictures out is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "a picture needs graphlay: install the extra 'graph' of the package handrail (from this project's folder: "
            "pip install './packages/cli[graph]'), or take --format mermaid"
        )


def svg(chart: Chart) -> str:
    """The picture: the same chart gives the same bytes. Raises `NoLayout`."""
    boxes = [_box_size(box) for box in chart.boxes]
    gates = [_gate_size(arrow.lines) for arrow in chart.arrows]
    layout = _laid_out(chart, [*boxes, *gates])
    places = [(node["center"]["x"], node["center"]["y"]) for node in layout["nodes"]]
    root = _canvas(layout["bounds"]["min"], layout["bounds"]["max"], chart.boxes[0].name)
    for number, edge in enumerate(layout["edges"]):
        _line(root, chart.arrows[number // 2], edge["points"], ends=number % 2 == 1)
    for arrow, place, size in zip(chart.arrows, places[len(boxes) :], gates, strict=True):
        _gate(root, arrow, place, size)
    for number, (box, place, size) in enumerate(zip(chart.boxes, places, boxes, strict=False)):
        _box(root, box, place, size, first=number == 0)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _laid_out(chart: Chart, sizes: Sequence[tuple[float, float]]) -> dict[str, Any]:
    try:
        import graphlay
    except ImportError as error:
        raise NoLayout from error
    # What stands on an arrow is laid out as a box of its own, so that it stands on its arrow and covers nothing.
    graph = graphlay.Graph()
    ranks = _ranks(chart)
    for number, (width, height) in enumerate(sizes):
        graph.node(number, width=width, height=height, label="", rank={"fixed": ranks[number]})
    for gate, arrow in enumerate(chart.arrows, len(chart.boxes)):
        graph.edge(arrow.source, gate)
        graph.edge(gate, arrow.target)
    options = {"direction": "topbottom", "spacing": {"layer_gap": 34.0, "node_gap": 28.0}}
    laid_out: dict[str, Any] = graphlay.layout(graph, options=options).raw
    return laid_out


def _ranks(chart: Chart) -> list[int]:
    """Agents stand as low as they are far from the first, and what leads from one to another in between."""
    ways = [[arrow.target for arrow in chart.arrows if arrow.source == place] for place in range(len(chart.boxes))]
    found, waiting = {0: 0}, [0]
    while waiting:
        place = waiting.pop(0)
        for target in ways[place]:
            if target not in found:
                found[target] = found[place] + 2
                waiting.append(target)
    between = [min(found[arrow.source], found[arrow.target]) + 1 for arrow in chart.arrows]
    return [*[found[place] for place in range(len(chart.boxes))], *between]


def _canvas(low: dict[str, float], high: dict[str, float], name: str) -> ET.Element:
    width = max(high["x"] - low["x"], _width(LEGEND) * TEXT_SIZE * GLYPH) + 2 * MARGIN
    height = high["y"] - low["y"] + 2 * MARGIN + TEXT_LINE * 1.5
    box = (low["x"] - MARGIN, low["y"] - MARGIN, width, height)
    root = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        viewBox=" ".join(map(_number, box)),
        width=_number(width),
        height=_number(height),
    )
    ET.SubElement(root, "title").text = f"What {name} can reach"
    ET.SubElement(root, "style").text = _STYLE
    _rect(root, "paper", *box)
    _text(root, LEGEND, low["x"], high["y"] + TEXT_LINE * 1.5, "model")
    return root


def _width(text: str) -> int:
    return sum([2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text])


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _box_size(box: Box) -> tuple[float, float]:
    small = max([_width(_short(line)) for line in (box.model, *box.tools)]) * TEXT_SIZE * GLYPH
    width = max(_width(_short(box.name)) * NAME_SIZE * GLYPH, small, 90.0) + 2 * PAD
    return width, NAME_LINE + TEXT_LINE * (1 + len(box.tools)) + PAD + (PAD / 2 if box.tools else 0)


def _gate_size(lines: Sequence[str]) -> tuple[float, float]:
    width = max([_width(_short(line)) for line in lines]) * TEXT_SIZE * GLYPH
    return width + PAD, TEXT_LINE * len(lines) + 6


def _line(root: ET.Element, arrow: Arrow, points: Sequence[dict[str, float]], *, ends: bool) -> None:
    colour = " purple" if arrow.kind == "subagent" else ""
    way = " ".join([f"{'L' if place else 'M'}{_number(p['x'])},{_number(p['y'])}" for place, p in enumerate(points)])
    ET.SubElement(root, "path", {"class": f"line{colour}", "d": way})
    if not ends:
        return
    tip, before = points[-1], points[-2]
    dx, dy = tip["x"] - before["x"], tip["y"] - before["y"]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    x, y = tip["x"] - 9 * ux, tip["y"] - 9 * uy
    corners = [(tip["x"], tip["y"]), (x - 4.5 * uy, y + 4.5 * ux), (x + 4.5 * uy, y - 4.5 * ux)]
    shape = " ".join([f"{_number(x)},{_number(y)}" for x, y in corners])
    ET.SubElement(root, "polygon", {"class": f"tip{colour}", "points": shape})


def _gate(root: ET.Element, arrow: Arrow, place: tuple[float, float], size: tuple[float, float]) -> None:
    (x, y), (width, height) = place, size
    colour = " purple" if arrow.kind == "subagent" else ""
    group = ET.SubElement(root, "g")
    ET.SubElement(group, "title").text = "\n".join(arrow.lines)
    _rect(group, "gate", x - width / 2, y - height / 2, width, height, rx="3")
    for number, line in enumerate(arrow.lines):
        kind = "filter" if number else f"way{colour}"
        _text(group, line, x - width / 2 + PAD / 2, y - height / 2 + TEXT_LINE * (number + 0.8) + 2, kind)


def _box(root: ET.Element, box: Box, place: tuple[float, float], size: tuple[float, float], *, first: bool) -> None:
    (x, y), (width, height) = place, size
    left, top = x - width / 2, y - height / 2
    group = ET.SubElement(root, "g")
    ET.SubElement(group, "title").text = "\n".join([box.name, box.model, *box.tools])
    _rect(group, "box first" if first else "box", left, top, width, height, rx="6")
    _text(group, box.name, left + PAD, top + NAME_LINE, "name")
    _text(group, box.model, left + PAD, top + NAME_LINE + TEXT_LINE, "model")
    for number, tool in enumerate(box.tools, 2):
        _text(group, tool, left + PAD, top + NAME_LINE + TEXT_LINE * number + PAD / 2, "tool")


def _rect(parent: ET.Element, kind: str, x: float, y: float, width: float, height: float, **more: str) -> None:
    shape = {"x": _number(x), "y": _number(y), "width": _number(width), "height": _number(height)}
    ET.SubElement(parent, "rect", {"class": kind, **shape, **more})


def _text(parent: ET.Element, text: str, x: float, y: float, kind: str) -> None:
    shown = text if text == LEGEND else _short(text)
    ET.SubElement(parent, "text", {"class": kind, "x": _number(x), "y": _number(y)}).text = shown


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
