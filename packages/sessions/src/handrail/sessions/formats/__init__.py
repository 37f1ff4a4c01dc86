"""Foreign transcript formats, one a module."""

from handrail.sessions.formats.openai_chat import OpenAIChat, to_openai_chat

__all__ = ["OpenAIChat", "to_openai_chat"]
