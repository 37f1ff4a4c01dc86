"""Finding a value in a text however it is written there, and putting `***` in its place; in linear time."""

import re
from bisect import bisect_right
from typing import NamedTuple

# Shorter values are words such as `true`, which errors may well hold.
TELLING = 6
MARK = "***"

# What a value may be wrapped with, and how its signs may be escaped, in JSON and in URLs.
_WRITTEN = re.compile(r"\s+|\\[nrt]|(?:\\u00|%)([0-9a-f]{2})|\\(?=[^\w\s])", re.IGNORECASE)
# What may stand after a value that was cut off.
_CUT = ".…\"'`)]}"


class _Stretch(NamedTuple):
    """Signs that are read one after the other: where they stand in what is read, and in the text; how wide the text
    of each is."""

    read: int
    written: int
    width: int


class _Reading:
    """A text without its spaces and its escapes, and where each sign of that stands in the text."""

    def __init__(self, text: str) -> None:
        said: list[str] = []
        self.stretches: list[_Stretch] = []
        length = place = 0
        for found in [*_WRITTEN.finditer(text), None]:
            start = len(text) if found is None else found.start()
            if start > place:
                self.stretches.append(_Stretch(length, place, 1))
                said.append(text[place:start])
                length += start - place
            if found is None:
                break
            place = found.end()
            if found[1] and not (sign := chr(int(found[1], 16))).isspace():
                self.stretches.append(_Stretch(length, start, place - start))
                said.append(sign)
                length += 1
        self.text = "".join(said)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the text the signs from `start` to before `end` are written."""
        first, last = self._at(start), self._at(end - 1)
        return first.written + start - first.read, last.written + end - 1 - last.read + last.width

    def _at(self, place: int) -> _Stretch:
        return self.stretches[bisect_right(self.stretches, (place, len(self.text) * 6, 6)) - 1]


def hide(text: str, value: str) -> str:
    """The text with `***` wherever the value stands, and for as much of its beginning as is left at the text's end."""
    text = text.replace(value, MARK)
    sought = _Reading(value).text
    if len(sought) < TELLING:
        return text
    reading = _Reading(text)
    hidden: list[str] = []
    place = 0
    for start, end in [*_found(reading.text, sought), *_beginning(reading.text, sought)]:
        first, last = reading.span(start, end)
        hidden += (text[place:first], MARK)
        place = last
    return "".join([*hidden, text[place:]])


def _found(text: str, sought: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = text.find(sought)
    while start >= 0:
        spans.append((start, start + len(sought)))
        start = text.find(sought, start + len(sought))
    return spans


def _beginning(text: str, sought: str) -> list[tuple[int, int]]:
    said = text.rstrip(_CUT)
    # The whole of it, where it ends the text, was found as such.
    for length in range(min(len(sought) - 1, len(said)), TELLING - 1, -1):
        if said.endswith(sought[:length]):
            return [] if said.endswith(sought) else [(len(said) - length, len(said))]
    return []
