"""`handrail audit`: whether anything crossed in past sessions that a policy does not let across."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.audits import Audit, audit, sessions_in
from handrail.cli.exits import FAILED, MISUSED, OK
from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import aside, bar_of, say, say_json, say_table, shortened

if TYPE_CHECKING:
    from handrail.cli.audits import Breach

_SHOWN = 1000
_COLUMNS = ("session", "handoff", "step", "crossing", "rule", "message", "why")


def command(
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|FILE...", help="Session files, STORE#ID, or folders of *.jsonl; - is standard input."
        ),
    ],
    policy: Annotated[str, typer.Option("--policy", metavar="FILE", help="The policy, a TOML file.")],
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a session.")] = False,
) -> None:
    """Check past sessions against a policy: exit code 1 when something crossed that may not."""
    from handrail.filters import Policy

    import_modules(modules)
    held, keys = Policy.load(policy), Keys(passphrase_file)
    rows: list[Breach] = []
    total = _Total()
    with sessions_in(places) as found, bar_of("auditing", found.size) as progress:
        for session in found.sessions:
            audited = audit(session, held, keys, _from(progress, total.size))
            total.take(audited, session.size)
            if as_json:
                say_json(_described(audited))
            else:
                rows += audited.breaches[: _SHOWN - len(rows)]
            if audited.problem:
                aside(f"handrail: {audited.problem}")
    if not as_json:
        _tell(total, rows, found.passed_over)
    raise typer.Exit(total.code)


def _from(progress: Any, start: int) -> Any:
    return None if progress is None else lambda done: progress(start + done)


class _Total:
    """What all sessions come to."""

    def __init__(self) -> None:
        self.sessions = self.messages = self.boundaries = self.breaches = self.size = 0
        self.states: dict[str, int] = {}

    def take(self, audited: Audit, size: int) -> None:
        self.sessions += 1
        self.size += size
        self.messages += audited.messages
        self.boundaries += audited.boundaries
        self.breaches += audited.found
        self.states[audited.state] = self.states.get(audited.state, 0) + 1

    @property
    def code(self) -> int:
        """1 where anything crossed or is damaged, 2 where something given is no session."""
        if self.breaches or self.states.get("damaged"):
            return FAILED
        return MISUSED if self.states.get("unreadable") else OK


def _tell(total: _Total, rows: "Sequence[Breach]", passed_over: int) -> None:
    if rows:
        say_table(_COLUMNS, [_row(breach) for breach in rows])
    if total.breaches > len(rows):
        say(f"and {total.breaches - len(rows):,} more; --json lists them all")
    states = [f"{count} {state}" for state in ("damaged", "unreadable") if (count := total.states.get(state))]
    others = [f"{passed_over} other files passed over"] if passed_over else []
    head = f"{_count(total.sessions, 'session')}, {_count(total.messages, 'message')}"
    verdict = f"{_count(total.breaches, 'violation')}" if total.breaches else "nothing crossed that may not"
    say(": ".join([f"{head}, {_count(total.boundaries, 'crossing')} audited", "; ".join([verdict, *states, *others])]))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _row(breach: "Breach") -> tuple[str, ...]:
    violation = breach.violation
    part = "" if violation.part is None else f" part {violation.part}"
    crossing = f"{breach.source} → {breach.target}"
    if breach.kind != "handoff":
        crossing = f"{crossing} ({breach.kind})"
    return (
        shortened(breach.session, 200),
        str(breach.number),
        str(breach.step),
        shortened(crossing),
        f"{shortened(violation.rule, 60)} (line {violation.line})",
        f"{shortened(violation.message, 60)}{part}",
        shortened(violation.why, 200),
    )


def _described(audited: Audit) -> dict[str, Any]:
    return {
        "file": audited.session,
        "ok": audited.state == "clean",
        "state": audited.state,
        "problem": audited.problem,
        "messages": audited.messages,
        "crossings": audited.boundaries,
        "violations": [
            {
                "handoff": breach.number,
                "line": breach.line,
                "step": breach.step,
                "kind": breach.kind,
                "source": breach.source,
                "target": breach.target,
                "rule": breach.violation.rule,
                "rule_line": breach.violation.line,
                "message": breach.violation.message,
                "part": breach.violation.part,
                "why": breach.violation.why,
            }
            for breach in audited.breaches
        ],
    }
