"""Indexes that find tools: by keywords, by regular expressions, or whatever else has the same two methods."""

from handrail.agent.tool_indexes.indexes import Hit, ToolIndex, fingerprint
from handrail.agent.tool_indexes.keywords import KeywordIndex
from handrail.agent.tool_indexes.patterns import RegexIndex

__all__ = ["Hit", "KeywordIndex", "RegexIndex", "ToolIndex", "fingerprint"]
