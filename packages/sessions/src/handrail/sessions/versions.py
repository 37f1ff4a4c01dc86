"""Versions of the format: today's as a JSON Schema, and older ones read as today's, one step a version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

from handrail.sessions.codec import decode_sound, mended
from handrail.sessions.records import VERSION, AnyRecord

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""From a line's object, without `prev` and `batch`, to that of the next version. A step knows of no other line; it
sees numbers with a fraction as `Decimal`, leaves kinds and fields that it does not know as they are, and raises
`ValueError` for what no line of its version holds."""

_CHAIN = ("prev", "batch")
_steps: dict[int, Step] = {}
_parse = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
_write = msgspec.json.Encoder(decimal_format="number").encode


def register_migration(version: int, step: Step) -> Callable[[], None]:
    """Registers the step from this version to the next, and gives what takes it back out. Raises `ValueError` for a
    version that is not older than today's, or that another step has."""
    if not 0 <= version < VERSION:
        raise ValueError(f"a migration leads from a version before {VERSION}, not from {version}")
    if _steps.setdefault(version, step) is not step:
        raise ValueError(f"version {version} has its migration already: {_steps[version]!r}")

    def take_out() -> None:
        _steps.pop(version, None)

    return take_out


def readable_versions() -> Sequence[int]:
    """The versions that can be read here, today's first: those from which registered steps lead to it."""
    oldest = VERSION
    while oldest - 1 in _steps:
        oldest -= 1
    return range(VERSION, oldest - 1, -1)


def migrated(line: bytes, version: int) -> bytes:
    """A line of an older version as a line of today's, with the same link and place in its batch. Raises
    `ValueError`."""
    if version == VERSION:
        return line
    try:
        fields = _parse(mended(line))
        chain = {name: fields.pop(name) for name in _CHAIN if name in fields}
        for step in range(version, VERSION):
            fields = _steps[step](fields)
        if fields.get("kind") == "header":
            fields["version"] = VERSION
        return _write(chain | fields)
    except (msgspec.MsgspecError, RecursionError, TypeError, KeyError) as error:
        raise ValueError(f"it cannot be migrated from version {version}: {error}") from error


def decoder(version: int) -> Callable[[bytes], AnyRecord]:
    """What makes today's record of a line of this version; raises `ValueError` where it is none."""
    if version == VERSION:
        return decode_sound
    return lambda line: decode_sound(migrated(line, version))


def session_schema() -> dict[str, Any]:
    """The schema (2020-12) of one line of a session file: what a writer of this version writes.

    A known kind has the fields that are named and no others; any object of another kind fits. A reader takes more:
    fields that it does not know are kept.
    """
    import json
    from importlib.resources import files

    name = f"handrail-session-{VERSION}.json"
    found: dict[str, Any] = json.loads((files("handrail.sessions") / "schema" / name).read_bytes())
    return found
