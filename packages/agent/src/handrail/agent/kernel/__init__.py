"""The around-hook kernel: requests and responses, middleware, state, jumps, tokens, and the chains they form."""

from handrail.agent.kernel.chains import chain
from handrail.agent.kernel.decorators import (
    after_agent,
    after_model,
    around_chat,
    around_handoff,
    around_tool,
    around_turn,
    before_agent,
    before_model,
    token_transform,
)
from handrail.agent.kernel.edits import append, overwrite, remove, replace
from handrail.agent.kernel.jumps import Jump, jump
from handrail.agent.kernel.kernels import Kernel
from handrail.agent.kernel.middlewares import CallChat, CallHandoff, CallTool, CallTurn, Middleware
from handrail.agent.kernel.privates import PrivateState
from handrail.agent.kernel.requests import (
    ChatRequest,
    HandoffRequest,
    HandoffResponse,
    ToolRequest,
    ToolResponse,
    TurnRequest,
    TurnResult,
    Verdict,
)
from handrail.agent.kernel.states import State, channel
from handrail.agent.kernel.tokens import Token, TokenTransform

__all__ = [
    "CallChat",
    "CallHandoff",
    "CallTool",
    "CallTurn",
    "ChatRequest",
    "HandoffRequest",
    "HandoffResponse",
    "Jump",
    "Kernel",
    "Middleware",
    "PrivateState",
    "State",
    "Token",
    "TokenTransform",
    "ToolRequest",
    "ToolResponse",
    "TurnRequest",
    "TurnResult",
    "Verdict",
    "after_agent",
    "after_model",
    "append",
    "around_chat",
    "around_handoff",
    "around_tool",
    "around_turn",
    "before_agent",
    "before_model",
    "chain",
    "channel",
    "jump",
    "overwrite",
    "remove",
    "replace",
    "token_transform",
]
