"""Redaction: what patterns and detectors find in a message, replaced by tokens wherever it stands."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from handrail.filters.detectors import Finding, detectors, find, find_by_key, merged, replaced
from handrail.filters.errors import FilterFailed, FilterNotRunnable, InvalidFilter
from handrail.filters.messages import Message, Part, Text
from handrail.filters.sensitivity import Tier
from handrail.filters.strings import rewrite_part

SECONDS = 1.0
"""How long one pattern may look through one text, and a second more for each million characters."""

LONGEST_PATTERN = 10_000
"""How many characters a pattern may have."""


@lru_cache(256)
def compiled(pattern: str) -> Any:
    """The pattern, compiled. Raises `InvalidFilter` for one that is no regular expression, or finds the empty text."""
    import regex  # type: ignore[import-untyped,unused-ignore]

    try:
        made = regex.compile(pattern) if len(pattern) <= LONGEST_PATTERN else None
    except (regex.error, RecursionError, OverflowError) as error:
        raise InvalidFilter(f"the pattern {pattern[:100]!r} is no regular expression: {error}") from error
    if made is None:
        raise InvalidFilter(f"a pattern has at most {LONGEST_PATTERN} characters, not {len(pattern)}")
    if made.fullmatch("") is not None:
        raise InvalidFilter(f"the pattern {pattern[:100]!r} finds the empty text, which is everywhere")
    return made


def check(patterns: object, detect: object) -> None:
    """Raises `InvalidFilter` where these are not patterns and names of detectors."""
    for name, values in (("patterns", patterns), ("detect", detect)):
        if not isinstance(values, tuple) or not all([isinstance(value, str) and value for value in values]):
            raise InvalidFilter(f"{name} are texts that are not empty, not {values!r}")
    if isinstance(patterns, tuple):
        for pattern in patterns:
            compiled(pattern)


class Redactor(msgspec.Struct, frozen=True):
    """What to look for, and what to write in its place: `instead`, or where that is None a token, whose `kind` and
    `tier` are those of the finding where None."""

    patterns: tuple[str, ...] = ()
    detect: tuple[str, ...] = ()
    kind: str | None = None
    tier: Tier | None = None
    instead: str | None = None

    def message(self, message: Message) -> Message:
        """The message, redacted; the same object where nothing is found."""
        parts = [self.part(part) for part in message.content]
        if all([new is old for new, old in zip(parts, message.content, strict=True)]):
            return message
        return msgspec.structs.replace(message, content=tuple(parts))

    def part(self, part: Part) -> Part:
        """The part, redacted; the same object where nothing is found."""
        if type(part) is Text and part.extra is None and part.text[:1] not in "{[ \t\r\n":
            text = self.text(part.text, "")
            return part if text == part.text else msgspec.structs.replace(part, text=text)
        return rewrite_part(part, self.text, self.across)

    def text(self, text: str, key: str) -> str:
        """One text, redacted; `key` is the JSON key that it stands under."""
        found = find_by_key(key, text, self.detect) or [*find(text, self.detect), *self._matches(text)]
        if not found:
            return text
        return self.replaced(text, merged(text, found))

    def replaced(self, text: str, findings: Sequence[Finding]) -> str:
        """The text with what was found in it replaced."""
        if self.instead is None:
            return replaced(text, findings, self.kind, self.tier)
        said: list[str] = []
        place = 0
        for found in findings:
            said += (text[place : found.start], self.instead)
            place = found.end
        return "".join([*said, text[place:]])

    def across(self, text: str) -> list[tuple[int, int]]:
        """Where the patterns match in a JSON text as it is written."""
        return [(found.start, found.end) for found in merged("", self._matches(text))]

    def _matches(self, text: str) -> list[Finding]:
        found: list[Finding] = []
        for pattern in self.patterns:
            try:
                for match in compiled(pattern).finditer(text, timeout=SECONDS + len(text) / 1e6):
                    if match.end() > match.start():
                        found.append(Finding("", match.start(), match.end(), self.tier or "secret"))
            except TimeoutError as error:
                problem = f"took the pattern {pattern[:100]!r} too long for a text of {len(text)} characters"
                raise FilterFailed("redact", problem) from error
        return found


def require(descriptor: dict[str, Any], names: Sequence[str]) -> None:
    """Raises `FilterNotRunnable` where one of these detectors is not registered."""
    known = detectors()
    missing = [name for name in names if name not in known]
    if missing:
        raise FilterNotRunnable(descriptor, f"the detector {missing[0]!r} is not registered", known)
