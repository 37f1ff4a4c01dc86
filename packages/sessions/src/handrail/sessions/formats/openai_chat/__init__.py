"""OpenAI Chat Completions: messages to and from its JSON, and the files in which others keep lists of them.

Source of the format: the bodies of requests to and responses from `POST /chat/completions`.
"""

from handrail.sessions.formats.openai_chat.decoding import decode_message
from handrail.sessions.formats.openai_chat.encoding import encode_message, losses, to_openai_chat
from handrail.sessions.formats.openai_chat.files import OpenAIChat
from handrail.sessions.formats.openai_chat.wire import PROVIDER

__all__ = ["OpenAIChat", "PROVIDER", "decode_message", "encode_message", "losses", "to_openai_chat"]
