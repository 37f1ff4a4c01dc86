"""How sensitive content is: `public` < `internal` < `secret`, and the one grammar of what stands in for redacted text.

It is a gate, not a hint: a label or token that is unknown or malformed counts as `secret`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

from handrail.filters.canonical import canonical_text
from handrail.filters.messages import Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from handrail.filters.patterns import lazy

Tier: TypeAlias = Literal["public", "internal", "secret"]
TIERS: tuple[Tier, ...] = get_args(Tier)

TOKEN = lazy(r"\[REDACTED(?::(public|internal|secret)(?::[A-Za-z0-9_.-]+)?\])?")
"""A redaction token, or the beginning of what is none; group 1 is its tier."""


def tier(label: str) -> Tier:
    """The tier that a label names; `secret` for a label that is none.

    >>> tier("internal"), tier("confidental")
    ('internal', 'secret')
    """
    return next((known for known in TIERS if known == label), "secret")


def rank(label: str) -> int:
    """0, 1 or 2, so that tiers compare; 2 for a label that is none."""
    return TIERS.index(tier(label))


def highest(*labels: str | None) -> Tier | None:
    """The highest tier among the labels, or None where there is none."""
    return max([tier(label) for label in labels if label is not None], key=rank, default=None)


def token(tier: Tier, kind: str = "") -> str:
    """What stands in for redacted text.

    >>> token("secret"), token("internal", "email")
    ('[REDACTED:secret]', '[REDACTED:internal:email]')
    """
    return f"[REDACTED:{tier}:{kind}]" if kind else f"[REDACTED:{tier}]"


def token_tier(text: str) -> Tier | None:
    """The highest tier among the redaction tokens in a text, or None where it has none.

    >>> token_tier("card [REDACTED:internal:card]"), token_tier("[REDACTED]"), token_tier("nothing")
    ('internal', 'secret', None)
    """
    if "[REDACTED" not in text:
        return None
    return highest(*[found[1] or "secret" for found in TOKEN.finditer(text)])


def label(message: Message, part: Part) -> Tier | None:
    """The higher of the message's and the part's label, or None where neither has one."""
    return highest(message.sensitivity, part.sensitivity)


def judge(message: Message, part: Part, default: Tier = "internal") -> Tier:
    """How sensitive a part is: by its label and its message's; redaction tokens judge only what has no label, and
    `default` is for what has neither."""
    return label(message, part) or part_token(part) or default


def part_token(part: Part) -> Tier | None:
    """The highest tier among the redaction tokens anywhere in a part, JSON escapes undone."""
    if type(part) is Text and part.extra is None:
        return token_tier(part.text)
    return highest(*[token_tier(text) for text in _texts(part)])


def _texts(part: Part) -> Iterator[str]:
    if isinstance(part, Text | Refusal | Reasoning):
        yield part.text
    elif isinstance(part, ToolCall):
        yield _unescaped(part.arguments)
    elif isinstance(part, Opaque):
        yield _unescaped(part.data)
    else:
        yield from (part.name or "", part.url or "")
    if not isinstance(part, Refusal | Reasoning | Opaque) and part.extra is not None:
        yield _unescaped(part.extra)


def _unescaped(text: str) -> str:
    return canonical_text(text) if "\\" in text else text
