"""A text that arrives in pieces, redacted as it comes: what comes out, joined, is what redaction of the whole gives.

Text goes out when nothing that may follow can change what becomes of it. What could still become a match stays, until
it is one or cannot be one any more; `lookouts` says how that is known.
"""

import re
from collections.abc import Sequence
from copy import copy
from time import perf_counter

from handrail.filters.detectors import Finding, Shape, merged, shapes, without_tokens
from handrail.filters.errors import FilterFailed
from handrail.filters.lookouts import Crowd, Lookout, Wait, crowd_of_patterns, for_detector, for_pattern, for_shape
from handrail.filters.redaction import SECONDS, Redactor
from handrail.filters.sensitivity import TOKEN

_TRIM = 1024
_KEPT = 512
"""How many characters before what is looked at stay at least, to be looked back at."""
_EACH = 1e-4
"""Seconds that patterns may take for a character, beside what all of them have; the usual is a hundredth of it."""


class Arrivals:
    """What a redactor looks for, made ready once for any number of texts.

    `window` is how many characters are waited for where a pattern does not say by itself whether it may still match.
    Raises `InvalidFilter` for what is no regular expression, and `KeyError` for a detector that is not registered.

    >>> text = Arrivals(Redactor(detect=("email",)), 512).begin()
    >>> [text.add(piece) for piece in ("Write to ann", "@exam", "ple.org", " today")], text.flush()
    (['Write to ', '', '', '[REDACTED:internal:email] '], 'today')
    """

    def __init__(self, redactor: Redactor, window: int) -> None:
        self.redactor = redactor
        self.window = window
        self.slice = max(window // 2, 1)
        self.kept = max(window, _KEPT)
        [self.token] = for_shape("", Shape(TOKEN, lambda match: Finding("", *match.span(), "secret"), bool), _KEPT)
        self.tokens = Crowd([self.token.sought], re.compile, re.compile)
        self.detect = [each for found in shapes(redactor.detect) for each in for_detector(*found, window)]
        self.patterns = [for_pattern(pattern, redactor.tier, window) for pattern in redactor.patterns]
        detect = [each.sought for each in self.detect if isinstance(each, Lookout)]
        patterns = [each.sought for each in self.patterns if each.sought.grows is not None]
        self.crowds = [Crowd(detect, re.compile, re.compile)] if detect else []
        self.crowds += [crowd_of_patterns(patterns)] if patterns else []
        self.waits = len(detect) < len(self.detect) or len(patterns) < len(self.patterns)
        """Whether there is anything that does not say by itself where it may still grow."""

    def begin(self) -> "Arrival":
        """A text of which nothing has come yet."""
        return Arrival(self)

    def whole(self, text: str) -> str:
        """A text that has come at once, redacted."""
        arrival = self.begin()
        return arrival.add(text) + arrival.flush()


class Arrival:
    """One text as it comes. Raises `FilterFailed` where the patterns take too long."""

    __slots__ = ("_at", "_busy", "_detect", "_length", "_out", "_patterns", "_plan", "_spent", "_text", "_token")

    def __init__(self, plan: Arrivals) -> None:
        self._plan = plan
        self._text = ""
        self._out = self._at = self._length = 0
        self._spent = 0.0
        self._busy = False
        self._token = plan.token
        self._detect: tuple[Lookout | Wait, ...] = ()
        self._patterns: tuple[Lookout, ...] = ()

    def add(self, piece: str) -> str:
        """Takes a piece, and gives what can go out."""
        size = self._plan.slice
        if len(piece) <= size:
            return self._add(piece)
        return "".join([self._add(piece[start : start + size]) for start in range(0, len(piece), size)])

    def flush(self) -> str:
        """What has not gone out yet, as if the text ended here. If more comes, what has gone out is still looked at
        with it, and what turns out to belong to a match does not follow it."""
        if self._out == len(self._text):
            return ""
        ended = copy(self)
        if self._busy:
            ended._copy(self._token, self._detect, self._patterns)
        else:
            ended._begin()
        said = ended._closely(ended=True)
        self._out = len(self._text)
        return said

    def _add(self, piece: str) -> str:
        self._text += piece
        if not self._plan.patterns:
            return self._said()
        started = perf_counter()
        said = self._said()
        self._length += len(piece)
        self._spent += min(perf_counter() - started, SECONDS)
        if self._spent > 2 * SECONDS + self._length * _EACH:
            raise FilterFailed("redact", f"took its patterns too long for a text of {self._length} characters")
        return said

    def _said(self) -> str:
        if not self._busy and not self._plan.waits and len(self._text) - self._at <= self._plan.window:
            open = self._open()
            if open is not None:
                out, self._at, self._out = self._out, open, max(self._out, open)
                said = self._text[out:open]
                if open > _TRIM + self._plan.kept:
                    self._trim()
                return said
        if not self._busy:
            self._begin()
        return self._closely(ended=False)

    def _open(self) -> int | None:
        """Where the text begins that may still become a match; None where one has to look more closely."""
        text, at = self._text, self._at
        open, found = len(text), False
        if text.find("[", at) >= 0:
            open, found = self._plan.tokens.look(text, at, open)
        try:
            for crowd in self._plan.crowds:
                if not found:
                    open, found = crowd.look(text, at, open)
        except (FilterFailed, RecursionError):
            self._plan.waits = True
            return None
        return None if found else open

    def _begin(self) -> None:
        self._busy = True
        self._copy(self._plan.token, self._plan.detect, self._plan.patterns)
        for each in (self._token, *self._detect, *self._patterns):
            each.at = self._at

    def _copy(self, token: Lookout, detect: Sequence[Lookout | Wait], patterns: Sequence[Lookout]) -> None:
        self._token = copy(token)
        self._detect = tuple([copy(each) for each in detect])
        self._patterns = tuple([copy(each) for each in patterns])

    def _closely(self, *, ended: bool) -> str:
        """What each lookout finds, put together, as far as all of them know."""
        text = self._text
        self._token.look(text, len(text), ended)
        # A token that has only begun could turn out to be words, and words of a token are not looked at as such.
        known = len(text) if ended else self._token.at
        seen = without_tokens(text)
        for each in self._detect:
            each.look(seen, known, ended)
        for each in self._patterns:
            each.look(text, known, ended)
        lookouts = (self._token, *self._detect, *self._patterns)
        detected = merged(text, [finding for each in self._detect for finding in each.found])
        found = merged(text, [*detected, *[finding for each in self._patterns for finding in each.found]])
        limit = min([known, *[each.at for each in lookouts]])
        stretches = [(each.start, each.end) for each in (*found, *self._token.found)]
        while inside := [start for start, end in stretches if start < limit < end]:
            limit = min(inside)
        said = self._redacted(found, limit)
        for each in lookouts:
            each.found = tuple([finding for finding in each.found if finding.end > limit])
        self._at, self._out = limit, max(self._out, limit)
        waiting = any([each.found or each.taken > limit for each in lookouts])
        self._busy = waiting or self._plan.waits or len(text) - limit > self._plan.window
        if limit > _TRIM + self._plan.kept:
            self._trim()
        return said

    def _redacted(self, found: list[Finding], limit: int) -> str:
        """What stands between what has gone out and the limit."""
        out = self._out
        if limit <= out:
            return ""
        here = [
            Finding(each.kind, max(each.start, out) - out, each.end - out, each.tier)
            for each in found
            if each.end > out and each.start < limit
        ]
        return self._plan.redactor.replaced(self._text[out:limit], here)

    def _trim(self) -> None:
        cut = min(self._at, self._out) - self._plan.kept
        # At a space, so that a detector that sees only what is left sees no half of a word.
        cut = max(self._text.rfind(" ", 0, cut), cut - _KEPT)
        self._text = self._text[cut:]
        self._at -= cut
        self._out -= cut
        if self._busy:
            for each in (self._token, *self._detect, *self._patterns):
                each.at, each.taken = max(each.at - cut, 0), max(each.taken - cut, 0)
                each.found = tuple([Finding(f.kind, f.start - cut, f.end - cut, f.tier) for f in each.found])
