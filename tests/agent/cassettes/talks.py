"""A desk of two agents and a helper whose models count how often they are asked."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from handrail.agent import Agent, ChatResponse, FunctionModel, Model, to_tool, tool
from handrail.agent.cassettes import Cassette
from handrail.agent.kernel import ChatRequest
from handrail.agent.models import Delta, Profile
from handrail.filters import call


class Counted(FunctionModel):
    """A model that answers by rules, and keeps how often it was asked."""

    def __init__(self, name: str, answer: Callable[[ChatRequest], object]) -> None:
        self.asked = 0
        super().__init__(lambda request: self._count(answer(request)), name=name)  # type: ignore[arg-type, return-value]

    def _count(self, answer: object) -> object:
        self.asked += 1
        return answer


class Remote:
    """The same as one that does not answer in the process: a cassette stands in for it by itself."""

    def __init__(self, name: str, answer: Callable[[ChatRequest], object]) -> None:
        self.inner = Counted(name, answer)
        self.name = name
        self.profile = Profile()

    async def complete(self, request: ChatRequest) -> ChatResponse:
        return await self.inner.complete(request)

    def stream(self, request: ChatRequest) -> AsyncGenerator[Delta | ChatResponse, None]:
        return self.inner.stream(request)

    async def aclose(self) -> None:
        """Nothing is held open."""


@tool
def find_payments(invoice: str) -> list[str]:
    """The payments of an invoice."""
    return ["7 March", "8 March"]


def billing_rules(request: ChatRequest) -> object:
    if request.messages[-1].role != "tool":
        return ["Let me look. ", call("find_payments", invoice="1042"), call("research", input="The rule?")]
    return "You were charged twice."


class Desk:
    """Triage hands over to billing, which asks research; each has a model of its own."""

    def __init__(self) -> None:
        self.models = [
            Counted("triage-1", lambda _: call("transfer_to_billing", reason="charged twice")),
            Counted("billing-1", billing_rules),
            Counted("research-1", lambda _: "It is refunded."),
        ]

    @property
    def asked(self) -> int:
        return sum(model.asked for model in self.models)

    def agent(self, cassette: Cassette) -> Agent:
        triage, billing, research = [cassette.model(model) for model in self.models]
        helper = to_tool(Agent("research", model=research))
        books = Agent("billing", model=billing, tools=[find_payments, helper])
        return Agent("triage", model=triage, handoffs=[books])


def echo(model: Model, **options: object) -> Agent:
    """An agent with this model alone."""
    return Agent("echo", model=model, **options)  # type: ignore[arg-type]  # they are those of an agent


def recorded(path: Path, *inputs: str, answer: Callable[[ChatRequest], object] = lambda _: "Yes.") -> Path:
    """A cassette of an agent that was asked this, run by run."""
    with Cassette(path) as cassette:
        for each in inputs:
            echo(cassette.model(Counted("m", answer))).run_sync(each)
    return path
