"""The gate that lets through only what is not too sensitive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from handrail.filters.base import Filter
from handrail.filters.detectors import find, find_by_key
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, Part, Text, ToolCall, is_empty
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import owners
from handrail.filters.sensitivity import TIERS, Tier, highest, judge, label, rank, token

OnDrop = Literal["remove", "placeholder"]


@filter_kind("sensitivity-filter")
class BySensitivity(Filter, frozen=True):
    """Only what is at or below a tier. A part above it goes, or the message when nothing is left.

    A call above the tier goes with its result, and the other way round. `on_drop="placeholder"` leaves one
    `[REDACTED:<tier>]` text, labelled with the boundary's tier, in each message it takes from; a call then stays where
    only its result was above. The higher of the message's and the part's label judges; `unlabelled` is for what has
    neither label nor token; `detect` names detectors whose findings raise what has no label.
    """

    max_tier: Tier = "internal"
    on_drop: OnDrop = "remove"
    detect: tuple[str, ...] = ()
    unlabelled: Tier = "internal"

    def __post_init__(self) -> None:
        for name, tier in (("max_tier", self.max_tier), ("unlabelled", self.unlabelled)):
            if tier not in TIERS:
                raise InvalidFilter(f"{name} is one of {', '.join(TIERS)}, not {tier!r}")
        if self.on_drop not in get_args(OnDrop):
            raise InvalidFilter(f"on_drop is 'remove' or 'placeholder', not {self.on_drop!r}")
        from handrail.filters.redaction import check

        check((), self.detect)

    def __call__(self, history: Messages) -> Messages:
        if self.detect:
            from handrail.filters.redaction import require

            require(self.descriptor, self.detect)
        above = {place: over for place, message in enumerate(history) if (over := self._above(message))}
        if not above:
            return history
        cut, gone = self._pairs(history, above)
        left: list[Message] = []
        for place, message in enumerate(history):
            if place in above or place in cut or place in gone:
                if place not in gone and (kept := self._left(message, above.get(place), cut.get(place))) is not None:
                    left.append(kept)
            else:
                left.append(message)
        return tuple(left)

    @property
    def per_message(self) -> bool:
        """A note is judged like any message."""
        return True

    def reason(self, message: Message) -> str:
        """Says what the tier is."""
        return f"above {self.max_tier}, or the other half of a call and result that is"

    def __repr__(self) -> str:
        given = [repr(self.max_tier), f"on_drop={self.on_drop!r}"]
        given += [f"detect={list(self.detect)!r}"] if self.detect else []
        given += [f"unlabelled={self.unlabelled!r}"] if self.unlabelled != "internal" else []
        return f"by_sensitivity({', '.join(given)})"

    def _above(self, message: Message) -> dict[int, Tier]:
        # The places of the parts above the tier, with what they are; -1 for a message without parts.
        found: dict[int, Tier] = {}
        if message.sensitivity is None and _plain(message.content) and not self.detect:
            return found if rank(self.unlabelled) <= rank(self.max_tier) else {0: self.unlabelled}
        for number, part in enumerate(message.content or (Text(""),)):
            if rank(judged := self._judged(message, part)) > rank(self.max_tier):
                found[number if message.content else -1] = judged
        return found

    def _judged(self, message: Message, part: Part) -> Tier:
        tier = judge(message, part, self.unlabelled)
        if not self.detect or tier == "secret" or label(message, part) is not None:
            return tier
        from handrail.filters.strings import strings

        found = [
            finding.tier
            for text, key in strings(part)
            for finding in (*find(text, self.detect), *find_by_key(key, text, self.detect))
        ]
        return highest(tier, *found) or tier

    def _pairs(self, history: Messages, above: dict[int, dict[int, Tier]]) -> tuple[dict[int, set[str]], set[int]]:
        # The ids of the calls to be cut from each message, and the places of the results that go with a call.
        cut: dict[int, set[str]] = {}
        for place, over in above.items():
            content = history[place].content
            cut[place] = {part.id for number, part in enumerate(content) if number in over and type(part) is ToolCall}
        gone: set[int] = set()
        for place, owner in owners(history).items():
            call_id = history[place].call_id or ""
            if call_id in cut.get(owner, ()):
                gone.add(place)
            elif place in above and self.on_drop == "remove" and self._left(history[place], above[place], None) is None:
                cut.setdefault(owner, set()).add(call_id)
                gone.add(place)
        return cut, gone

    def _left(self, message: Message, above: dict[int, Tier] | None, cut: set[str] | None) -> Message | None:
        over, ids = above or {}, cut or set()
        parts: list[Part] = []
        stands_in = self.on_drop == "placeholder"
        for number, part in enumerate(message.content):
            if number in over:
                if stands_in:
                    parts.append(self._placeholder(over))
                stands_in = False
            elif not (isinstance(part, ToolCall) and part.id in ids):
                parts.append(part)
        if -1 in over and stands_in:
            parts.append(self._placeholder(over))
        whole = rank(message.sensitivity or "public") > rank(self.max_tier)
        changes = {"sensitivity": None, "name": message.name if message.role == "tool" else None} if whole else {}
        left = msgspec.structs.replace(message, content=tuple(parts), **changes)
        return None if is_empty(left) else left

    def _placeholder(self, over: dict[int, Tier]) -> Text:
        return Text(token(highest(*over.values()) or "secret"), sensitivity=self.max_tier)


def _plain(content: tuple[Part, ...]) -> bool:
    # One text without a label, an extra or a token: what most messages are.
    if len(content) != 1 or type(content[0]) is not Text:
        return False
    part = content[0]
    return part.sensitivity is None and part.extra is None and "[REDACTED" not in part.text


@constructor
def by_sensitivity(
    max_tier: Tier = "internal",
    on_drop: OnDrop = "remove",
    detect: str | Sequence[str] = (),
    unlabelled: Tier = "internal",
) -> BySensitivity:
    """Lets through what is labelled `max_tier` or lower. Raises `InvalidFilter` for what is no tier.

    >>> from handrail.filters import user
    >>> history = (user("I am client 12."), user("My PIN is 9041.", sensitivity="secret"))
    >>> [message.text for message in by_sensitivity()(history)]
    ['I am client 12.']
    >>> [message.text for message in by_sensitivity(on_drop="placeholder")(history)]
    ['I am client 12.', '[REDACTED:secret]']
    """
    return BySensitivity(max_tier, on_drop, (detect,) if isinstance(detect, str) else tuple(detect), unlabelled)
