"""Detectors: pure functions that find secrets and personal data in a text, in linear time.

Those that come with this package are made in `finders`. `find` runs any number of them by name; `secrets` and
`personal` stand for all of their group. Filters and middleware share them, and other packages add theirs with
`@detector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeAlias, TypeVar

import msgspec

from handrail.filters.patterns import lazy
from handrail.filters.sensitivity import TOKEN, Tier, rank, token


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What was found and where: `text[start:end]`, and how sensitive it is."""

    kind: str
    start: int
    end: int
    tier: Tier


Finder: TypeAlias = Callable[[str], Iterable[Finding]]
_Finder = TypeVar("_Finder", bound=Finder)
_finders: dict[str, Finder] = {}


class Shape(msgspec.Struct, frozen=True):
    """What findings look like: each lies in a match of `pattern`, and `judge` says which part of the match it is, or
    None for a match that is no finding. A text without `hint` has none."""

    pattern: re.Pattern[str]
    judge: Callable[[re.Match[str]], Finding | None]
    hint: Callable[[str], bool]


_shapes: dict[str, tuple[Shape, ...]] = {}

_SECRET_KEY = lazy(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?i:pass(?:word|wd|phrase)|pwd|secret|credentials?|pin|cvv|cvc|authorization"
    r"|(?:api|access|private|secret)[_-]?key|(?:(?:auth|access|refresh|bearer|session|api)[_-]?)?token)$"
)

SECRETS: tuple[str, ...] = (
    "private_key",
    "aws_key",
    "github_token",
    "gitlab_token",
    "slack_token",
    "anthropic_key",
    "openai_key",
    "stripe_key",
    "google_key",
    "package_token",
    "sendgrid_key",
    "jwt",
    "bearer",
    "url_password",
    "password",
)
"""The kinds that `secrets` stands for."""

PERSONAL: tuple[str, ...] = ("email", "phone", "card", "iban", "ip", "ssn")
"""The kinds that `personal` stands for."""


@cache
def _known() -> dict[str, Finder]:
    import handrail.filters.finders  # noqa: F401  # they register themselves

    return _finders


def register(kind: str, *given: Shape) -> None:
    """Makes a detector of these shapes known, which tells of them."""

    def finder(text: str) -> Iterable[Finding]:
        found = [map(shape.judge, shape.pattern.finditer(text)) for shape in given if shape.hint(text)]
        return [finding for judged in found for finding in judged if finding is not None]

    _finders[kind], _shapes[kind] = finder, given


def detector(name: str) -> Callable[[_Finder], _Finder]:
    """Registers a function from a text to its `Finding`s under a name. It must be pure, and take linear time.

    Raises `ValueError` where another function has the name.
    """

    def register(finder: _Finder) -> _Finder:
        other = _known().get(name)
        if name in GROUPS or (other is not None and getattr(other, "__qualname__", "") != finder.__qualname__):
            raise ValueError(f"the detector {name!r} is there already")
        _finders[name] = finder
        return finder

    return register


def detectors() -> Sequence[str]:
    """The names that `find` knows, sorted."""
    return sorted({*GROUPS, *_known()})


def nearly(pattern: str) -> str:
    """What to say of a pattern that is nearly the name of a detector; empty for all others. It would be looked for as a
    word, and what the detector was to find would go out.

    >>> nearly("emial").partition(";")[0]
    "no detector 'emial'"
    """
    import difflib

    known = detectors()
    if pattern in known or not pattern.replace("_", "").isalpha() or not pattern.islower():
        return ""
    near = [part for part in pattern.split("_") if part in known] or difflib.get_close_matches(pattern, known, 1, 0.75)
    if not near or len(pattern) < 3:
        return ""
    return (
        f"no detector {pattern!r}; did you mean {near[0]}? For the word itself write '(?:{pattern})'. "
        f"The detectors are {', '.join(known)}"
    )


def find(text: str, names: Iterable[str]) -> list[Finding]:
    """What these detectors find, in order and without overlap. Raises `KeyError` for a name that is not registered.

    >>> find("Mail ann@example.org, key AKIAIOSFODNN7EXAMPLE", ["secrets", "email"])
    [Finding(kind='email', start=5, end=20, tier='internal'), Finding(kind='aws_key', start=26, end=46, tier='secret')]
    """
    seen, known = without_tokens(text), _known()
    found = [finding for name in _each(tuple(names)) for finding in known[name](seen)]
    return merged(text, found) if found else []


def find_by_key(key: str, value: str, names: Iterable[str]) -> list[Finding]:
    """The whole value as a finding, where it stands under a key such as `password` and `secrets` are looked for."""
    if not key or not value or value in ("true", "false", "null") or TOKEN.fullmatch(value):
        return []
    if "password" in _each(tuple(names)) and _SECRET_KEY.search(key):
        return [Finding("password", 0, len(value), "secret")]
    return []


def merged(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order, those that overlap as one of the higher tier; one that touches a redaction token takes the
    whole of it, so that no token is ever cut in two."""
    tokens = [match.span() for match in TOKEN.finditer(text)] if "[REDACTED" in text else []
    left: list[Finding] = []
    number = 0
    for found in sorted(findings, key=lambda finding: (finding.start, -finding.end)):
        while number < len(tokens) and tokens[number][1] <= found.start:
            number += 1
        start, end = found.start, found.end
        for token_start, token_end in tokens[number : number + 1]:
            if token_start < end:
                start, end = min(start, token_start), max(end, token_end)
        if left and start < left[-1].end:
            last = left.pop()
            tier = max(last.tier, found.tier, key=rank)
            found = Finding(last.kind, last.start, max(last.end, end), tier)
            left.append(found)
        else:
            left.append(Finding(found.kind, start, end, found.tier))
    return left


def replaced(text: str, findings: Sequence[Finding], kind: str | None = None, tier: Tier | None = None) -> str:
    """The text with a redaction token for each finding; `kind` and `tier` are those of the finding where not given.

    >>> text = "Mail ann@example.org"
    >>> replaced(text, find(text, ["email"]))
    'Mail [REDACTED:internal:email]'
    """
    said: list[str] = []
    place = 0
    for found in findings:
        said += (text[place : found.start], token(tier or found.tier, found.kind if kind is None else kind))
        place = found.end
    return "".join([*said, text[place:]])


@cache
def _each(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([kind for name in names for kind in GROUPS.get(name, (name,))]))


def shapes(names: Iterable[str]) -> Sequence[tuple[str, Finder, Sequence[Shape]]]:
    """Each detector that the names stand for, by its own name, with the shapes of what it finds; a detector that does
    not tell has none. Raises `KeyError` for a name that is not registered."""
    known = _known()
    return [(name, known[name], _shapes.get(name, ())) for name in _each(tuple(names))]


def without_tokens(text: str) -> str:
    """The text as detectors see it, as long as it is: with spaces for what a redaction token begins with."""
    # A token's own words are not what it stands for; its kind stays to be read, or it would be a place to hide in.
    if "[REDACTED" not in text:
        return text
    return re.sub(r"\[REDACTED:(?:public|internal|secret)[:\]]", lambda match: " " * len(match[0]), text)


GROUPS: dict[str, tuple[str, ...]] = {"secrets": SECRETS, "personal": PERSONAL}
"""Names that stand for several detectors."""
