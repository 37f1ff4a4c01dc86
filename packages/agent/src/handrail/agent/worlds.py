"""The world as a replayed run meets it: models and tools, people who are asked, and what
filters find out at a boundary."""

from typing import Protocol

from handrail.agent.kernel.requests import ChatRequest, ToolRequest, ToolResponse
from handrail.agent.models import Model
from handrail.filters import Filter


class World(Protocol):
    """The one place through which a replayed run reaches the world, or does not. A run of its own has none."""

    def model(self, request: ChatRequest) -> Model:
        """Who answers this request, which every layer has seen."""
        ...

    async def tool(self, request: ToolRequest, arguments: str, key: str | None) -> ToolResponse | None:
        """What the tool gives for these arguments (JSON) and this idempotency key; None: it may run."""
        ...

    def filter(self, asked_by: str, filter: Filter) -> Filter | None:
        """What the resolvers of a boundary with this filter gave, by who asked for it; None: they are asked."""
        ...

    def refusal(self, request: ToolRequest) -> tuple[str, str] | None:
        """Why a call was not approved: what the model was told, and what a record was; None: it was."""
        ...

    def may_tell(self, tool: str) -> bool:
        """Whether `on_handoff` of this transfer tool may be called."""
        ...
