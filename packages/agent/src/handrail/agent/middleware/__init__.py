"""The layers that come with Handrail, one concern a module."""

from handrail.agent.middleware.approval import Approval
from handrail.agent.middleware.hold_release import HoldRelease
from handrail.agent.middleware.loggings import Logging
from handrail.agent.middleware.memory import Memory
from handrail.agent.middleware.safeguard import Safeguard
from handrail.agent.middleware.schema_validation import SchemaValidation
from handrail.agent.middleware.timeout import Timeout
from handrail.agent.middleware.token_redact import TokenRedact
from handrail.agent.middleware.tool_search import ToolSearch
from handrail.agent.middleware.validation import Validation

__all__ = [
    "Approval",
    "HoldRelease",
    "Logging",
    "Memory",
    "Safeguard",
    "SchemaValidation",
    "Timeout",
    "TokenRedact",
    "ToolSearch",
    "Validation",
]
