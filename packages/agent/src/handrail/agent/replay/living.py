"""A model that is asked in a replay, within limits."""

from collections.abc import AsyncGenerator, Callable

from handrail.agent.in_place import InPlaceOf
from handrail.agent.kernel.requests import ChatRequest
from handrail.agent.limits import Budget
from handrail.agent.models import ChatResponse, Delta, Model


class Metered(InPlaceOf):
    """A model whose every call is counted before it is made, and told as it is made (`asked`). Raises `LimitExceeded`
    where the budget is used up."""

    def __init__(self, model: Model, budget: Budget, asked: Callable[[], None]) -> None:
        super().__init__(model)
        self._budget = budget
        self._asked = asked

    async def complete(self, request: ChatRequest) -> ChatResponse:
        """The model's answer."""
        self._budget.check_call(self.name)
        self._budget.take_step()
        self._asked()
        response = await self._budget.in_time(self._model.complete(request))
        self._budget.spend(self.name, response.usage)
        return response

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        """The same, at once."""
        yield await self.complete(request)
