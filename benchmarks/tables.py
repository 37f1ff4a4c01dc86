"""The table, as text and as JSON."""

from typing import Any

from benchmarks.rows import Result

WIDTHS = (66, 14, 36, 26, 8, 25, 4)
HEADINGS = ("what", "measured", "floors", "figure", "judged", "target", "")


def heading() -> str:
    return f"{_line(HEADINGS)}\n{'─' * len(_line(HEADINGS))}"


def line(result: Result, pace: float) -> str:
    """One result as a line of the table, judged at the pace of the machine."""
    target = result.target
    return _line(
        (
            result.what,
            f"{_number(result.value)} {result.unit}",
            ", ".join(f"{name} {_number(value)}" for name, value in result.floors.items()) or "–",
            f"{_number(result.figure)} {target.unit}",
            _number(result.judged(pace)),
            f"{'≥' if target.at_least else '≤'} {target.limit:g} {target.unit}",
            "ok" if result.ok(pace) else "OVER" if not target.at_least else "LOW",
        )
    )


def as_json(name: str, result: Result, pace: float) -> dict[str, Any]:
    """One result as JSON: numbers in the result's `unit`; the figure, what is judged of it at the pace of the machine,
    and its limit in the target's."""
    return {
        "row": name,
        "what": result.what,
        "measured": result.value,
        "unit": result.unit,
        "floors": dict(result.floors),
        "figure": result.figure,
        "pace": pace,
        "judged": result.judged(pace),
        "limit": result.target.limit,
        "limit_unit": result.target.unit,
        "at_least": result.target.at_least,
        "ok": result.ok(pace),
    }


def _line(cells: tuple[str, ...]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
