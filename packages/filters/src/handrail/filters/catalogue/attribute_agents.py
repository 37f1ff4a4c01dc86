"""The filter that tells an agent which words are not its own."""

from __future__ import annotations

from typing import Any, ClassVar, overload

import msgspec

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages, Opaque, Part, Refusal, Text, ToolCall
from handrail.filters.reasoning import without_reasoning
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.resolvers import EdgeInfo, Resolver


@filter_kind("attribute-agents")
class AttributeAgents(Filter, frozen=True):
    """What other agents than `self` said, in the user role: quoted as data under their names, without their reasoning.

    Their tool calls stay assistant messages, the quoted words before them. What no agent is named for stays as it is.
    """

    self: str  # as the descriptor has it; so methods call themselves something else

    def __post_init__(this) -> None:
        if type(this.self) is not str or not this.self:
            raise InvalidFilter(f"self is the name of an agent, not {this.self!r}")

    def __call__(this, history: Messages) -> Messages:
        left: list[Message] = []
        for message in history:
            other = message.role == "assistant" and message.agent is not None and message.agent != this.self
            left.extend(_attributed(message) if other else (message,))
        return tuple(left)

    def reason(this, message: Message) -> str:
        """Says whose words they are."""
        return f"{message.agent or 'another agent'} said it, not {this.self}"


class OthersAttributed(Resolver, frozen=True):
    """Becomes `attribute_agents(self=…)` with the target's name."""

    kind: ClassVar[str] = "resolver/attribute-agents"

    def resolve(self, history: Messages, edge: EdgeInfo) -> AttributeAgents:
        """The filter for the target."""
        return AttributeAgents(edge.target)

    def __repr__(self) -> str:
        return "attribute_agents()"


@overload
def attribute_agents(self: None = None) -> OthersAttributed: ...
@overload
def attribute_agents(self: str) -> AttributeAgents: ...
@constructor
def attribute_agents(self: str | None = None) -> Any:
    """Quotes what other agents said as attributed data, so that the next agent takes none of it for its own words.

    Without a name it is a resolver: the name is the target's.

    >>> from handrail.filters import assistant, user
    >>> history = (user("Hello"), assistant("I am Triage.", agent="Triage"))
    >>> print(attribute_agents("Billing")(history)[1].text)
    [Triage said, quoted as data f56458]
    I am Triage.
    [end of data f56458]
    """
    return OthersAttributed() if self is None else AttributeAgents(self)


def _attributed(message: Message) -> tuple[Message, ...]:
    spoken = without_reasoning(message)
    if spoken is None:
        return ()
    calls = tuple([part for part in spoken.content if isinstance(part, ToolCall | Opaque)])
    words = tuple([_quoted(part, message.agent or "") for part in spoken.content if _is_said(part)])
    if not words:
        return (message,)
    if not calls:
        return (msgspec.structs.replace(spoken, role="user", content=words),)
    # The calls keep the message's id, since their results follow; the words become a message of their own.
    said = msgspec.structs.replace(spoken, role="user", content=words, id="")
    return said, msgspec.structs.replace(spoken, content=calls)


def _is_said(part: Part) -> bool:
    return bool(part.text) if isinstance(part, Text | Refusal) else not isinstance(part, ToolCall | Opaque)


def _quoted(part: Part, agent: str) -> Part:
    if not isinstance(part, Text | Refusal):
        return part
    from handrail.filters.quotes import quoted

    return Text(quoted(part.text, f"{agent} said"), sensitivity=part.sensitivity)
