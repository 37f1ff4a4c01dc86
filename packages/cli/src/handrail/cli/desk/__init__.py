"""The support desk of `handrail demo`: three agents, their tools, and a small invented business."""

from handrail.cli.desk.agents import support_desk as support_desk

__all__ = ["support_desk"]
