"""A chart as Mermaid text, which wikis and code hosts draw by themselves."""

from handrail.cli.charts.charts import Chart

_PLAIN = frozenset(" .,:=/()+-_")


def mermaid(chart: Chart) -> str:
    """The flowchart: agents with their tools, handoffs as solid arrows, sub-agents as dotted ones."""
    lines = ["flowchart TB"]
    for place, box in enumerate(chart.boxes):
        inner = [f"<b>{_quoted(box.name)}</b>", _quoted(box.model), *map(_quoted, box.tools)]
        lines.append(f'    a{place}["{"<br/>".join(inner)}"]')
    for arrow in chart.arrows:
        line = "-->" if arrow.kind == "handoff" else "-.->"
        label = "<br/>".join(map(_quoted, arrow.lines))
        lines.append(f'    a{arrow.source} {line}|"{label}"| a{arrow.target}')
    lines += ["    classDef first stroke-width:3px", "    class a0 first"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """The text with every character that could mean something to Mermaid or HTML as its number."""
    return "".join([char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in text])
