"""Messages, histories and handoff filters: what one agent tells another."""

from handrail.filters.base import Filter
from handrail.filters.catalogue.attribute_agents import attribute_agents
from handrail.filters.catalogue.by_agent import by_agent
from handrail.filters.catalogue.by_sensitivity import by_sensitivity
from handrail.filters.catalogue.default import default_handoff_filter
from handrail.filters.catalogue.drop import drop
from handrail.filters.catalogue.drop_tools import drop_tools
from handrail.filters.catalogue.dynamic import dynamic
from handrail.filters.catalogue.first_n import first_n
from handrail.filters.catalogue.full import full
from handrail.filters.catalogue.head_tail import head_tail
from handrail.filters.catalogue.keep import keep
from handrail.filters.catalogue.last_answer import last_answer
from handrail.filters.catalogue.last_n import last_n
from handrail.filters.catalogue.last_turns import last_turns
from handrail.filters.catalogue.last_user import last_user
from handrail.filters.catalogue.none import none
from handrail.filters.catalogue.note_foreign_tools import note_foreign_tools
from handrail.filters.catalogue.only_tools import only_tools
from handrail.filters.catalogue.redact import redact
from handrail.filters.catalogue.since_handoff import since_handoff
from handrail.filters.catalogue.strip_media import strip_media
from handrail.filters.catalogue.strip_sensitive_outputs import strip_sensitive_outputs
from handrail.filters.catalogue.strip_tool_calls import strip_tool_calls
from handrail.filters.catalogue.summarize import summarize
from handrail.filters.catalogue.summary import summary
from handrail.filters.catalogue.token_budget import token_budget
from handrail.filters.catalogue.when import when
from handrail.filters.composition import compose
from handrail.filters.custom import custom, custom_filter
from handrail.filters.detectors import Finding, detector, find
from handrail.filters.edges import Crossed, Edge, edge_history
from handrail.filters.errors import (
    CounterMissing,
    FilterError,
    FilterFailed,
    FilterNotRunnable,
    HandrailError,
    InvalidDescriptor,
    InvalidExpression,
    InvalidFilter,
    InvalidMessage,
    NothingToHandOver,
    PolicyInvalid,
    PolicyViolation,
    UnresolvedFilter,
)
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
from handrail.filters.policies import Policy, Violation
from handrail.filters.predicates import predicate
from handrail.filters.reasoning import strip_reasoning
from handrail.filters.registry import constructor, filter_kind, from_descriptor, parse, registered
from handrail.filters.repairs import Breach, Repaired, breaches, repair
from handrail.filters.reports import Report
from handrail.filters.resolvers import EdgeInfo, Resolver, resolve, unresolved
from handrail.filters.seals import Note, Seal, seal
from handrail.filters.sensitivity import Tier, judge
from handrail.filters.sources import Clock, FixedClock, FixedIds, IdSource
from handrail.filters.tokens import best_counter, counter
from handrail.filters.views import View

__all__ = [
    "Audio",
    "Breach",
    "Clock",
    "CounterMissing",
    "Crossed",
    "Edge",
    "EdgeInfo",
    "File",
    "Filter",
    "FilterError",
    "FilterFailed",
    "FilterNotRunnable",
    "Finding",
    "FixedClock",
    "FixedIds",
    "HandrailError",
    "History",
    "IdSource",
    "Image",
    "InvalidDescriptor",
    "InvalidExpression",
    "InvalidFilter",
    "InvalidMessage",
    "Message",
    "Messages",
    "Note",
    "NothingToHandOver",
    "Opaque",
    "Part",
    "Policy",
    "PolicyInvalid",
    "PolicyViolation",
    "Reasoning",
    "Refusal",
    "Repaired",
    "Report",
    "Resolver",
    "Seal",
    "Text",
    "Tier",
    "ToolCall",
    "UnresolvedFilter",
    "View",
    "Violation",
    "assistant",
    "attribute_agents",
    "best_counter",
    "breaches",
    "by_agent",
    "by_sensitivity",
    "call",
    "compose",
    "constructor",
    "counter",
    "custom",
    "custom_filter",
    "default_handoff_filter",
    "detector",
    "digest",
    "drop",
    "drop_tools",
    "dynamic",
    "edge_history",
    "filter_kind",
    "find",
    "first_n",
    "from_descriptor",
    "full",
    "head_tail",
    "judge",
    "keep",
    "last_answer",
    "last_n",
    "last_turns",
    "last_user",
    "none",
    "note_foreign_tools",
    "only_tools",
    "parse",
    "predicate",
    "redact",
    "registered",
    "repair",
    "resolve",
    "seal",
    "since_handoff",
    "strip_media",
    "strip_reasoning",
    "strip_sensitive_outputs",
    "strip_tool_calls",
    "summarize",
    "summary",
    "system",
    "token_budget",
    "tool_result",
    "unresolved",
    "user",
    "when",
]
