"""Where the keys of a TOML text stand: the line of each table and each key, for whoever has to name a mistake."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Names of keys, and places in lists of tables (from 0), from the top down."""

_SAID = re.compile(r"\(?at line (\d+), column \d+\)?|\(at end of document\)")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL)


class Lines:
    """The lines of a TOML text, counted from 1. The text is one that `tomllib` reads."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        table: Path = ()
        counts: dict[Path, int] = {}
        for line, statement in _statements(text):
            if statement.startswith("["):
                table = self._table(statement, line, counts)
            else:
                for path in _prefixes(_key(statement)):
                    self._lines.setdefault((*table, *path), line)

    def at(self, *path: str | int) -> int:
        """The line where this key or table stands, or the one that holds it; 1 where nothing does."""
        while path:
            if (line := self._lines.get(path)) is not None:
                return line
            path = path[:-1]
        return 1

    def _table(self, statement: str, line: int, counts: dict[Path, int]) -> Path:
        several = statement.startswith("[[")
        names = _key(statement.strip().strip("[]"))
        table: Path = ()
        for name in names:
            if table in counts:
                table = (*table, counts[table])
            table = (*table, name)
            if len(names) > 1:
                self._lines.setdefault(table, line)
        if several:
            counts[table] = counts.get(table, -1) + 1
            self._lines.setdefault(table, line)
            table = (*table, counts[table])
        self._lines[table] = line
        return table


def mistake(text: str, error: ValueError) -> tuple[int, str]:
    """The line and the words of an error of `tomllib`, which says where only in words."""
    said = str(error)
    found = _SAID.search(said)
    line = int(found[1]) if found is not None and found[1] else text.rstrip().count("\n") + 1
    problem = _SAID.sub("", said).strip()
    return line, problem[:1].lower() + problem[1:]


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each header, and of each key up to its value, without strings and comments in values."""
    line = 1
    place = 0
    while place < len(text):
        start, began = place, line
        depth = 0
        head: list[str] = []
        whole = False
        while place < len(text) and not (text[place] == "\n" and depth == 0):
            sign = text[place]
            if sign == "#":
                end = text.find("\n", place)
                place = len(text) if end < 0 else end
                continue
            string = _STRING.match(text, place) if sign in "\"'" else None
            piece = string[0] if string is not None else sign
            if string is None and sign in "[]{}" and whole:
                depth += 1 if sign in "[{" else -1
            if not whole and sign == "=":
                whole = True
            elif not whole:
                head.append(piece)
            line += piece.count("\n")
            place += len(piece)
        statement = "".join(head).strip()
        if statement:
            yield began, statement
        if place < len(text):
            line += 1
            place += 1
        if place == start:
            return


def _key(written: str) -> tuple[str, ...]:
    try:
        read: Any = tomllib.loads(f"{written} = 0")
    except tomllib.TOMLDecodeError:
        return (written,)
    names: list[str] = []
    while isinstance(read, dict):
        name, read = next(iter(read.items()))
        names.append(name)
    return tuple(names)


def _prefixes(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (names[:end] for end in range(1, len(names) + 1))
