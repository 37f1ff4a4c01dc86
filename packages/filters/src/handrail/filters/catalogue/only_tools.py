"""The filter that keeps of the tool calls only those of some tools."""

from __future__ import annotations

from handrail.filters.base import Filter
from handrail.filters.errors import InvalidFilter
from handrail.filters.messages import Message, Messages
from handrail.filters.registry import constructor, filter_kind
from handrail.filters.windows import as_history, without_tools


@filter_kind("only-tools")
class OnlyTools(Filter, frozen=True):
    """Everything but calls of other tools, and their results.

    A tool that a provider hosts is named by the type of its part. A message left empty goes; so does a result without
    a call, by the name that it carries.
    """

    tools: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.tools, tuple) or not self.tools:
            raise InvalidFilter(f"only_tools is told the names of tools, not {self.tools!r}")
        if not all([isinstance(name, str) and name for name in self.tools]):
            raise InvalidFilter(f"the names of tools are texts that are not empty, not {self.tools!r}")

    def __call__(self, history: Messages) -> Messages:
        names = frozenset(self.tools)
        return without_tools(as_history(history), lambda name: name not in names)

    def reason(self, message: Message) -> str:
        """Names the tools."""
        return f"not a call or result of {', '.join(self.tools)}"

    def __repr__(self) -> str:
        return f"only_tools({', '.join(map(repr, self.tools))})"


@constructor
def only_tools(*tools: str) -> OnlyTools:
    """Keeps of the tool calls only those of some tools, with their results. Raises `InvalidFilter` without a name.

    >>> from handrail.filters import assistant, call, tool_result, user
    >>> track, balance = call("track", call_id="c1"), call("balance", call_id="c2")
    >>> asked = assistant(track, balance)
    >>> results = (tool_result(track, "in Porto"), tool_result(balance, "12,400"))
    >>> [message.text for message in only_tools("track")((user("Where is it?"), asked, *results))]
    ['Where is it?', '', 'in Porto']
    """
    return OnlyTools(tools)
