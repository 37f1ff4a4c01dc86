"""Detectors: pure functions that find secrets and personal data in a text, in linear time.

The pattern sets stand here, each with what it finds. `find` runs any number of them by name; `secrets` and `personal`
stand for all of their group. Filters and middleware share them, and other packages add theirs with `@detector`.
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

_SECRETS: dict[str, str] = {
    # Where a pattern has a group, that is the secret: the words before it stay.
    "private_key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-----END [A-Z0-9 ]{0,60}-----)?",
    "aws_key": r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "github_token": r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{22,255})",
    "gitlab_token": r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,255}",
    "slack_token": r"(?<![A-Za-z0-9])(?:xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255})"
    r"|hooks\.slack\.com/services/([A-Za-z0-9/]{20,100})",
    "anthropic_key": r"(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9_-]{10,255}",
    "openai_key": r"(?<![A-Za-z0-9])sk-(?!ant-)[A-Za-z0-9_-]{16,255}",
    "stripe_key": r"(?<![A-Za-z0-9])(?:[srp]k_(?:live|test)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9]{16,255})",
    "google_key": r"(?<![A-Za-z0-9])(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,1000}|GOCSPX-[A-Za-z0-9_-]{20,60})",
    "package_token": r"(?<![A-Za-z0-9])(?:npm_[A-Za-z0-9]{36}|pypi-AgE[A-Za-z0-9_-]{50,500}|hf_[A-Za-z0-9]{30,60})",
    "sendgrid_key": r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}",
    "jwt": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4096}\.eyJ[A-Za-z0-9_-]{8,8192}(?:\.[A-Za-z0-9_-]{0,4096})?",
    "bearer": r"(?i:\bbearer)\s{1,3}(?=[A-Za-z._~+/=-]{0,64}[0-9])([A-Za-z0-9._~+/-]{16,4096}=*)"
    r"|(?i:\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?basic)\s{1,3}([A-Za-z0-9+/]{6,4096}=*)",
    "url_password": r"://[^\s/:@\"'<>]{0,100}:([^\s/@\"'<>]{1,200})@",
    "password": r"(?:(?i:password|passwd|passphrase|secret|credentials?|(?:api|access|private)[_-]?key"
    r"|(?:auth|access|refresh|bearer|session|api)[_-]?token)|\b(?i:pwd|token))(?![a-z])[A-Za-z0-9_]{0,24}"
    r"\\?[\"']?\s{0,3}(?:=>|:=|=|:)\s{0,3}"
    r"(?:\\?\"([^\"\\\s]{3,400})|'([^'\s]{3,400})|([^\s\"'\\,;&(){}\[\]<>]{4,400}))",
}
# A text that holds none of these words cannot hold the secret; to look for a word takes a tenth of a search.
_HINTS: dict[str, tuple[str, ...]] = {
    "private_key": ("PRIVATE KEY",),
    "aws_key": ("AKIA", "ASIA", "ABIA", "ACCA"),
    "github_token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "gitlab_token": ("glpat-",),
    "slack_token": ("xox", "xapp-", "hooks.slack"),
    "anthropic_key": ("sk-ant-",),
    "openai_key": ("sk-",),
    "stripe_key": ("_live_", "_test_", "whsec_"),
    "google_key": ("AIza", "ya29.", "GOCSPX-"),
    "package_token": ("npm_", "pypi-", "hf_"),
    "sendgrid_key": ("SG.",),
    "jwt": ("eyJ",),
    "bearer": ("earer", "EARER", "asic", "ASIC"),
    "url_password": ("://",),
    "password": ("=", ":"),
}
_SECRET_KEY = lazy(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?i:pass(?:word|wd|phrase)|pwd|secret|credentials?|pin|cvv|cvc|authorization"
    r"|(?:api|access|private|secret)[_-]?key|(?:(?:auth|access|refresh|bearer|session|api)[_-]?)?token)$"
)

SECRETS: tuple[str, ...] = tuple(_SECRETS)
"""The kinds that `secrets` stands for."""

PERSONAL: tuple[str, ...] = ("email", "phone", "card", "iban", "ip", "ssn")
"""The kinds that `personal` stands for."""

_EMAIL = lazy(r"(?<![\w.%+-])[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_PHONE = lazy(
    r"(?<![\w+])\+\d(?:[ ().\-/]{0,2}\d){7,14}(?!\d)"
    r"|(?<![\w.+-])00[1-9](?:[ ().\-/]{0,2}\d){7,13}(?!\d)"
    r"|(?<![\w.+-])\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\w-])"
)
_CARD = lazy(r"(?<![\d.])[2-6](?:[ -]?\d){12,18}(?!\d)")
_IBAN = lazy(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_IPV4 = lazy(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = lazy(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_SSN = lazy(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")


def detector(name: str) -> Callable[[_Finder], _Finder]:
    """Registers a function from a text to its `Finding`s under a name. It must be pure, and take linear time.

    Raises `ValueError` where another function has the name.
    """

    def register(finder: _Finder) -> _Finder:
        other = _finders.get(name)
        if name in GROUPS or (other is not None and getattr(other, "__qualname__", "") != finder.__qualname__):
            raise ValueError(f"the detector {name!r} is there already")
        _finders[name] = finder
        return finder

    return register


def detectors() -> Sequence[str]:
    """The names that `find` knows, sorted."""
    return sorted({*GROUPS, *_finders})


def find(text: str, names: Iterable[str]) -> list[Finding]:
    """What these detectors find, in order and without overlap. Raises `KeyError` for a name that is not registered.

    >>> find("Mail ann@example.org, key AKIAIOSFODNN7EXAMPLE", ["secrets", "email"])
    [Finding(kind='email', start=5, end=20, tier='internal'), Finding(kind='aws_key', start=26, end=46, tier='secret')]
    """
    seen = without_tokens(text)
    found = [finding for name in _each(tuple(names)) for finding in _finders[name](seen)]
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
    return [(name, _finders[name], _shapes.get(name, ())) for name in _each(tuple(names))]


def without_tokens(text: str) -> str:
    """The text as detectors see it, as long as it is: with spaces for what a redaction token begins with."""
    # A token's own words are not what it stands for; its kind stays to be read, or it would be a place to hide in.
    if "[REDACTED" not in text:
        return text
    return re.sub(r"\[REDACTED:(?:public|internal|secret)[:\]]", lambda match: " " * len(match[0]), text)


GROUPS: dict[str, tuple[str, ...]] = {"secrets": SECRETS, "personal": PERSONAL}
"""Names that stand for several detectors."""


def _register(kind: str, *given: Shape) -> None:
    def finder(text: str) -> Iterable[Finding]:
        found = [map(shape.judge, shape.pattern.finditer(text)) for shape in given if shape.hint(text)]
        return [finding for judged in found for finding in judged if finding is not None]

    _finders[kind], _shapes[kind] = finder, given


def _secret(kind: str, pattern: str, *hints: str) -> Shape:
    def judge(match: re.Match[str]) -> Finding:
        return Finding(kind, *match.span(match.lastindex or 0), "secret")

    return Shape(lazy(pattern), judge, lambda text: any([hint in text for hint in hints]))


def _whole(kind: str, tier: Tier, fits: Callable[[str], bool]) -> Callable[[re.Match[str]], Finding | None]:
    return lambda match: Finding(kind, *match.span(), tier) if fits(match[0]) else None


def _iban(match: re.Match[str]) -> Finding | None:
    # Words in capitals may follow the number: the longest beginning with a right checksum is the number.
    for end in range(len(match[0]), 14, -1):
        number = match[0][:end]
        if number[-1] != " " and _mod_97(number.replace(" ", "")):
            return Finding("iban", match.start(), match.start() + end, "secret")
    return None


def _always(text: str) -> bool:
    return True


def _luhn(number: str) -> bool:
    digits = [int(digit) for digit in number if digit in "0123456789"]
    # ISO/IEC 7812-1, annex B.
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return len(digits) >= 13 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _mod_97(number: str) -> bool:
    # ISO 13616: the first four characters go to the end, letters count from 10, the rest by 97 is 1.
    if len(number) < 15:
        return False
    return int("".join([str(int(sign, 36)) for sign in number[4:] + number[:4]])) % 97 == 1


def _is_ipv6(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return len(text) > 3


def _is_ipv4(text: str) -> bool:
    return all([int(number) < 256 for number in text.split(".")])


for _kind, _pattern in _SECRETS.items():
    _register(_kind, _secret(_kind, _pattern, *_HINTS[_kind]))
_register("email", Shape(_EMAIL, _whole("email", "internal", _always), lambda text: "@" in text))
_register("phone", Shape(_PHONE, _whole("phone", "internal", _always), _always))
_register("card", Shape(_CARD, _whole("card", "secret", _luhn), _always))
_register("iban", Shape(_IBAN, _iban, _always))
_register(
    "ip",
    Shape(_IPV4, _whole("ip", "internal", _is_ipv4), lambda text: "." in text),
    Shape(_IPV6, _whole("ip", "internal", _is_ipv6), lambda text: "::" in text or text.count(":") > 6),
)
_register("ssn", Shape(_SSN, _whole("ssn", "secret", _always), lambda text: "-" in text))
