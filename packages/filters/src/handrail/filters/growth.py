"""What of a text may still become a match of a pattern, when more of the text is to come.

A search looks at one character after the other. As long as it did not want one beyond the end of what is there, no text
that follows changes what it found. `growth` makes a second pattern of a first: it matches where a search that begins
there would want more. It may match where a search would not, as it takes every way through the pattern and a search
only the first that leads to an end; it never misses one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from handrail.filters.patterns import lazy

LONGEST = 20_000
"""How long the pattern made of a pattern may get; one with too many repeats within repeats is not taken apart."""

_LEADING = lazy(r"\(\?([ims]+)\)")
_BARE = lazy(r"\\[bBAZ]|[\^$]")
_CHARACTER = lazy(
    r"\.|\\(?:[dDwWsSnrtfv]|[^A-Za-z0-9]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[pP]\{\^?[\w ]+\})"
    r"|\[\^?\]?(?:\\.|[^\]\\[])*\]|[^[\\.^$*+?{|()]",
    re.DOTALL,
)
_OPENING = lazy(r"\(\?(?:(?P<look><?[=!])|(?P<flags>[ims]*(?:-[ims]+)?:)|(?P<atomic>>)|P?<\w+>)|\((?!\?)")
_TIMES = lazy(r"(?:(?P<sign>[*+?])|\{(?P<exactly>\d+)\}|\{(?P<least>\d*),(?P<most>\d*)\})[?+]?")
_RUN = 12
_BETWEEN = r"\x00"

Firsts = tuple[tuple[str, str | None], ...]
"""What may come first: pairs of what must stand before it, and the inside of a character class, None for any one."""


class Growth(NamedTuple):
    """What was made of a pattern. `whole` matches what it matches, without groups that capture; `more` matches, up to
    the end of the text, where a search that begins there would look beyond it; both begin with one of `firsts`. No
    search looks at more than `most` characters; None where there is no limit."""

    whole: str
    more: str
    firsts: Firsts
    most: int | None


class _Piece(NamedTuple):
    whole: str
    more: str | None
    """None where it never wants more text than there is."""
    firsts: Firsts = ()
    empty: bool = False
    """Whether it may match the empty text."""
    plain: bool = True
    """Whether it only takes characters, and looks at nothing else."""
    most: int | None = 1
    """How many characters it takes or looks at."""


class _StrangeError(Exception):
    """The pattern has something that is not known here."""


@lru_cache(256)
def growth(pattern: str) -> Growth | None:
    """What the pattern matches and where it may still grow, or None where it has more to it than is known here:
    references to groups, conditions, flags in the middle, what only some engines know.

    >>> found = growth(r"sk-[a-z]{2,}(?!!)")
    >>> [re.search(found.more, text).start() for text in ("no", "as s", "sk-ab", "sk-ab?", "sk-a?")]
    [2, 3, 0, 6, 5]
    """
    flags = _LEADING.match(pattern)
    reader = _Reader(pattern, flags.end() if flags else 0)
    try:
        read = reader.alternatives()
    except (_StrangeError, RecursionError):
        return None
    if reader.place < len(pattern):
        return None
    scope = f"(?{flags[1]}:" if flags else "(?:"
    firsts = (("", None),) if read.empty else _folded(read.firsts, scope)
    return Growth(f"{scope}{read.whole})", rf"{scope}{read.more}|\Z)" if read.more else r"\Z", firsts, read.most)


def beginning(firsts: Iterable[tuple[str, str | None]]) -> str:
    """A pattern for one character, with which one of these begins."""
    by_behind: dict[str, list[str]] = {}
    for behind, members in dict.fromkeys(firsts):
        if members is None:
            return r"[\s\S]"
        by_behind.setdefault(behind, []).append(members)
    if [*by_behind] == [""]:
        return _class(by_behind[""])
    # The character first and what stands before it then: an engine skips what is not in the class.
    before = [rf"{behind}[\s\S])" if behind else "" for behind in by_behind]
    ways = [f"(?<={_class(members)}){look}" for look, members in zip(before, by_behind.values(), strict=True)]
    return f"{_class([each for members in by_behind.values() for each in members])}(?:{'|'.join(ways)})"


def _class(members: Sequence[str]) -> str:
    # Something between them, so that no two make a range or an operator.
    return rf"[{_BETWEEN.join(dict.fromkeys(members))}]"


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, place: int) -> None:
        self.pattern = pattern
        self.place = place

    def alternatives(self) -> _Piece:
        """Sequences with `|` between them, up to the end or a closing parenthesis."""
        read = [self._sequence()]
        while self.pattern.startswith("|", self.place):
            self.place += 1
            read.append(self._sequence())
        return _Piece(
            "|".join([piece.whole for piece in read]),
            "|".join([piece.more for piece in read if piece.more is not None]) or None,
            tuple([first for piece in read for first in piece.firsts]),
            any([piece.empty for piece in read]),
            all([piece.plain for piece in read]),
            _most([piece.most for piece in read], max),
        )

    def _sequence(self) -> _Piece:
        pieces: list[_Piece] = []
        while self.place < len(self.pattern) and self.pattern[self.place] not in "|)":
            pieces.append(self._piece())
        firsts: list[tuple[str, str | None]] = []
        behind = _behind(pieces[0]) if pieces else ""
        for piece in pieces:
            firsts += [(before or behind, members) for before, members in piece.firsts]
            if not piece.empty:
                break
        more: str | None = None
        for piece in reversed(_joined(pieces)):
            ways = [piece.more] if piece.more is not None else []
            ways += [piece.whole + more] if more is not None else []
            more = f"(?:{'|'.join(ways)})" if ways else None
            if more is not None and len(more) > LONGEST:
                raise _StrangeError
        return _Piece(
            "".join([piece.whole for piece in pieces]),
            more,
            tuple(firsts),
            all([piece.empty for piece in pieces]),
            all([piece.plain for piece in pieces]),
            _most([0, *[piece.most for piece in pieces]], sum),
        )

    def _piece(self) -> _Piece:
        if (bare := self._take(_BARE)) is not None:
            # What a line, text or word ends with is known when the next character is, or that there is none.
            known = bare[0] in ("^", r"\A")
            more = None if known else r"\n?\Z" if bare[0] == "$" else r"\Z"
            return self._once(_Piece(bare[0], more, empty=True, plain=False))
        if (character := self._take(_CHARACTER)) is not None:
            return self._repeated(_Piece(character[0], r"\Z", (("", _members(character[0])),)))
        opening = self._take(_OPENING)
        if opening is None:
            raise _StrangeError
        inner = self.alternatives()
        look = opening["look"] or ""
        if not self.pattern.startswith(")", self.place) or (look.startswith("<") and not inner.plain):
            raise _StrangeError
        self.place += 1
        if look:
            more = None if look.startswith("<") else inner.more
            return self._once(_Piece(f"(?{look}{inner.whole})", more, empty=True, plain=False, most=inner.most))
        scope = f"(?{opening['flags'] or ':'}"
        whole = f"(?>{inner.whole})" if opening["atomic"] else f"{scope}{inner.whole})"
        firsts = _folded(inner.firsts, scope)
        more = inner.more and f"{scope}{inner.more})"
        return self._repeated(_Piece(whole, more, firsts, inner.empty, inner.plain, inner.most))

    def _repeated(self, piece: _Piece) -> _Piece:
        times = self._take(_TIMES)
        if times is None:
            return piece
        if times["least"] == times["most"] == "":
            raise _StrangeError
        least, most = times["exactly"] or times["least"] or "0", times["exactly"] or times["most"]
        if times["sign"]:
            least, most = "1" if times["sign"] == "+" else "0", "1" if times["sign"] == "?" else ""
        more = None
        if piece.more is not None and most != "0":
            earlier = f"{{0,{int(most) - 1}}}" if most else "*"
            more = f"{piece.whole}{earlier}(?:{piece.more})"
        empty = piece.empty or int(least) == 0
        longest = int(most) * piece.most if most and piece.most is not None else None
        return self._once(_Piece(piece.whole + times[0], more, piece.firsts, empty, piece.plain, longest))

    def _once(self, piece: _Piece) -> _Piece:
        if _TIMES.match(self.pattern, self.place):
            raise _StrangeError
        return piece

    def _take(self, what: "re.Pattern[str]") -> "re.Match[str] | None":
        found = what.match(self.pattern, self.place)
        if found is not None:
            self.place = found.end()
        return found


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces with characters one after the other as one, so that a long word does not nest as deep."""
    joined: list[_Piece] = []
    run: list[str] = []
    for piece in [*pieces, None]:
        if piece is not None and piece.more == r"\Z" and piece.plain and len(run) < _RUN:
            run.append(piece.whole)
            continue
        if run:
            further = [rf"{''.join(run[1:end])}\Z" for end in range(1, len(run))]
            more = rf"\Z|{run[0]}(?:{'|'.join(further)})" if further else r"\Z"
            joined.append(_Piece("".join(run), more))
            run = []
        if piece is not None:
            joined.append(piece)
    return joined


def _most(each: Sequence[int | None], together: Callable[[list[int]], int]) -> int | None:
    known = [most for most in each if most is not None]
    return together(known) if len(known) == len(each) else None


def _behind(piece: _Piece) -> str:
    """What looks back at one character, without its closing parenthesis; empty for any other piece."""
    if piece.whole.startswith(("(?<!", "(?<=")):
        inner = piece.whole[4:-1]
        character = _CHARACTER.match(inner)
        if character is not None and character.end() == len(inner):
            return piece.whole[:-1]
    return ""


def _members(character: str) -> str | None:
    """What stands in a class for what matches one character; None where that is too much to say."""
    if character == "." or character[:2] in ("[^", "[]"):
        return None
    if character[0] != "[":
        return character if character[0] == "\\" or character.isalnum() else re.escape(character)
    inside = character[1:-1]
    bare = inside.strip("-") if not inside.endswith("\\-") else inside.lstrip("-")
    return bare if bare == inside else rf"{bare}\-"


def _folded(firsts: Firsts, scope: str) -> Firsts:
    """What may come first in a group with these flags."""
    if "i" not in scope.partition("-")[0]:
        return firsts
    return tuple([("", members and _both_cases(members)) for _, members in firsts])


def _both_cases(members: str) -> str | None:
    letters = re.sub(r"\\[^xu]", "", members)
    if "\\" in letters or not members.isascii():
        return None
    # Four letters beyond ASCII are taken for one within it.
    return rf"{members}{_BETWEEN}{letters.swapcase()}" + "\N{LATIN SMALL LETTER LONG S}\N{KELVIN SIGN}\u0130\u0131"
