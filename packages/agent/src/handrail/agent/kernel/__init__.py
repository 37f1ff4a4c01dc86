"""The around-hook kernel: requests and responses, middleware, and the chains they form."""

from handrail.agent.kernel.chains import chain
from handrail.agent.kernel.middlewares import CallChat, CallHandoff, CallTool, CallTurn, Middleware
from handrail.agent.kernel.requests import (
    ChatRequest,
    HandoffRequest,
    HandoffResponse,
    ToolRequest,
    ToolResponse,
    TurnRequest,
    TurnResult,
)

__all__ = [
    "CallChat",
    "CallHandoff",
    "CallTool",
    "CallTurn",
    "ChatRequest",
    "HandoffRequest",
    "HandoffResponse",
    "Middleware",
    "ToolRequest",
    "ToolResponse",
    "TurnRequest",
    "TurnResult",
    "chain",
]
