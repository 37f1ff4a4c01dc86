"""The filter that takes out what tools returned and others may not see."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, Opaque, Part, Text, ToolCall, is_empty
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import owners
from handrail.filters.sensitivity import Tier, highest, label, part_token, token, token_tier

OnDrop = Literal["remove", "placeholder"]
_NO_OUTPUT = frozenset({Text, ToolCall})


@filter_kind("strip-sensitive-outputs")
class StripSensitiveOutputs(Filter, frozen=True):
    """No tool result that is labelled secret, or that has no label and carries a redaction token of any tier.

    `on_drop="remove"` takes its call as well; `"placeholder"` keeps the call, and leaves a text labelled `internal`
    for the result. The same holds for the hosted tool parts of a message.
    """

    on_drop: OnDrop = "remove"

    def __post_init__(self) -> None:
        if self.on_drop not in get_args(OnDrop):
            raise InvalidFilter(f"on_drop is 'remove' or 'placeholder', not {self.on_drop!r}")

    def __call__(self, history: Messages) -> Messages:
        found = {
            place: tier
            for place, message in enumerate(history)
            if not (message.role != "tool" and len(message.content) == 1 and type(message.content[0]) in _NO_OUTPUT)
            and (tier := _sensitive(message)) is not None
        }
        if not found:
            return history
        cut = _calls(history, found) if self.on_drop == "remove" else {}
        left = [self._left(message, found.get(place), cut.get(place, ())) for place, message in enumerate(history)]
        return tuple([message for message in left if message is not None])

    @property
    def per_message(self) -> bool:
        """A note holds no output, so it passes as it is."""
        return True

    def reason(self, message: Message) -> str:
        """Says what kind of output it is about."""
        return "a tool's output that is secret or was redacted does not cross"

    def _left(self, message: Message, tier: Tier | None, cut: tuple[str, ...] | set[str]) -> Message | None:
        if tier is not None and message.role == "tool":
            return None if self.on_drop == "remove" else _placeholder(message, tier)
        parts: list[Part] = []
        for part in message.content:
            if tier is not None and _is_hosted(part):
                if self.on_drop == "placeholder" and not _stands_in(parts, tier):
                    parts.append(_text(tier))
            elif not (isinstance(part, ToolCall) and part.id in cut):
                parts.append(part)
        if len(parts) == len(message.content) and tier is None:
            return message
        left = msgspec.structs.replace(message, content=tuple(parts))
        return None if is_empty(left) else left


@constructor
def strip_sensitive_outputs(*, on_drop: OnDrop = "remove") -> StripSensitiveOutputs:
    """Leaves out tool results (with their calls) that are labelled secret, or unlabelled and redacted.

    >>> from handrail.filters import assistant, call, tool_result
    >>> asked = call("balance", call_id="c1")
    >>> history = (assistant("One moment.", asked), tool_result(asked, "12,400", sensitivity="secret"))
    >>> [message.text for message in strip_sensitive_outputs()(history)]
    ['One moment.']
    >>> [message.text for message in strip_sensitive_outputs(on_drop="placeholder")(history)]
    ['One moment.', '[REDACTED:secret]']
    """
    return StripSensitiveOutputs(on_drop)


def _sensitive(message: Message) -> Tier | None:
    parts = message.content
    only = parts[0] if len(parts) == 1 else None
    if type(only) is Text and message.sensitivity is only.sensitivity is only.extra is None:
        return token_tier(only.text) if message.role == "tool" else None
    if message.role != "tool":
        parts = tuple([part for part in parts if type(part) is Opaque and part.family == "tool"])
    elif not parts:
        parts = (Text(""),)
    found = [tier for part in parts if (tier := _judged(message, part)) is not None]
    return highest(*found) if found else None


def _judged(message: Message, part: Part) -> Tier | None:
    if message.sensitivity is None and part.sensitivity is None:
        return part_token(part)
    return "secret" if label(message, part) == "secret" else None


def _is_hosted(part: Part) -> bool:
    return isinstance(part, Opaque) and part.family == "tool"


def _stands_in(parts: list[Part], tier: Tier) -> bool:
    return bool(parts) and parts[-1] == _text(tier)


def _text(tier: Tier) -> Text:
    return Text(token(tier), sensitivity="internal")


def _placeholder(message: Message, tier: Tier) -> Message:
    return msgspec.structs.replace(message, content=(_text(tier),), sensitivity=None)


def _calls(history: Messages, found: dict[int, Tier]) -> dict[int, set[str]]:
    cut: dict[int, set[str]] = {}
    for place, owner in owners(history).items():
        if place in found:
            cut.setdefault(owner, set()).add(history[place].call_id or "")
    return cut
