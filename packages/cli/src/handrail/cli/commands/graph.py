"""`handrail graph`: agents, their tools, and what crosses between them, as a picture."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from handrail.cli.screens import say, say_json


def command(
    agent: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="Where it is; modules of this folder too.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The new file; else standard output.")] = None,
    format: Annotated[
        Literal["svg", "mermaid"] | None,
        typer.Option(help="What to make; if not given, svg for a file that is called so, else mermaid."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print boxes and arrows as JSON.")] = False,
) -> None:
    """Draw an agent and all that it can reach: tools, handoffs and sub-agents, each with its filter."""
    from handrail.cli.charts.charts import chart
    from handrail.cli.finding import find_agent
    from handrail.cli.sources import write_new

    drawn = chart(find_agent(agent))
    if as_json:
        say_json(drawn)
        return
    if format == "svg" or (format is None and out is not None and out.suffix.lower() == ".svg"):
        from handrail.cli.charts.svg import svg

        body = svg(drawn)
    else:
        from handrail.cli.charts.mermaid import mermaid

        body = mermaid(drawn)
    if out is None:
        sys.stdout.write(body)
        return
    write_new(out, body.encode())
    say(f"{out}: {len(drawn.boxes)} agents, {len(drawn.arrows)} ways between them")
