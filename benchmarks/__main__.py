"""Measures the rows that were asked for, or all, and prints what each one found when it is through."""

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from benchmarks.paces import pace
from benchmarks.rows import Result, Scale, all_rows
from benchmarks.tables import as_json, heading, line


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks", description="What Handrail costs, beside floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to measure; all without any")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and sessions of 100,000 messages at most")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON list")
    parser.add_argument("--list", action="store_true", help="print the names of the rows and stop")
    return parser.parse_args()


def main() -> int:
    given, rows = arguments(), all_rows()
    if given.list:
        print("\n".join(rows))
        return 0
    if unknown := [name for name in given.names if name not in rows]:
        print(f"no row is called {unknown[0]!r}; there are: {', '.join(rows)}", file=sys.stderr)
        return 2
    found: list[tuple[str, Result, float]] = []
    if not given.json:
        print(heading(), flush=True)
    before = pace()
    try:
        for name in given.names or rows:
            results = list(rows[name](Scale(given.quick)))
            after = pace()
            now, before = min(before, after), after
            found += [(name, result, now) for result in results]
            if not given.json:
                for result in results:
                    print(line(result, now), flush=True)
    finally:
        # A row that fails, or Ctrl-C, takes nothing of what was measured before.
        if given.json:
            print(json.dumps([as_json(*each) for each in found], ensure_ascii=False, indent=2))
    tell_pace([now for _, _, now in found])
    warn_of_load()
    return 0 if all(result.ok(now) for _, result, now in found) else 1


def tell_pace(paces: Sequence[float]) -> None:
    """Says how the machine compares with the one that the limits were set on."""
    if paces:
        told = f"the floors took {min(paces):.2f} to {max(paces):.2f} times as long as where the limits were set"
        print(f"{told}: figures in µs and ms are judged after that is taken out", file=sys.stderr)


def warn_of_load() -> None:
    """Says so where others kept the machine busy: ratios bear that, times do not."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    if load > cores:
        print(f"the machine was busy (load {load:.1f} on {cores} cores): times are too high", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
