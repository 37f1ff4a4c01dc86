"""The detectors that come with this package: the pattern sets, each with what it finds."""

from __future__ import annotations

import re
from collections.abc import Callable

from handrail.filters.detectors import Finding, Shape, register
from handrail.filters.patterns import lazy
from handrail.filters.sensitivity import Tier

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
    register(_kind, _secret(_kind, _pattern, *_HINTS[_kind]))
register("email", Shape(_EMAIL, _whole("email", "internal", _always), lambda text: "@" in text))
register("phone", Shape(_PHONE, _whole("phone", "internal", _always), _always))
register("card", Shape(_CARD, _whole("card", "secret", _luhn), _always))
register("iban", Shape(_IBAN, _iban, _always))
register(
    "ip",
    Shape(_IPV4, _whole("ip", "internal", _is_ipv4), lambda text: "." in text),
    Shape(_IPV6, _whole("ip", "internal", _is_ipv6), lambda text: "::" in text or text.count(":") > 6),
)
register("ssn", Shape(_SSN, _whole("ssn", "secret", _always), lambda text: "-" in text))
