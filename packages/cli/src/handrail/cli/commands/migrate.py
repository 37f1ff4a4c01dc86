"""`handrail migrate`: a session of an older version of the format, as a new file of today's."""

from pathlib import Path
from typing import Annotated

import typer

from handrail.cli.keys import Keys, PassphraseFile
from handrail.cli.modules import Modules, import_modules
from handrail.cli.screens import progress_bar, say, say_json
from handrail.cli.sources import new_name, place_for
from handrail.cli.stores import called, plain_name, session_at


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A session file, or STORE#ID; - is standard input.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The new file.")] = None,
    passphrase_file: PassphraseFile = None,
    modules: Modules = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say as JSON what was done.")] = False,
) -> None:
    """Write a session of an older version of the format as a new file of today's; FILE stays as it is."""
    from handrail.sessions import migrate

    import_modules(modules)
    target = place_for(out if out is not None else new_name(plain_name(file), ".migrated.jsonl"))
    with session_at(file) as path, progress_bar(f"migrating {called(file)}", path) as progress:
        done = migrate(path, target, progress=progress, passphrase=Keys(passphrase_file).of(path))
    if not as_json:
        say(f"{target}: {done}")
        return
    say_json(
        {
            "written": str(target),
            "before": done.before,
            "after": done.after,
            "records": done.records,
            "sealed": done.sealed,
            "old_head": done.old_head,
            "head": done.head,
            "torn": str(done.torn) if done.torn is not None else None,
        }
    )
