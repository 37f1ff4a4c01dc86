"""Messages, histories and handoff filters: what one agent tells another."""

from handrail.filters.base import Filter
from handrail.filters.catalogue.default import default_handoff_filter
from handrail.filters.catalogue.full import full
from handrail.filters.catalogue.last_n import last_n
from handrail.filters.catalogue.last_user import last_user
from handrail.filters.catalogue.none import none
from handrail.filters.catalogue.strip_sensitive_outputs import strip_sensitive_outputs
from handrail.filters.catalogue.strip_tool_calls import strip_tool_calls
from handrail.filters.catalogue.summary import summary
from handrail.filters.composition import compose
from handrail.filters.custom import custom, custom_filter
from handrail.filters.edges import Crossed, Edge, edge_history
from handrail.filters.errors import (
    FilterError,
    FilterFailed,
    FilterNotRunnable,
    HandrailError,
    InvalidDescriptor,
    InvalidExpression,
    InvalidFilter,
    NothingToHandOver,
)
from handrail.filters.expressions import parse
from handrail.filters.histories import History
from handrail.filters.messages import (
    Audio,
    File,
    Image,
    Message,
    Messages,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    assistant,
    call,
    digest,
    system,
    tool_result,
    user,
)
from handrail.filters.reasoning import strip_reasoning
from handrail.filters.registry import constructor, filter_kind, from_descriptor, registered
from handrail.filters.repairs import Breach, Repaired, breaches, repair
from handrail.filters.reports import Report
from handrail.filters.seals import Note, Seal, seal
from handrail.filters.sensitivity import Tier, judge
from handrail.filters.sources import Clock, FixedClock, FixedIds, IdSource
from handrail.filters.views import View

__all__ = [
    "Audio",
    "Breach",
    "Clock",
    "Crossed",
    "Edge",
    "File",
    "Filter",
    "FilterError",
    "FilterFailed",
    "FilterNotRunnable",
    "FixedClock",
    "FixedIds",
    "HandrailError",
    "History",
    "IdSource",
    "Image",
    "InvalidDescriptor",
    "InvalidExpression",
    "InvalidFilter",
    "Message",
    "Messages",
    "Note",
    "NothingToHandOver",
    "Opaque",
    "Part",
    "Reasoning",
    "Refusal",
    "Repaired",
    "Report",
    "Seal",
    "Text",
    "Tier",
    "ToolCall",
    "View",
    "assistant",
    "breaches",
    "call",
    "compose",
    "constructor",
    "custom",
    "custom_filter",
    "default_handoff_filter",
    "digest",
    "edge_history",
    "filter_kind",
    "from_descriptor",
    "full",
    "judge",
    "last_n",
    "last_user",
    "none",
    "parse",
    "registered",
    "repair",
    "seal",
    "strip_reasoning",
    "strip_sensitive_outputs",
    "strip_tool_calls",
    "summary",
    "system",
    "tool_result",
    "user",
]
