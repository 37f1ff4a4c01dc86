"""The layers that come with Handrail, one concern a module."""

from handrail.agent.middleware.tool_search import ToolSearch

__all__ = ["ToolSearch"]
