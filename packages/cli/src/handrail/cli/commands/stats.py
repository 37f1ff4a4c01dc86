"""`handrail stats`: what a session file holds, counted."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.reporting import counted
from handrail.cli.screens import progress_bar, say, say_json
from handrail.cli.stores import called, session_at

if TYPE_CHECKING:
    from handrail.sessions import Reading, Tally


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A session file, or STORE#ID; - is standard input.")],
    passphrase_file: PassphraseFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count what a session holds: messages, model calls, tokens, tools and handoffs."""
    from handrail.sessions import Tally, read

    with session_at(file) as path, progress_bar(f"reading {called(file)}", path) as progress:
        reading = read(path, progress=progress, passphrase=Keys(passphrase_file).of(path))
        tally = Tally.of(reading.records())
    described = _described(called(file), reading, tally)
    if as_json:
        say_json(described)
        return
    for line in _lines(described):
        say(line)


def _described(file: str, reading: "Reading", tally: "Tally") -> dict[str, Any]:
    header = reading.header
    return {
        "file": file,
        "format": f"{header.format} {reading.version}{' (draft)' if header.draft else ''}",
        "sealed": reading.sealed,
        "encrypted": reading.encrypted,
        "torn": str(reading.torn) if reading.torn is not None else None,
        "bytes": reading.end,
        "messages": tally.messages,
        "roles": tally.roles,
        "usage": {name: getattr(tally.usage, name) for name in tally.usage.__struct_fields__},
        "handoffs": {f"{source} -> {target}": count for (source, target), count in tally.handoffs.items()},
        "tools": tally.tools,
        "errors": tally.errors,
        "records": tally.counts,
    }


def _lines(described: Mapping[str, Any]) -> Iterator[str]:
    encrypted = ", encrypted" if described["encrypted"] else ""
    yield f"{described['file']}: {described['format']}, {'sealed' if described['sealed'] else 'not sealed'}{encrypted}"
    if described["torn"]:
        yield f"  torn       {described['torn']}"
    usage = described["usage"]
    tokens = f"{usage['input_tokens']} in, {usage['output_tokens']} out"
    yield f"  messages   {described['messages']}{_counted(described['roles'])}"
    yield f"  models     {counted(usage['requests'], 'call')}, tokens {tokens}"
    yield f"  handoffs   {sum(described['handoffs'].values())}{_counted(described['handoffs'])}"
    yield f"  tools      {counted(sum(described['tools'].values()), 'call')}{_counted(described['tools'])}"
    yield f"  errors     {described['errors']} (of tools, handoffs and turns)"
    yield f"  records    {sum(described['records'].values())}{_counted(described['records'])}"


def _counted(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count}' for name, count in counts.items())})" if counts else ""
