"""The `openai:` model: Chat Completions, as the public service and many servers of other makers speak it."""

from handrail.agent.http.retries import Retries
from handrail.agent.http.services import Timeouts
from handrail.agent.providers.openai.chat import OpenAIChat

__all__ = ["OpenAIChat", "Retries", "Timeouts"]
