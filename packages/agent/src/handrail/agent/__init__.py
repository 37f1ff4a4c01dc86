"""Agents that hand over to one another: the loop, the kernel around it, tools, handoffs and models."""

from handrail.agent.agents import Agent
from handrail.agent.contexts import RunContext
from handrail.agent.errors import (
    ActiveAgentUnknown,
    BuildError,
    HandoffRefused,
    InvalidAnswer,
    InvalidInput,
    InvalidOutput,
    InvalidResponse,
    LimitExceeded,
    LoopDetected,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    NameClash,
    RunError,
    ScriptError,
    StreamBroken,
    ToolFailed,
    UnfitName,
    UnknownPrice,
    UnknownTarget,
)
from handrail.agent.evaluations import Evaluation, evaluate_and_retry
from handrail.agent.handoffs import Handoff, handoff
from handrail.agent.kernel import Middleware
from handrail.agent.limits import Limits
from handrail.agent.merging import Candidate, fan_out
from handrail.agent.models import ChatResponse, Model, Settings
from handrail.agent.outputs import Output
from handrail.agent.previews import Preview, preview
from handrail.agent.runs import RunResult
from handrail.agent.scripted import FunctionModel, ScriptedModel
from handrail.agent.streams import Stream
from handrail.agent.subagents import to_tool
from handrail.agent.tools import Tool, tool

__all__ = [
    "ActiveAgentUnknown",
    "Agent",
    "BuildError",
    "Candidate",
    "ChatResponse",
    "Evaluation",
    "FunctionModel",
    "Handoff",
    "HandoffRefused",
    "InvalidAnswer",
    "InvalidInput",
    "InvalidOutput",
    "InvalidResponse",
    "LimitExceeded",
    "Limits",
    "LoopDetected",
    "Middleware",
    "Model",
    "ModelError",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "NameClash",
    "Output",
    "Preview",
    "RunContext",
    "RunError",
    "RunResult",
    "ScriptError",
    "ScriptedModel",
    "Settings",
    "Stream",
    "StreamBroken",
    "Tool",
    "ToolFailed",
    "UnfitName",
    "UnknownPrice",
    "UnknownTarget",
    "evaluate_and_retry",
    "fan_out",
    "handoff",
    "preview",
    "to_tool",
    "tool",
]
