"""Where a pattern matches in a text that grows, and from where on that is not known yet.

A pattern that `growth` can take apart says by itself from where on it may still match. Any other, and a detector that
does not say what its findings look like, is waited for: `window` characters, the longest match that it may have.

A match is followed to its end, however long it is. Text that may become one and is none yet is waited for as well; but
where the pattern sets no limit itself, not longer than `window` characters, and these then count as found. So nothing
that is looked for goes out because it is long.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from string import printable
from typing import Any, NamedTuple, Protocol, TypeAlias

from handrail.filters.detectors import Finder, Finding, Shape
from handrail.filters.errors import FilterFailed
from handrail.filters.growth import Growth, beginning, growth
from handrail.filters.redaction import SECONDS, compiled
from handrail.filters.sensitivity import Tier

_LEAST = 512
"""How long a detector's pattern without a limit is waited for at least: none of ours needs as much to be a match."""
_TO_SAY = 0.05
"""How many seconds a pattern is given to say where it may still grow."""
_CHARACTERS = 5_000
"""For how many characters a crowd remembers which patterns may begin with them."""

Match: TypeAlias = Any
"""A match of either engine, `re` or `regex`."""
Judge: TypeAlias = Callable[[Match], Finding | None]


class Pattern(Protocol):
    """What both engines have."""

    def finditer(self, text: str, start: int, end: int, /) -> Iterator[Match]:
        """The matches between two places."""
        ...

    def match(self, text: str, start: int, end: int, /) -> Match | None:
        """The match that begins at the first place."""
        ...


Engine: TypeAlias = Callable[[str], Pattern]


class Grows(NamedTuple):
    """Where a pattern may still grow: `begins` matches a character with which it may begin, `more` from there on."""

    made: Growth
    begins: Pattern
    more: Pattern


class Sought:
    """A pattern that is looked for, in any number of texts. `grows` is None where that is not known, or takes too long
    to say; `patience` is how many characters may pass until it is a match."""

    __slots__ = ("grows", "judge", "kind", "patience", "pattern", "window")

    def __init__(
        self, kind: str, pattern: Pattern, judge: Judge, grows: Grows | None, window: int, least: int = 0
    ) -> None:
        self.kind = kind
        self.pattern = pattern
        self.judge = judge
        self.grows = grows
        self.window = window
        most = grows.made.most if grows is not None else None
        self.patience = max(window, least if most is None else most)


class Lookout:
    """Looks for one pattern in one text. `found` is what it has found; all that begins before `at` is among it, and
    `taken` is where the last match ends."""

    __slots__ = ("at", "found", "patience", "sought", "taken")

    def __init__(self, sought: Sought) -> None:
        self.sought = sought
        self.found: tuple[Finding, ...] = ()
        self.at = self.taken = 0
        self.patience = sought.patience

    def look(self, text: str, known: int, ended: bool) -> None:
        """Looks at the text up to `known`; `ended` says that there will be no more.

        It goes on in steps that the text alone decides, so that it finds the same however the text was cut.
        """
        while True:
            says = self.sought.grows is not None
            end = min(known, self.at + self.patience) if says else known
            if says and end == known and not ended and self.patience > self.sought.patience:
                return  # it is a match, and a long one: to look at all of it each time would take long
            last = ended and end == known
            open = self._take(text, end if last else self._open(text, self.at, end), end, last)
            if open > self.at:
                self.at, self.patience = open, self.sought.patience
            elif end < known:
                self._lose_patience(text, end)
                continue
            if end == known:
                return

    def _open(self, text: str, start: int, end: int) -> int:
        if self.sought.grows is not None:
            _, begins, more = self.sought.grows
            try:
                for hit in begins.finditer(text, start, end):
                    place: int = hit.start()
                    if more.match(text, place, end) is not None:
                        return place
                return end
            except FilterFailed:
                # A pattern that finds its way at once may still have too many ways to look at all of them.
                self.sought.grows = None
        return max(start, end - self.sought.window)

    def _take(self, text: str, open: int, end: int, last: bool) -> int:
        for match in self.sought.pattern.finditer(text, self.at, end):
            if match.start() >= open:
                break
            if match.end() == end and not last and self.sought.grows is None:
                open = match.start()  # it may go on
                break
            if match.end() > match.start():
                finding = self.sought.judge(match)
                if finding is not None:
                    self.found += (finding,)
                self.taken = match.end()
                if open < self.taken:
                    open = end if last else self._open(text, self.taken, end)
        return open

    def _lose_patience(self, text: str, end: int) -> None:
        if self.sought.grows is None:
            return
        match = self.sought.pattern.match(text, self.at, end)
        if match is not None and match.end() > self.at:
            self.patience += self.patience // 8 + 1
        else:
            self.found += (Finding(self.sought.kind, self.at, end, "secret"),)
            self.at = self.taken = end
            self.patience = self.sought.patience


class Wait:
    """The same for a detector that does not say what its findings look like."""

    __slots__ = ("_find", "_window", "at", "found", "taken")

    def __init__(self, find: Callable[[str, int, int], Iterable[Finding]], window: int) -> None:
        self._find = find
        self._window = window
        self.found: tuple[Finding, ...] = ()
        self.at = self.taken = 0

    def look(self, text: str, known: int, ended: bool) -> None:
        """Looks at the text up to `known`; `ended` says that there will be no more."""
        sure = known if ended else max(self.at, known - self._window)
        for finding in self._find(text, self.at, known):
            if finding.start >= sure:
                break
            if finding.end == known and not ended:
                sure = finding.start  # it may go on
                break
            self.found += (finding,)
            self.taken = finding.end
            sure = max(sure, finding.end)
        self.at = max(self.at, sure)


class Crowd:
    """Many patterns, looked for at once: whether there is anything to look at more closely. `simple` compiles what
    matches one character, `engine` the rest."""

    def __init__(self, sought: Sequence[Sought], simple: Engine, engine: Engine) -> None:
        self._engine = engine
        made = [each.grows.made for each in sought if each.grows is not None]
        self._members = [(each, simple(beginning([("", inside) for _, inside in each.firsts]))) for each in made]
        self._begins = simple(beginning([first for each in made for first in each.firsts]))
        self._by_members: dict[tuple[int, ...], Pattern] = {}
        self._by_character: dict[str, Pattern] = {}
        for character in printable:
            self._ways(character)  # now, or the first text would wait for it

    def look(self, text: str, start: int, end: int) -> tuple[int, bool]:
        """The place before which nothing is open, and whether there is a match at it."""
        for hit in self._begins.finditer(text, start, end):
            place: int = hit.start()
            ways = self._by_character.get(text[place]) or self._ways(text[place])
            match = ways.match(text, place, end)
            if match is not None:
                return place, match.lastindex is None
        return end, False

    def _ways(self, character: str) -> Pattern:
        members = tuple([n for n, (_, may) in enumerate(self._members) if may.match(character, 0, 1) is not None])
        if members not in self._by_members:
            grows = [self._members[n][0] for n in members]
            more, whole = "|".join([each.more for each in grows]), "|".join([each.whole for each in grows])
            self._by_members[members] = self._engine(f"({more})|{whole}")
        if len(self._by_character) >= _CHARACTERS:
            self._by_character.clear()
        ways = self._by_character[character] = self._by_members[members]
        return ways


class Timed:
    """A pattern that is given so many seconds, by `regex`. Raises `FilterFailed` where it takes longer."""

    __slots__ = ("_pattern", "_seconds")

    def __init__(self, pattern: str, seconds: float = _TO_SAY) -> None:
        import regex  # type: ignore[import-untyped,unused-ignore]

        self._pattern = regex.compile(pattern)
        self._seconds = seconds

    def finditer(self, text: str, start: int, end: int, /) -> Iterator[Match]:
        """The matches between two places."""
        try:
            yield from self._pattern.finditer(text, start, end, timeout=self._seconds)
        except TimeoutError as error:
            raise self._too_long(end - start) from error

    def match(self, text: str, start: int, end: int, /) -> Match | None:
        """The match that begins at the first place."""
        try:
            return self._pattern.match(text, start, end, timeout=self._seconds)
        except TimeoutError as error:
            raise self._too_long(end - start) from error

    def _too_long(self, characters: int) -> FilterFailed:
        problem = f"took the pattern {self._pattern.pattern[:100]!r} too long for a text of {characters} characters"
        return FilterFailed("redact", problem)


def for_shape(kind: str, shape: Shape, window: int) -> list[Lookout]:
    """A lookout for a shape of findings; none for a pattern that `growth` cannot take apart."""
    made = growth(shape.pattern.pattern)
    if made is None:
        return []
    grows = Grows(made, re.compile(beginning(made.firsts)), re.compile(made.more))
    return [Lookout(Sought(kind, shape.pattern, shape.judge, grows, window, _LEAST))]


def for_detector(kind: str, finder: Finder, known: Sequence[Shape], window: int) -> "Sequence[Lookout | Wait]":
    """The lookouts for a detector, as `detectors.shapes` gives it."""
    made = [each for shape in known for each in for_shape(kind, shape, window)]
    return made if made and len(made) == len(known) else [_for_finder(finder, window)]


def _for_finder(finder: Finder, window: int) -> Wait:
    def find(text: str, start: int, end: int) -> Iterable[Finding]:
        found = [finding for finding in finder(text[:end]) if finding.start >= start]
        return sorted(found, key=lambda each: (each.start, each.end))

    return Wait(find, window)


def for_pattern(pattern: str, tier: Tier | None, window: int) -> Lookout:
    """A lookout for a pattern of somebody's own. Raises `InvalidFilter` for one that is no regular expression."""
    import regex

    compiled(pattern)
    made, grows = growth(pattern), None
    if made is not None:
        # One that is too much for the engine is waited for.
        with suppress(regex.error, RecursionError, OverflowError):
            grows = Grows(made, regex.compile(beginning(made.firsts)), Timed(made.more))

    def judge(match: Match) -> Finding:
        return Finding("", match.start(), match.end(), tier or "secret")

    return Lookout(Sought("", Timed(pattern, SECONDS), judge, grows, window))


def crowd_of_patterns(sought: Sequence[Sought]) -> Crowd:
    """The crowd of patterns of somebody's own."""
    import regex

    return Crowd(sought, regex.compile, Timed)
