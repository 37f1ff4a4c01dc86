"""`handrail filter`: what a filter would let across a boundary, of a session or of anybody's transcript."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.reporting import full_report, shown
from handrail.cli.screens import aside, say, say_json, shortened
from handrail.cli.stores import called, session_at

if TYPE_CHECKING:
    from handrail.cli.recorded import Replayed
    from handrail.filters import Filter, Report
    from handrail.filters.messages import Messages

_WIDTH = 300
"""How much of a filter stands in a head; a summary's text may be long, and is whole in --json."""


def command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A session (a file or STORE#ID) or an OpenAI chat transcript; - is standard input."
        ),
    ],
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter",
            show_default="the default filter, or with --from and --to the recorded one",
            help="The filter, such as: last_n(10) | strip_tool_calls",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="AGENT", help="The session's recorded handoffs from this agent.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="AGENT", help="The session's recorded handoffs to this agent.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Whose view of a session; the active agent's if not given.")] = None,
    pick: Annotated[int | None, typer.Option(help="Which transcript of a file of several, from 1.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what each step did to which message, and why.")
    ] = False,
    counter: Annotated[
        str | None, typer.Option("--counter", help="What counts tokens: o200k_base, cl100k_base, estimate@1.")
    ] = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="The handoff's reason, which crosses where no user message is left.")
    ] = "",
    full: Annotated[bool, typer.Option("--full", help="Show system prompts whole.")] = False,
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the messages (and the report) as JSON.")] = False,
) -> None:
    """Show what would cross a handoff: the filter, sealed, with no call."""
    from handrail.cli.explaining import say_report
    from handrail.cli.transcripts import find_messages
    from handrail.filters import Note, NothingToHandOver, edge_history, parse, seal
    from handrail.filters.reports import crossed
    from handrail.filters.tokens import best_counter

    import_modules(modules)
    keys = Keys(passphrase_file)
    counter = (counter or best_counter()) if explain else None
    if source is not None or target is not None:
        if agent is not None or pick is not None or reason:
            raise UnfitInput("--from and --to take what was recorded; leave --agent, --pick and --reason out")
        _recorded(file, filter, source, target, counter, keys, explain=explain, full=full, as_json=as_json)
    chosen = parse("default_handoff_filter" if filter is None else filter)
    notes = (Note("reason", reason),) if reason else ()
    crossing: Messages = ()
    failure: NothingToHandOver | None = None
    with session_at(file) as path:
        found = find_messages(path, called(file), agent, pick, keys.of(path))
        history = edge_history(found.messages, kind="handoff").messages
        try:
            crossing = seal(chosen).hand_over(history, notes)
        except NothingToHandOver as error:
            if not explain:
                raise
            failure = error
        report = full_report(chosen, history, notes, counter) if explain else None
    if as_json:
        say_json(_described(called(file), found.which, chosen, history, crossing, report))
    else:
        crosses = crossed(history, crossing, "would cross")
        say(f"{called(file)}, {found.which}: {crosses}: {shortened(repr(chosen), _WIDTH)}", style="bold")
        if report is not None:
            say_report(report, history, counter)
        for message in crossing:
            say(shown(message, full=full))
    if failure is not None:
        raise failure


def _recorded(
    file: str,
    filter: str | None,
    source: str | None,
    target: str | None,
    counter: str | None,
    keys: Keys,
    *,
    explain: bool,
    full: bool,
    as_json: bool,
) -> None:
    from handrail.cli.explaining import say_report
    from handrail.cli.recorded import replayed
    from handrail.filters import parse
    from handrail.filters.reports import crossed

    chosen = parse(filter) if filter is not None else None
    failed = False
    with session_at(file) as path:
        for found in replayed(
            path, called(file), source, target, chosen, explain=explain, counter=counter, passphrase=keys.of(path)
        ):
            failed = failed or bool(found.problem)
            if as_json:
                say_json(
                    _described(
                        called(file), found.which, found.filter, found.history, found.crossing, found.report, found
                    )
                )
                continue
            crosses = crossed(found.history, found.crossing, "crossed" if found.recorded else "would cross")
            say(f"{found.which}: {crosses}: {shortened(repr(found.filter), _WIDTH)}", style="bold")
            if found.report is not None:
                say_report(found.report, found.history, counter)
            for message in found.crossing:
                say(shown(message, full=full))
            if found.problem:
                aside(f"handrail: {found.which}: {found.problem}")
            say()
    raise typer.Exit(FAILED if failed else OK)


def _described(
    file: str,
    which: str,
    filter: "Filter",
    before: "Messages",
    after: "Messages",
    report: "Report | None",
    found: "Replayed | None" = None,
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
    if found is not None:
        boundary = found.boundary
        described |= {
            "handoff": boundary.number,
            "line": boundary.line,
            "step": boundary.record.step,
            "kind": boundary.kind,
            "from": boundary.source,
            "to": boundary.target,
            "recorded": found.recorded,
            "problem": found.problem,
        }
    return described
