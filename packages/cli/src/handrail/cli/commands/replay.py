"""`handrail replay`: a session's runs once more, with today's agents or with something otherwise."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from handrail.cli.errors import UnfitInput
from handrail.cli.exits import FAILED, OK
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import say, say_json
from handrail.cli.stores import session_at

if TYPE_CHECKING:
    from handrail.agent import Agent
    from handrail.agent.teams import TeamTool
    from handrail.sessions import Session
    from handrail.sessions.places import Where


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A session file, or STORE#ID; - is standard input.")],
    agent: Annotated[
        str, typer.Argument(metavar="MODULE:AGENT", help="The agent (or fan_out, …) that was run, as it is today.")
    ],
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Compare every boundary and request; the options below imply it.")
    ] = False,
    answers: Annotated[
        Literal["none", "recorded"] | None,
        typer.Option(help="What an agent is told whose request differs: nothing, or what was said in its place."),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", metavar="EDGE=FILTER", help="Such as: triage->billing=last_n(3). Repeatable."),
    ] = None,
    instructions: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Other instructions, of the agent or as NAME=TEXT of another. Repeatable."),
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="PLACE", help="From where on: a boundary, as 2, or a model call, as step:7.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="TOOL", help="A tool, or a class (pure, read_only), that may run. Repeatable."),
    ] = None,
    modules: Modules = None,
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Run a session again, with the recorded answers: exit code 0 where all is as it was, and 1 where it is not."""
    import_modules(modules)
    from handrail.cli.finding import find_agent_or_team
    from handrail.sessions import Session

    found = find_agent_or_team(agent)
    with session_at(file) as path:
        passphrase = Keys(passphrase_file).of(path)
        session = path if passphrase is None else Session(path, passphrase=passphrase)
        if what_if or answers is not None or filters or instructions or at is not None:
            if allow:
                raise UnfitInput("--allow is for running a session again; a what-if touches nothing")
            changes = _changes(found, filters or (), instructions or ())
            same = _what_if(session, found, as_json, answers=answers or "none", at=_place(at), **changes)
        else:
            same = _rerun(session, found, allow or (), as_json)
    raise typer.Exit(OK if same else FAILED)


def _rerun(session: "Where | Session", agent: "Agent | TeamTool", allow: Any, as_json: bool) -> bool:
    from handrail.agent.replay import rerun_sync

    replay = rerun_sync(session, agent, allow=allow)
    if as_json:
        counts = {"model_calls": replay.model_calls, "tool_calls": replay.tool_calls}
        fields = {"runs": replay.runs, "divergence": replay.divergence, "lacks": replay.lacks}
        say_json({"ok": replay.ok, **counts, **fields})
    else:
        say(str(replay))
    return replay.ok


def _what_if(session: "Where | Session", agent: "Agent | TeamTool", as_json: bool, **options: Any) -> bool:
    from handrail.agent.replay import what_if_sync

    found = what_if_sync(session, agent, **options)
    if as_json:
        fields = {"comparisons": found.comparisons, "divergence": found.divergence, "others": found.others}
        say_json({"ok": found.same, "answers": found.answers, **fields, "notes": found.notes})
    else:
        say(str(found))
    return found.same


def _changes(agent: "Agent | TeamTool", filters: Any, instructions: Any) -> dict[str, Any]:
    """Filters by edge, and instructions by agent, from how they are typed. Raises `UnfitInput`."""
    from handrail.agent.replay.reruns import graph_of
    from handrail.filters import parse

    made: dict[str, Any] = {}
    for each in filters:
        edge, equals, expression = each.partition("=")
        if not equals or "->" not in edge:
            raise UnfitInput(f"--filter is an edge and a filter, as triage->billing=last_n(3), not {each!r}")
        made[edge] = parse(expression)
    words: dict[str, str] = {}
    agents = graph_of(agent, ()).agents if instructions else {}
    for each in instructions:
        name, equals, text = each.partition("=")
        named = bool(equals) and name in agents
        words[name if named else agent.name] = text if named else each
    return {"filters": made, "instructions": words}


def _place(at: str | None) -> int | str | None:
    return int(at) if at is not None and at.isdecimal() else at
