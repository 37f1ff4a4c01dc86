"""The command `handrail`, as the console script and `python -m handrail.cli` start it."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code, as `perform` says."""
    try:
        # It takes some tenths of a second to load, in which somebody may press Ctrl-C.
        from handrail.cli.performing import perform
    except KeyboardInterrupt:
        print("handrail: interrupted", file=sys.stderr)
        return 130
    return perform(arguments)
