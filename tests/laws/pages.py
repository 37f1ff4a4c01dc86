"""The tables of fields in the page about the format, as values that a test can hold a line against."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \| .+ \|$")
_HEADING = re.compile(r"^#+ (\w+)$")
_LINK = re.compile(r"\[(\w+)\]\(#(\w+)\)")
_PLAIN = {"string": str, "base64": str, "boolean": bool, "object": dict, "null": type(None)}
Place = tuple[str, ...]


class Field(NamedTuple):
    """A row of a table: what its type column says, and whether the field is required."""

    type: str
    required: bool


class Page:
    """The page: by heading in small letters, the fields of the table that stands under it."""

    def __init__(self, path: Path) -> None:
        self.tables: dict[str, dict[str, Field]] = {}
        heading = ""
        for line in path.read_text().splitlines():
            if found := _HEADING.match(line):
                heading = found[1].lower()
            elif heading and (row := _ROW.match(line)):
                self.tables.setdefault(heading, {})[row[1]] = Field(row[2], row[3] == "required")

    def misfits(self, heading: str, value: dict[str, Any], beside: frozenset[str]) -> Iterator[str]:
        """What of a JSON object is not as the table under a heading says; `beside` are fields of any object there."""
        table = self.tables[heading]
        for name in value.keys() - table.keys() - beside:
            yield f"{heading}: no row for {name}"
        for name, field in table.items():
            if name in value and not self._fits(value[name], field.type):
                yield f"{heading}: {name} is no {field.type} but {value[name]!r}"
            if field.required and name not in value:
                yield f"{heading}: {name} is missing"

    def _fits(self, value: Any, said: str) -> bool:
        if said.startswith("list of "):
            return isinstance(value, list) and all(self._fits(item, said.removeprefix("list of ")) for item in value)
        if said.startswith("map of "):
            return isinstance(value, dict) and all(
                self._fits(each, said.removeprefix("map of ")) for each in value.values()
            )
        return any(self._fits_one(value, each) for each in said.split(" or "))

    def _fits_one(self, value: Any, said: str) -> bool:
        if link := _LINK.fullmatch(said):
            return isinstance(value, dict) and not list(self._within(link[2], value))
        if said.startswith("["):
            kinds = said[1:-1].split(", ")
            pairs = zip(value, kinds, strict=True) if isinstance(value, list) and len(value) == len(kinds) else ()
            return bool(pairs) and all(self._fits(item, kind) for item, kind in pairs)
        if said == "integer":
            return type(value) is int
        if said[0] in '"0123456789':
            return str(value) == said.strip('"')
        return isinstance(value, _PLAIN[said])

    def _within(self, heading: str, value: dict[str, Any]) -> Iterator[str]:
        if heading == "parts":
            yield from self.misfits(value["kind"].replace("_", ""), value, frozenset({"kind"}))
        else:
            yield from self.misfits(heading, value, frozenset())
