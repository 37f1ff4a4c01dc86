"""Filters written as text, for the command line and configuration: `last_n(10) | strip_tool_calls`.

expression  = step { "|" step }
step        = name [ "(" [ argument { "," argument } ] ")" ]
argument    = [ name "=" ] value
value       = text | number | true | false | none | expression | "[" [ value { "," value } ] "]"
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import msgspec

from handrail.filters.base import Filter
from handrail.filters.composition import Compose
from handrail.filters.errors import FilterError, InvalidExpression
from handrail.filters.patterns import lazy
from handrail.filters.registry import constructors, from_descriptor

DEEPEST = 50
"""How many brackets may be open at once."""

_WORDS = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_CODES = {"x": 2, "u": 4, "U": 8}
_EQUALS = lazy(r"\s*=")
_OPENS = lazy(r"\s*\(")
_SPACE = lazy(r"\s*")
_ESCAPE = lazy(r"\\(.)([0-9a-fA-F]{0,8})", re.DOTALL)


@cache
def _tokens() -> "re.Pattern[str]":
    return re.compile(
        r"""\s*(?:
            (?P<name>[^\W\d]\w*)
          | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
          | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
          | (?P<sign>[|(),=\[\]])
          | (?P<end>\Z)
        )""",
        re.VERBOSE | re.DOTALL,
    )


class _Token(msgspec.Struct, frozen=True, gc=False):
    kind: str
    text: str
    column: int


def read_expression(expression: str) -> Filter:
    """See `handrail.filters.parse`."""
    reader = _Reader(expression)
    filter = reader.pipeline(0)
    if reader.ahead.kind != "end":
        reader.fail("'|' or the end is expected")
    return filter


class _Reader:
    """Reads an expression from left to right, one token ahead."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.known = constructors()
        # A function of one's own has no spelling here, but for the name under which it is registered.
        self.offered = tuple(sorted(self.known.keys() - {"custom"}))
        self.place = 0
        self.ahead = self._token()

    def fail(self, problem: str, column: int = 0, possible: tuple[str, ...] = ()) -> NoReturn:
        raise InvalidExpression(self.expression, column or self.ahead.column, problem, possible)

    def pipeline(self, depth: int) -> Filter:
        """Steps with `|` between them."""
        steps = [self._step(depth)]
        while self._skip("|"):
            steps.append(self._step(depth))
        return steps[0] if len(steps) == 1 else Compose(tuple(steps))

    def _step(self, depth: int) -> Filter:
        name = self.ahead
        if name.kind != "name":
            self.fail("the name of a filter is expected", possible=self.offered)
        make = self.known.get(name.text)
        if make is None:
            from difflib import get_close_matches

            closest = get_close_matches(name.text[:100], self.known, 1)
            hint = f"; did you mean {closest[0]!r}?" if closest else ""
            self.fail(f"no filter is called {name.text[:100]!r}{hint}", possible=self.offered)
        self._next()
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self._skip("("):
            self._arguments(depth + 1, positional, named)
        return self._made(name, make, positional, named)

    def _made(self, name: _Token, make: Callable[..., Filter], positional: list[Any], named: dict[str, Any]) -> Filter:
        try:
            made = make(*positional, **named)
            from_descriptor(made.descriptor)  # which holds each value against the type of its field
        except (FilterError, TypeError, ValueError) as error:
            raise InvalidExpression(self.expression, name.column, f"{name.text}: {error}") from error
        return made

    def _arguments(self, depth: int, positional: list[Any], named: dict[str, Any]) -> None:
        while not self._skip(")"):
            first = self.ahead
            if first.kind == "name" and _EQUALS.match(self.expression, self.place):
                if first.text in named:
                    self.fail(f"{first.text!r} is given twice")
                self._next()
                self._next()
                named[first.text] = self._value(depth)
            elif named:
                self.fail("a positional argument stands after a named one")
            else:
                positional.append(self._value(depth))
            self._comma(")")

    def _comma(self, closing: str) -> None:
        if self.ahead.text != closing and not self._skip(","):
            self.fail(f"',' or {closing!r} is expected")

    def _value(self, depth: int) -> Any:
        token = self.ahead
        if depth > DEEPEST:
            self.fail(f"brackets are nested deeper than {DEEPEST}")
        if token.kind == "name":
            return self._word(token, depth)
        if token.kind == "number":
            self._next()
            return self._number(token)
        if token.kind == "text":
            self._next()
            return self._text(token)
        if self._skip("["):
            return self._list(depth + 1)
        self.fail("a value is expected: a text in quotes, a number, true, false, none, a list, or a filter")

    def _word(self, token: _Token, depth: int) -> Any:
        if token.text in _WORDS and not _OPENS.match(self.expression, self.place):
            self._next()
            return _WORDS[token.text]
        return self.pipeline(depth)

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._skip("]"):
            items.append(self._value(depth))
            self._comma("]")
        return items

    def _number(self, token: _Token) -> int | float:
        try:
            return int(token.text) if token.text.lstrip("+-").isdigit() else float(token.text)
        except ValueError:
            self.fail("this number is too long", token.column)

    def _text(self, token: _Token) -> str:
        def character(found: "re.Match[str]") -> str:
            letter, digits = found[1], found[2]
            if letter in _ESCAPES:
                return _ESCAPES[letter] + digits
            wanted = _CODES.get(letter, 9)
            if len(digits) < wanted or int(digits[:wanted], 16) > 0x10FFFF:
                self.fail(f"no character is written \\{letter}{digits}", token.column + found.start() + 1)
            return chr(int(digits[:wanted], 16)) + digits[wanted:]

        return _ESCAPE.sub(character, token.text[1:-1])

    def _skip(self, sign: str) -> bool:
        if self.ahead.kind != "sign" or self.ahead.text != sign:
            return False
        self._next()
        return True

    def _next(self) -> None:
        self.ahead = self._token()

    def _token(self) -> _Token:
        found = _tokens().match(self.expression, self.place)
        if found is None:
            start = _SPACE.match(self.expression, self.place)
            column = (start.end() if start else self.place) + 1
            odd = self.expression[column - 1]
            self.fail("this text has no closing quote" if odd in "'\"" else f"{odd!r} has no meaning", column)
        self.place = found.end()
        kind = str(found.lastgroup)
        return _Token(kind, found[kind], found.start(kind) + 1)
