"""`handrail filter`: what a filter would let across a boundary, of a session or of anybody's transcript."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.screens import say, say_json
from handrail.cli.sources import on_disk

if TYPE_CHECKING:
    from handrail.filters import Filter, Message, Report
    from handrail.filters.messages import Messages


def command(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A Handrail session or an OpenAI chat transcript; - is standard input."),
    ],
    filter: Annotated[
        str, typer.Option("--filter", help="The filter, such as: last_n(10) | strip_tool_calls")
    ] = "default_handoff_filter",
    agent: Annotated[str | None, typer.Option(help="Whose view of a session; the active agent's if not given.")] = None,
    pick: Annotated[int | None, typer.Option(help="Which transcript of a file of several, from 1.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what each step did to which message, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the messages (and the report) as JSON.")] = False,
) -> None:
    """Show what would cross a handoff: the filter, sealed, with no call and no note."""
    from handrail.cli.transcripts import find_messages
    from handrail.filters import edge_history, parse, seal

    chosen = parse(filter)
    with on_disk(file) as path:
        found = find_messages(path, file, agent, pick)
        history = edge_history(found.messages, kind="handoff").messages
        crossing = seal(chosen).hand_over(history)
        report = full_report(chosen, history, crossing) if explain else None
    if as_json:
        say_json(_described(file, found.which, chosen, history, crossing, report))
        return
    say(f"{file}: {len(crossing)} of {len(history)} messages in {found.which} would cross {chosen!r}", style="bold")
    if report is not None:
        say(f"\n{report}\n")
    for message in crossing:
        say(shown(message))


def full_report(filter: "Filter", history: "Messages", crossing: "Messages") -> "Report":
    """What each step of the filter did, and after them what the seal did."""
    from handrail.filters import Report
    from handrail.filters.reports import compare

    report = filter.explain(history)
    after: Messages = history
    for step in filter.flat:
        after = step(after)
    sealed = compare("seal", after, crossing, lambda _: "it breaks the transcript laws, or is reasoning")
    return Report((*report.steps, sealed)) if sealed.changes else report


def shown(message: "Message") -> str:
    """A whole message for a person to read."""
    from handrail.cli.telling import called

    who = {"tool": f"result of {message.name or message.call_id}", "system": "system"}.get(message.role, message.role)
    speaker = f" ({message.agent})" if message.agent and message.agent != message.role else ""
    lines = [message.text] if message.text else []
    lines += [f"-> {called(call)}" for call in message.tool_calls]
    others = [type(part).__name__.lower() for part in message.content]
    lines += [f"[{kind}]" for kind in others if kind not in ("text", "toolcall")]
    return f"{who}{speaker}: " + "\n  ".join("\n".join(lines).splitlines())


def _described(
    file: str, which: str, filter: "Filter", before: "Messages", after: "Messages", report: "Report | None"
) -> dict[str, Any]:
    from handrail.filters import seal

    described: dict[str, Any] = {
        "file": file,
        "of": which,
        "filter": seal(filter).descriptor,
        "messages_before": len(before),
        "messages_after": len(after),
        "messages": list(after),
    }
    if report is not None:
        described["report"] = report
    return described
