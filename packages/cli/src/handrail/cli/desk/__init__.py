"""The support desk of `handrail demo`: three agents, their tools, and a small invented business."""

from handrail.cli.desk.agents import support_desk, triage

__all__ = ["support_desk", "triage"]
