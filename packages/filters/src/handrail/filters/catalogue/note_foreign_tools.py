"""The filter that turns calls of tools that an agent lacks into notes."""

from __future__ import annotations

from typing import Any, ClassVar, overload

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, Part, Text, ToolCall, is_empty
from handrail.filters.reasoning import spoken
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.repairs import owners
from handrail.filters.resolvers import EdgeInfo, Resolver
from handrail.filters.sensitivity import Tier, highest, label, part_token

LONGEST = 200
"""How many characters of the arguments, and of each part of a result, a note shows."""


@filter_kind("note-foreign-tools")
class NoteForeignTools(Filter, frozen=True):
    """Calls of the tools in `names` go, and each of their results becomes a short note in the user role: who called
    what, with which arguments, and what came of it, quoted as data.

    A note keeps the id of its result, and the labels of what it shows; it stands after the results that stay.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if type(self.names) is not tuple:
            msgspec.structs.force_setattr(self, "names", tuple(self.names))
        if not all([type(name) is str for name in self.names]):
            raise InvalidFilter(f"names are those of tools, not {self.names!r}")

    def __call__(self, history: Messages) -> Messages:
        foreign = _foreign(history, self.names)
        if not foreign:
            return history
        owned = owners(history)
        left: list[Message] = []
        notes: list[Message] = []
        for place, message in enumerate(history):
            if message.role != "tool":
                left += [*notes, *_without(message, foreign.get(place))]
                notes = []
                continue
            owner = owned.get(place, -1)
            call = foreign.get(owner, {}).get(message.call_id or "")
            if call is None:
                left.append(message)
            else:
                notes.append(_note(history[owner], call, message))
        return (*left, *notes)

    def reason(self, message: Message) -> str:
        """Says what it is that the next agent lacks."""
        return "the next agent does not have the tool"

    def __repr__(self) -> str:
        return f"note_foreign_tools({list(self.names)!r})"


class ForeignToolsNoted(Resolver, frozen=True):
    """Becomes `note_foreign_tools([…])` with the names of the tools that were called and that the target lacks."""

    kind: ClassVar[str] = "resolver/note-foreign-tools"

    def resolve(self, history: Messages, edge: EdgeInfo) -> NoteForeignTools:
        """The filter for the target's tools."""
        called = {call.name for message in history if message.role == "assistant" for call in message.tool_calls}
        return NoteForeignTools(tuple(sorted(called.difference(edge.target_tools))))

    def __repr__(self) -> str:
        return "note_foreign_tools()"


@overload
def note_foreign_tools(names: None = None) -> ForeignToolsNoted: ...
@overload
def note_foreign_tools(names: tuple[str, ...] | list[str]) -> NoteForeignTools: ...
@constructor
def note_foreign_tools(names: tuple[str, ...] | list[str] | None = None) -> Any:
    """Turns calls of tools that the next agent lacks into short attributed notes; call and result both go.

    Without names it is a resolver: they are the tools that were called and that the target does not have.

    >>> from handrail.filters import assistant, call, tool_result
    >>> asked = call("track", call_id="c1")
    >>> history = (assistant("Let me look.", asked, agent="Triage"), tool_result(asked, "in Porto"))
    >>> [message.role for message in note_foreign_tools(["track"])(history)]
    ['assistant', 'user']
    """
    return ForeignToolsNoted() if names is None else NoteForeignTools(tuple(names))


def _foreign(history: Messages, names: tuple[str, ...]) -> dict[int, dict[str, ToolCall]]:
    known = set(names)
    found: dict[int, dict[str, ToolCall]] = {}
    for place, message in enumerate(history):
        if message.role == "assistant" and (calls := [call for call in message.tool_calls if call.name in known]):
            found[place] = {call.id: call for call in calls}
    return found


def _without(message: Message, calls: dict[str, ToolCall] | None) -> tuple[Message, ...]:
    if calls is None:
        return (message,)
    names = {call.name for call in calls.values()}
    parts = tuple([part for part in message.content if not (isinstance(part, ToolCall) and part.name in names)])
    left = msgspec.structs.replace(message, content=parts)
    return () if is_empty(left) else (left,)


def _note(caller: Message, call: ToolCall, result: Message) -> Message:
    from handrail.filters.quotes import one_line, quoted

    who, name = one_line(caller.agent or "an agent"), one_line(call.name)
    asked = "" if call.arguments.strip() in ("", "{}") else spoken(call.arguments)
    head = quoted(_cut(asked), f"{who} called {name} with these arguments") if asked else f"[{who} called {name}]"
    shown = [(f"{head}\n", _tier(caller, call))]
    what = "It failed with" if result.is_error else "It answered"
    for part in result.content:
        if isinstance(part, Text) and part.text:
            shown.append((quoted(_cut(part.text), what), _tier(result, part)))
    parts = _labelled(shown)
    # Each part has its own label now: the result's would judge the call as well.
    return msgspec.structs.replace(
        result, role="user", content=parts, sensitivity=None, call_id=None, name=None, is_error=False
    )


def _labelled(shown: list[tuple[str, Tier | None]]) -> tuple[Part, ...]:
    # A call and its result share the fate of the higher of their labels, as they do in any gate. What has no label
    # goes on counting by a setting, which is at most secret.
    pair = highest(*[tier for _, tier in shown])
    tiers = [pair if tier is not None or pair == "secret" else None for _, tier in shown]
    return tuple([Text(text, sensitivity=tier) for (text, _), tier in zip(shown, tiers, strict=True)])


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _tier(message: Message, part: Part) -> Tier | None:
    # A redaction token may be cut in half or escaped here, so that what it says is said by a label.
    return label(message, part) or part_token(part)
