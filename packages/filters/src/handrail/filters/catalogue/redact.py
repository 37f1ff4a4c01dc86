"""The filter that puts a redaction token in place of text."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.filters.base import Filter
from handrail.filters.detectors import detectors, nearly
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.patterns import lazy
from handrail.filters.reasoning import without_thoughts
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.sensitivity import TIERS, Tier

_KIND = lazy(r"[A-Za-z0-9_.-]*")


@filter_kind("redact")
class Redact(Filter, frozen=True):
    """Text that a pattern or a detector finds, replaced by `[REDACTED:<tier>:<kind>]` in every part.

    It reaches words (once `<think>…</think>` is out of them), reasoning, tool arguments and other JSON with its nested
    strings, file names, addresses and inline text files. JSON stays JSON with its keys, types and digits, but for what
    was found itself. Names of tools and agents, and ids, are no text. What has a label keeps it. `named` is the kind in
    the token; it and `tier` are the detector's own where not given, and a pattern is `secret`.
    """

    patterns: tuple[str, ...] = ()
    detect: tuple[str, ...] = ()
    named: str = ""
    tier: Tier | None = None

    def __post_init__(self) -> None:
        from handrail.filters.redaction import check

        check(self.patterns, self.detect)
        if not self.patterns and not self.detect:
            raise InvalidFilter("redact is told what to look for: patterns, or names of detectors")
        if not isinstance(self.named, str) or not _KIND.fullmatch(self.named):
            raise InvalidFilter(f"kind is a word of letters, digits, '_', '.' and '-', not {self.named!r}")
        if self.tier is not None and self.tier not in TIERS:
            raise InvalidFilter(f"tier is one of {', '.join(TIERS)}, not {self.tier!r}")

    def __call__(self, history: Messages) -> Messages:
        from handrail.filters.redaction import Redactor, require

        require(self.descriptor, self.detect)
        redactor = Redactor(self.patterns, self.detect, self.named or None, self.tier)
        # A token within a `<think>` tag would hide it from the strip at the end, so such thoughts go first.
        left = [redactor.message(without_thoughts(message)) for message in history]
        return tuple(left) if any([new is not old for new, old in zip(left, history, strict=True)]) else history

    @property
    def per_message(self) -> bool:
        """Each message is judged alone."""
        return True

    def reason(self, message: Message) -> str:
        """Says what was looked for, not what was found."""
        return f"text that {', '.join([*self.detect, *map(repr, self.patterns)])} finds is redacted"

    def __repr__(self) -> str:
        given = [repr([*self.detect, *self.patterns])]
        given += [f"kind={self.named!r}"] if self.named else []
        given += [f"tier={self.tier!r}"] if self.tier is not None else []
        return f"redact({', '.join(given)})"


@constructor
def redact(patterns: str | Sequence[str], kind: str = "", tier: Tier | None = None) -> Redact:
    """Puts a token in place of what these find: each is the name of a detector, or else a regular expression.

    Raises `InvalidFilter` for what is no regular expression, or would find the empty text, and for a word that is
    nearly the name of a detector.

    >>> from handrail.filters import call, user
    >>> from handrail.filters.messages import assistant
    >>> mail = call("mail", call_id="c1", to="ann@example.org", copies=2)
    >>> history = (user("My PIN is 9041."), assistant(mail))
    >>> said, asked = redact(["email", r"PIN is \\d+"], kind="private")(history)
    >>> said.text, asked.tool_calls[0].arguments
    ('My [REDACTED:secret:private].', '{"to":"[REDACTED:internal:private]","copies":2}')
    """
    given = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    known = detectors()
    for pattern in given:
        if isinstance(pattern, str) and (meant := nearly(pattern)):
            raise InvalidFilter(f"redact knows {meant}")
    detect = tuple([name for name in given if name in known])
    return Redact(tuple([pattern for pattern in given if pattern not in detect]), detect, kind, tier)
