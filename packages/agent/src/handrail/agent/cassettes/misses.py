"""What is said of a request that was not recorded, and of recordings that nobody asked for."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handrail.agent.cassettes.tapes import Recording
from handrail.agent.errors import NotRecorded
from handrail.sessions.changes import json_changes
from handrail.sessions.difference_lines import change_lines
from handrail.sessions.differences import Change

_NEARBY = 200
"""Recordings that are looked at for the one that is most like a request."""
_SHOWN = 12
_HINT = "the mode all records everything anew, new what is missing"


class Ask(msgspec.Struct, frozen=True):
    """A request as a cassette keeps it."""

    path: str
    told: dict[str, Any]
    digest: str


def not_recorded(
    path: Path, number: int, ask: Ask, recorded: Sequence[Recording], waiting: Sequence[int]
) -> NotRecorded:
    """The error for a request (its number from 0), with what tells it from the recording that is most like it.

    `waiting` are the places of the recordings that were not asked for yet.
    """
    said = f" has no answer to request {number + 1}, of {ask.path or 'a model'}: {summed_up(ask.told)}"
    if not recorded:
        return NotRecorded(str(path), f"{said}; it holds none ({_HINT})")
    if same := [place for place, each in enumerate(recorded) if each.digest == ask.digest]:
        times = f"recorded {len(same)} time{'s' * (len(same) > 1)}, and is asked once more"
        return NotRecorded(str(path), f"{said}; it was {times} ({_HINT})", same[-1] + 1)
    place, changes = min(_distances(ask, recorded, waiting), key=lambda found: len(found[1]))
    lines = change_lines(changes)
    shown = [*lines[:_SHOWN], *[f"… {len(lines) - _SHOWN} more fields"] * (len(lines) > _SHOWN)]
    told = "".join([f"\n  {line}" for line in shown])
    nearest = f"recording {place + 1} is most like it, and differs in (recorded → asked)"
    return NotRecorded(str(path), f"{said} ({_HINT}); {nearest}{told}", place + 1, lines)


def _distances(ask: Ask, recorded: Sequence[Recording], waiting: Sequence[int]) -> Iterator[tuple[int, list[Change]]]:
    # A recording that still waits for its request is likelier to be meant than one that was asked for.
    awaited = set(waiting)
    order = [*waiting, *[place for place in range(len(recorded)) if place not in awaited]]
    for place in order[:_NEARBY]:
        yield place, list(json_changes(recorded[place].request, ask.told))


def not_asked_for(unused: Sequence[Recording], count: int) -> str:
    """What is said of recordings that nobody asked for, of so many."""
    lines = [f"\n  {each.path or 'a model'}: {summed_up(each.request)}" for each in unused[:_SHOWN]]
    more = [f"\n  … {len(unused) - _SHOWN} more"] * (len(unused) > _SHOWN)
    told = "".join([*lines, *more])
    return f": {len(unused)} of {count} recordings were not asked for; the mode all records everything anew{told}"


def summed_up(told: dict[str, Any]) -> str:
    """A request in a few words."""
    messages: list[dict[str, Any]] = told.get("messages", [])
    content = messages[-1]["content"] if messages else []
    words = " ".join([str(part.get("text", part.get("name", part["kind"]))) for part in content])
    line = " ".join(words.split())
    shown = line if len(line) <= 80 else f"{line[:79]}…"
    return f"{told['model']} asked about {len(messages)} message{'s' * (len(messages) != 1)}, the last {shown!r}"
