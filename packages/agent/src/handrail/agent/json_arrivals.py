"""A text that arrives in pieces, redacted as it comes; an answer in JSON is redacted as what it says, once it is whole.

Where the JSON of an answer is to be found is said by `read_json`: it is the whole text, or stands in the first code
fence that is plain or `json`.
"""

import re
from collections.abc import Callable

from handrail.filters.arrivals import Arrivals
from handrail.filters.patterns import lazy
from handrail.filters.redaction import Redactor
from handrail.filters.strings import rewrite_json

_SPACE = lazy(r"[\s\ufeff]*")
_LANGUAGE = lazy(r"[\w+#-]*")
_QUOTE = lazy(r'["\\]')
_SIGN = lazy(r'["{}\[\]]|[^\s0-9+\-.:,truefalsnE]')
"""What means something outside of strings, or stands there in no JSON."""


class JsonArrival:
    """One text as it comes. Raises as `Arrival` does."""

    __slots__ = (
        *("_after", "_depth", "_escaped", "_fence", "_held", "_in_string", "_language", "_out", "_state", "_ticks"),
        *("_watch", "_words"),
    )

    def __init__(self, watch: Arrivals) -> None:
        self._watch = watch
        self._words = watch.begin()
        self._out: list[str] = []
        self._held: list[str] = []
        self._after: list[str] = []
        self._state: Callable[[str, int], int] = self._blank
        self._fence = True
        """Whether a fence may still come that counts."""
        self._language = ""
        self._ticks = self._depth = 0
        self._in_string = self._escaped = False

    def add(self, piece: str) -> str:
        """Takes a piece, and gives what can go out."""
        self._take(piece)
        return self._said()

    def flush(self) -> str:
        """What has not gone out yet, as if the text ended here."""
        while self._held:
            if self._after and self._ticks == 0:
                self._accept()
            else:
                self._release()
        self._out.append(self._words.flush())
        return self._said()

    def _said(self) -> str:
        said = "".join(self._out)
        self._out.clear()
        return said

    def _take(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self._state(text, at)

    def _give(self, text: str) -> None:
        self._out.append(self._words.add(text))

    def _plain(self, text: str, at: int) -> int:
        """Words: up to three backticks, where a fence may still count."""
        if not self._fence:
            self._give(text[at:])
            return len(text)
        if self._ticks == 0:
            tick = text.find("`", at)
            if tick < 0:
                tick = len(text)
            self._give(text[at:tick])
            at = tick
        while at < len(text) and text[at] == "`" and self._ticks < 3:
            self._ticks += 1
            self._give("`")
            at += 1
        if self._ticks == 3:
            # The second fence closes one of another language.
            self._state = self._plain if self._language else self._opened
            self._ticks, self._language = 0, ""
        elif at < len(text):
            self._ticks = 0
        return at

    def _opened(self, text: str, at: int) -> int:
        """The language of a fence."""
        end = _end(_LANGUAGE, text, at)
        self._language = (self._language + text[at:end])[:5]
        self._give(text[at:end])
        if end < len(text):
            counts = self._language.lower() in ("", "json")
            self._state = self._blank if counts else self._plain
            if counts:
                self._fence, self._language = False, ""
        return end

    def _blank(self, text: str, at: int) -> int:
        """The space before what may be JSON."""
        end = _end(_SPACE, text, at)
        self._give(text[at:end])
        if end < len(text):
            self._state = self._json if text[end] in '{["' else self._plain
        return end

    def _json(self, text: str, at: int) -> int:
        """What may be JSON, up to the end of its value."""
        start = at
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_QUOTE if self._in_string else _SIGN).search(text, at)
            if found is None:
                at = len(text)
                break
            at, sign = found.end(), found[0]
            if sign == "\\" and self._in_string:
                self._escaped = True
            elif sign == '"':
                self._in_string = not self._in_string
            elif sign in "{[":
                self._depth += 1
            elif sign in "}]":
                self._depth -= 1
            else:
                self._held.append(text[start:at])
                self._release()
                return at
            if self._depth <= 0 and not self._in_string:
                self._state, self._after = self._ended, [""]
                break
        self._held.append(text[start:at])
        return at

    def _ended(self, text: str, at: int) -> int:
        """What comes after the value: nothing but space and the end of the text or fence, or it was not all."""
        end = at if self._ticks else _end(_SPACE, text, at)
        # Only in a fence does a fence end it; after a text that began as JSON one may begin.
        while not self._fence and end < len(text) and text[end] == "`" and self._ticks < 3:
            self._ticks += 1
            end += 1
        self._after.append(text[at:end])
        if self._ticks == 3:
            self._accept()
        elif end < len(text):
            self._release()
        return end

    def _accept(self) -> None:
        value, after = "".join(self._held), "".join(self._after)
        self._out += (self._words.flush(), redacted_json(value, self._watch.redactor))
        self._words = self._watch.begin()
        self._fence = False
        self._forget()
        self._give(after)

    def _release(self) -> None:
        """It is no JSON, so it is words, in which a fence may begin."""
        words = "".join([*self._held, *self._after])
        self._forget()
        self._take(words)

    def _forget(self) -> None:
        self._held, self._after = [], []
        self._state = self._plain
        self._ticks = self._depth = 0
        self._in_string = self._escaped = False


def _end(run: "re.Pattern[str]", text: str, at: int) -> int:
    """Where a run of characters ends that begins here, and may have none."""
    found = run.match(text, at)
    return found.end() if found is not None else at


def redacted_json(text: str, redactor: Redactor, *, keys: bool = True) -> str:
    """A JSON text redacted as what it says; without `keys` the keys of its own objects stay."""
    return rewrite_json(text, redactor.text, redactor.across, keys=keys) if text else text
